package engine

import "sync"

// safety is when what a transaction did can be told to others: once it cannot be lost any more. The engine itself goes on before that,
// and builds on it; what comes later is lost together with it or not at all.
type safety struct {
	e     *Engine
	mu    sync.Mutex
	known bool
	err   error // the outcome is unknown
	later []func(error)
}

// reached says how it went. Who comes while others are told comes after them.
func (s *safety) reached(err error) {
	for {
		later := s.take(err)
		if len(later) == 0 {
			return
		}
		for _, f := range later {
			_ = s.e.contain(inCommit, func() { f(err) }) // one that panics keeps no other from its answer
		}
	}
}

// take returns those who wait; none: from now on it is known.
func (s *safety) take(err error) (later []func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	later, s.later = s.later, nil
	if len(later) == 0 {
		s.known, s.err = true, err
	}
	return later
}

// then calls f when it is known, in the order of the calls. Who has no transaction need not wait.
func (s *safety) then(f func(error)) {
	if s == nil {
		f(nil)
		return
	}
	if known, err := s.wait(f); known {
		f(err)
	}
}

// wait lets f wait, unless it is known how it went.
func (s *safety) wait(f func(error)) (known bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known {
		s.later = append(s.later, f)
	}
	return s.known, s.err
}
