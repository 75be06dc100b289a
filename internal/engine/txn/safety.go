package txn

import "sync"

// Safety tracks the durability of a transaction: until it is known, nothing of it may become visible outside of this process. The engine itself
// continues at once and builds on the transaction. That is correct because later transactions cannot become durable without the earlier one.
type Safety struct {
	e     *Engine
	mu    sync.Mutex
	known bool
	err   error // not nil: the outcome is unknown
	later []func(error)
}

// reached reports the outcome and calls the waiting functions in their order. Functions that are added meanwhile are called after them.
func (s *Safety) reached(err error) {
	for {
		later := s.take(err)
		if len(later) == 0 {
			return
		}
		for _, f := range later {
			_ = s.e.Guard(inCommit, func() { f(err) }) // a panic in one must not keep the others from being called
		}
	}
}

// take removes and returns the waiting functions. If there are none, the outcome is known from now on, and then calls functions directly.
func (s *Safety) take(err error) (later []func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	later, s.later = s.later, nil
	if len(later) == 0 {
		s.known, s.err = true, err
	}
	return later
}

// Then calls f with the outcome as soon as it is known, in the order of the calls. A nil safety is the one of no transaction: f is called at once.
func (s *Safety) Then(f func(error)) {
	if s == nil {
		f(nil)
		return
	}
	if known, err := s.wait(f); known {
		f(err)
	}
}

// wait adds f to the waiting functions, unless the outcome is known.
func (s *Safety) wait(f func(error)) (known bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known {
		s.later = append(s.later, f)
	}
	return s.known, s.err
}
