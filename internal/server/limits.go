package server

import (
	"context"
	"net/netip"
	"sync"
	"time"
)

// The bounds of failed authentications (U129).
const (
	maxFailures   = 20
	failureSpan   = time.Minute
	maxRemembered = 1 << 16 // addresses
	maxTries      = 8       // at a time, from all addresses that are blocked
)

// failures counts failed authentications by address. An address is forgotten a minute after its first failure, or after the one
// that was too many.
type failures struct {
	slots chan struct{} // for tries from addresses that are blocked

	mu        sync.Mutex
	byAddress map[string]*failed
}

type failed struct {
	count  int
	forget *time.Timer
}

func newFailures() *failures {
	return &failures{slots: make(chan struct{}, maxTries), byAddress: map[string]*failed{}}
}

// try checks a credential and reports whether its address is blocked. A valid one must be accepted from there too: behind a proxy
// all callers have one address. The number of such checks at a time is bounded, so that guessing costs the store little.
func (f *failures) try(ctx context.Context, address string, look func() error) (blocked bool, err error) {
	if !f.blocked(address) {
		return false, look()
	}
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
		return true, ctx.Err()
	}
	defer func() { <-f.slots }()
	return true, look()
}

// blocked reports whether too many authentications from the address failed.
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

// group is what counts as one address. When too many are remembered the rest count as one.
func (f *failures) group(address string) string {
	if parsed, err := netip.ParseAddr(address); err == nil {
		address = oneHost(parsed)
	}
	if _, known := f.byAddress[address]; !known && len(f.byAddress) >= maxRemembered {
		return ""
	}
	return address
}
