package engine

import "sync"

// safety is when what a transaction did can be told to others: once it cannot be lost any more. The engine itself goes on before that,
// and builds on it; what comes later is lost together with it or not at all.
type safety struct {
	mu    sync.Mutex
	known bool
	err   error // the outcome is unknown
	later []func(error)
}

// reached says how it went. Who comes while others are told comes after them.
func (s *safety) reached(err error) {
	for {
		s.mu.Lock()
		later := s.later
		s.later = nil
		if len(later) == 0 {
			s.known, s.err = true, err
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		for _, f := range later {
			f(err)
		}
	}
}

// then calls f when it is known, in the order of the calls. Who has no transaction need not wait.
func (s *safety) then(f func(error)) {
	if s == nil {
		f(nil)
		return
	}
	s.mu.Lock()
	if !s.known {
		s.later = append(s.later, f)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	f(s.err)
}
