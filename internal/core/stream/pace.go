package stream

import (
	"math"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Pace determines how many best-effort frames are retained (E8).
//
// Expected is the number of frames that come in twice the ttl at the present rate: r * ttl_s * 2 in the words of the rule. Keeping it in place of r loses
// nothing and makes its first value, the floor, exact.
type Pace struct {
	At       base.Time // the last append of best-effort frames
	Expected float64   // 0: nothing was appended yet
	First    int64     // ordinal of the first frame that is retained by number. It never goes back, so that what was dropped stays dropped
}

// tolerance is what rounding adds to an expected number at most.
const tolerance = 1e-6

// after returns the rate after m best-effort frames were appended at now, to the given number of frames in all.
func (r Pace) after(p *BestEffortPolicy, m int, now base.Time, frames int64) Pace {
	if r.Expected == 0 {
		r.Expected = float64(p.Floor)
	} else {
		dt := max(1, now.Sub(r.At))
		current := 2 * float64(m) * float64(p.TTLMS) / float64(dt)
		r.Expected = p.Alpha*current + (1-p.Alpha)*r.Expected
	}
	r.At = now
	r.First = max(r.First, frames-r.Kept(p)+1)
	return r
}

// Kept is the most best-effort frames that are retained, between the floor and the ceiling.
func (r Pace) Kept(p *BestEffortPolicy) int64 {
	k := math.Ceil(r.Expected - tolerance)
	return int64(min(max(k, float64(p.Floor)), float64(p.Ceiling)))
}
