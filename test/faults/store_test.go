package faults

import (
	"errors"
	"sync"

	"github.com/flowfabric/flowfabric/internal/quiescence"
	"github.com/flowfabric/flowfabric/internal/store"
)

// fault is what happens to one call of the store.
type fault string

const (
	deadlock fault = "before it is applied" // nothing happens, the database says so and asks to try again
	dropped  fault = "connection dropped"   // nothing happens, and no error comes
	lost     fault = "after it is applied"  // it happens, the answer is lost

	// The same of calls that write alone, where those that read are nothing new.
	aborted        fault = "before its write is applied"
	unacknowledged fault = "after its write is applied"
)

var errInjected = errors.New("the test failed this call")

// faulty fails one call of a store.
type faulty struct {
	family  *quiescence.Family // whose calls these are
	mu      sync.Mutex
	left    int // calls until the fault; 0: none comes
	kind    fault
	reached string // the call that failed
}

// arm makes the n-th call from now on fail.
func (f *faulty) arm(n int, kind fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.kind, f.reached = n, kind, ""
}

// disarm ends it and names the call that failed, "" when none did.
func (f *faulty) disarm() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = 0
	return f.reached
}

// strike tells what happens to this call.
func (f *faulty) strike(call string, writes bool) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 || !writes && (f.kind == aborted || f.kind == unacknowledged) {
		return ""
	}
	if f.left--; f.left > 0 {
		return ""
	}
	f.reached = call
	return f.kind
}

// around runs a call, or what the fault leaves of it. A lost answer of a call that only reads is as good as no call.
func (f *faulty) around(call string, writes bool, run func() error) error {
	switch f.strike(call, writes) {
	case deadlock, aborted:
		return &store.Fault{Kind: store.Retry, Err: errInjected}
	case dropped:
		return &store.Fault{Kind: store.Unavailable, Err: errInjected}
	case lost, unacknowledged:
		if err := f.family.During(run); err != nil {
			return err
		}
		if !writes {
			return &store.Fault{Kind: store.Unavailable, Err: errInjected}
		}
		return &store.Fault{Kind: store.Unknown, Err: errInjected}
	default:
		return f.family.During(run)
	}
}
