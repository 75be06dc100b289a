package server

import (
	"context"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/api"
)

// seats bounds how many calls wait at a time (U21), and how many of them may be of one caller.
type seats struct {
	free chan struct{}

	mu   sync.Mutex
	held map[string]int // by the name of a share; none is 0
}

// share is what one caller may hold of the seats.
type share struct {
	name string // of the caller
	most int
	what string // for people: a key, a namespace
	set  string // the setting of the namespace that bounds it; "": none
	hint string
}

func newSeats(n int) *seats { return &seats{free: make(chan struct{}, n), held: map[string]int{}} }

// take takes a seat that counts in all shares, or answers overloaded when there is none, rate_limited when a share is used up. Call leave
// when the call waits no more.
func (s *seats) take(shares ...share) (leave func(), err error) {
	if err := s.count(shares); err != nil {
		return nil, err
	}
	select {
	case s.free <- struct{}{}:
		return func() {
			<-s.free
			s.discount(shares)
		}, nil
	default:
		s.discount(shares)
		return nil, refuse("overloaded", "too many calls are waiting").after(time.Second).current("limit", cap(s.free)).
			hint("ask without waiting, or try again later")
	}
}

// count counts a call in all shares, or in none.
func (s *seats) count(shares []share) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range shares {
		if s.held[one.name] >= one.most {
			refusal := refuse("rate_limited", "the "+one.what+" has as many calls waiting as it may").after(time.Second).current("limit", one.most).hint(one.hint)
			if one.set != "" {
				refusal = refusal.current("setting", one.set)
			}
			return refusal
		}
	}
	for _, one := range shares {
		s.held[one.name]++
	}
	return nil
}

func (s *seats) discount(shares []share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range shares {
		if s.held[one.name]--; s.held[one.name] == 0 {
			delete(s.held, one.name)
		}
	}
}

// sit takes a seat for a call. Of the readers' seats one key holds a share, and so does one namespace: one tenant must not make all others
// wait for a place. The seats of claims are shared out among namespaces alone: a fleet of workers has one key.
func (s *Server) sit(ctx context.Context, x *exchange, all *seats) (leave func(), err error) {
	var shares []share
	if all == s.claims {
		shares = s.claimShareOf(x.caller)
	} else {
		shares = s.sharesOf(ctx, x.caller)
	}
	leave, err = all.take(shares...)
	if err != nil {
		s.metrics.rejected(rejection(err))
	}
	return leave, err
}

func rejection(err error) string {
	if api.CodeOf(err) == "overloaded" {
		return "overload"
	}
	return "rate"
}

// sharesOf are the shares in which a reader counts. A reader that needs no key counts in none.
func (s *Server) sharesOf(ctx context.Context, who caller) []share {
	if who.key == nil {
		return nil
	}
	perKey := s.cfg.MaxReadersPerKey
	shares := []share{{
		name: who.shareName(), most: perKey, what: "key", hint: "ask without waiting, or let the server be started with a higher --max-readers-per-key",
	}}
	if who.everywhere {
		return shares
	}
	for _, namespace := range who.Namespaces {
		shares = append(shares, s.readersOf(ctx, namespace))
	}
	return shares
}

// readersOf returns the share of a namespace. While the store does not answer the default applies.
func (s *Server) readersOf(ctx context.Context, namespace string) share {
	all := share{name: "namespace/" + namespace, what: "namespace", set: "max_readers", hint: "ask without waiting, or let max_readers of the namespace be raised"}
	bounds, err := s.keys.shared.NamespaceBounds(ctx, namespace)
	if all.most = bounds.Readers; err != nil || all.most == 0 {
		all.most = max(s.cfg.MaxReadersPerKey, s.cfg.MaxReaders-s.cfg.MaxReaders/keyPart)
	}
	return all
}

// claimShareOf returns the share that a claim counts against. A key for several namespaces that names none of them has a share of
// its own.
func (s *Server) claimShareOf(who caller) []share {
	if who.key == nil || who.everywhere {
		return nil
	}
	of := share{
		name: "namespace/" + who.Namespace, most: s.cfg.MaxClaims - s.cfg.MaxClaims/keyPart, what: "namespace",
		hint: "let the server be started with a higher --max-claims",
	}
	if who.Namespace == "" {
		of.name, of.what = who.shareName(), "key"
	}
	return []share{of}
}

// shareName is in which share the calls of a key count. A login has no id: its name counts.
func (c *caller) shareName() string { return "key/" + c.KeyID + "/" + c.Name }

// keyPart is which part of the readers' seats, and of the memory for bodies, one key holds at most, and which part of the seats one namespace
// leaves to others.
const keyPart = 4
