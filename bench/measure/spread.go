package measure

import (
	"fmt"
	"slices"
)

// Spread is the middle of values and how far they lie apart.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	N      int     `json:"n"`
}

// SpreadOf describes values; it sorts them. Of an even number the median is the mean of the middle two.
func SpreadOf(values []float64) Spread {
	n := len(values)
	if n == 0 {
		return Spread{}
	}
	slices.Sort(values)
	s := Spread{Median: values[n/2], Min: values[0], Max: values[n-1], N: n}
	if n%2 == 0 {
		s.Median = (values[n/2-1] + values[n/2]) / 2
	}
	return s
}

// Overlaps reports whether some value could belong to both.
func (s Spread) Overlaps(other Spread) bool { return s.Min <= other.Max && other.Min <= s.Max }

// Figure prints the three digits of a value that matter, or more of a large one.
func Figure(v float64) string {
	switch {
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
