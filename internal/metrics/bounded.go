package metrics

import "sync"

// Bounded keeps the first values of a label and replaces all others by Other, so that user-defined values cannot grow the metrics
// without limit (U199). The zero value is ready to use.
type Bounded struct {
	mu    sync.Mutex
	known map[string]bool
}

// Value returns the label value to use.
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
