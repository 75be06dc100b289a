package server

import (
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
			return refuse("rate_limited", "the "+one.what+" has as many calls waiting as it may").after(time.Second).current("limit", one.most).hint(one.hint)
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
func (s *Server) sit(x *exchange, all *seats) (leave func(), err error) {
	shares := s.sharesOf(x.caller)
	if all == s.claims {
		shares = s.claimShareOf(x.caller)
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
func (s *Server) sharesOf(who caller) []share {
	if who.key == nil {
		return nil
	}
	perKey := s.cfg.MaxReadersPerKey
	shares := []share{{who.shareName(), perKey, "key", "ask without waiting, or let the server be started with a higher --max-readers-per-key"}}
	if who.Namespace != "" && !who.everywhere {
		most := max(perKey, s.cfg.MaxReaders-s.cfg.MaxReaders/keyPart)
		shares = append(shares, share{"namespace/" + who.Namespace, most, "namespace", "ask without waiting, or let the server be started with a higher --max-readers"})
	}
	return shares
}

// claimShareOf returns the share that a claim counts against. A key for several namespaces that names none of them has a share of
// its own.
func (s *Server) claimShareOf(who caller) []share {
	if who.key == nil || who.everywhere {
		return nil
	}
	of := share{"namespace/" + who.Namespace, s.cfg.MaxClaims - s.cfg.MaxClaims/keyPart, "namespace", "let the server be started with a higher --max-claims"}
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
