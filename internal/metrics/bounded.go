package metrics

import "sync"

// Bounded lets the first values of a label through and calls all others Other, so that what users invent cannot grow the
// metrics without end (U199). The zero value is ready.
type Bounded struct {
	mu    sync.Mutex
	known map[string]bool
}

// Value is the label for a value.
func (b *Bounded) Value(value string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.known[value]:
		return value
	case len(b.known) >= MaxValues:
		return Other
	case b.known == nil:
		b.known = map[string]bool{}
	}
	b.known[value] = true
	return value
}
