package server

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// seats bounds how many calls wait at a time (U21).
type seats struct{ free chan struct{} }

func newSeats(n int) *seats { return &seats{free: make(chan struct{}, n)} }

// take takes a seat, or answers overloaded. Call leave when the call waits no more.
func (s *seats) take() (leave func(), err error) {
	select {
	case s.free <- struct{}{}:
		return func() { <-s.free }, nil
	default:
		return nil, refuse("overloaded", "too many calls are waiting").after(time.Second).current("limit", cap(s.free)).
			hint("ask without waiting, or try again later")
	}
}

// keyLimits holds what keys may do at a time and in a second, on this server (U129).
type keyLimits struct {
	mu    sync.Mutex
	byKey map[string]*keyLimit
}

type keyLimit struct {
	perSecond *rate.Limiter
	inFlight  int
}

func newKeyLimits() *keyLimits { return &keyLimits{byKey: map[string]*keyLimit{}} }

// enter lets a request of a key in, or answers rate_limited. Call leave when the request is done.
func (k *keyLimits) enter(key *Key) (leave func(), err error) {
	if key == nil || key.MaxRequestsPerSecond == 0 && key.MaxInFlight == 0 {
		return func() {}, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	limit := k.of(key)
	if key.MaxInFlight > 0 && limit.inFlight >= key.MaxInFlight {
		return nil, refuse("rate_limited", "the key has as many requests under way as it may").after(time.Second).current("limit", key.MaxInFlight)
	}
	if key.MaxRequestsPerSecond > 0 && !limit.perSecond.Allow() {
		return nil, refuse("rate_limited", "the key makes more requests a second than it may").after(time.Second).current("limit", key.MaxRequestsPerSecond)
	}
	limit.inFlight++
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		limit.inFlight--
	}, nil
}

// of finds the limit of a key and brings it up to date: keys change.
func (k *keyLimits) of(key *Key) *keyLimit {
	limit := k.byKey[key.ID]
	if limit == nil {
		limit = &keyLimit{perSecond: rate.NewLimiter(0, 0)}
		k.byKey[key.ID] = limit
	}
	if perSecond := rate.Limit(key.MaxRequestsPerSecond); limit.perSecond.Limit() != perSecond {
		limit.perSecond = rate.NewLimiter(perSecond, key.MaxRequestsPerSecond)
	}
	return limit
}

// The bounds of failed authentications (U129).
const (
	maxFailures   = 20
	failureSpan   = time.Minute
	maxRemembered = 1 << 16 // addresses
)

// failures counts failed authentications by address. An address is forgotten a minute after its first failure, or after the one
// that was too many.
type failures struct {
	mu        sync.Mutex
	byAddress map[string]*failed
}

type failed struct {
	count  int
	forget *time.Timer
}

func newFailures() *failures { return &failures{byAddress: map[string]*failed{}} }

// blocked tells whether too many authentications from the address failed.
func (f *failures) blocked(address string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.byAddress[f.group(address)]
	return known != nil && known.count >= maxFailures
}

// add counts a failure.
func (f *failures) add(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	group := f.group(address)
	known := f.byAddress[group]
	if known == nil {
		known = &failed{}
		known.forget = time.AfterFunc(failureSpan, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.byAddress, group)
		})
		f.byAddress[group] = known
	}
	if known.count++; known.count == maxFailures {
		known.forget.Reset(failureSpan)
	}
}

// group is what counts as one address: of IPv6 the network, which one host has to itself. When too many are remembered the rest
// count as one.
func (f *failures) group(address string) string {
	if parsed, err := netip.ParseAddr(address); err == nil && parsed.Is6() {
		if prefix, err := parsed.Prefix(64); err == nil {
			address = prefix.String()
		}
	}
	if _, known := f.byAddress[address]; !known && len(f.byAddress) >= maxRemembered {
		return ""
	}
	return address
}
