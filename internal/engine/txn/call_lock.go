package txn

import "context"

// CallLock is a lock that is held while the store is called. A caller that waits for it gives up when its context ends, as it would in the call
// itself; and under virtual time (testing/synctest) it is seen to wait, which is not so for a sync.Mutex.
type CallLock chan struct{}

// NewCallLock makes a lock that is free.
func NewCallLock() CallLock { return make(CallLock, 1) }

// Lock takes the lock, unless ctx ends before it is free.
func (l CallLock) Lock(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	default:
	}
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Unlock frees the lock.
func (l CallLock) Unlock() { <-l }
