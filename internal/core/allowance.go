package core

import (
	"math"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Allowance is the use of a limit shared by all processes (U129): how many operations happened in the last second, and how many are under way. It
// is one small record, so the limit holds for any number of processes.
type Allowance struct {
	// Slices counts operations per tenth of a second; Newest is the number of the last slice. Eleven slices cover one second regardless of where in
	// a slice it begins.
	Slices [allowanceSlices]int64 `json:"slices"`
	Newest int64                  `json:"newest"`
	// Debt is the amount that was taken in one call beyond what a second allows. Nothing is allowed until it is paid off, at the same rate.
	Debt float64 `json:"debt,omitempty"`
	// Held maps each process to its places.
	Held map[string]Holding `json:"held,omitempty"`
}

// Holding is the number of places that a process holds until it states a new number, or until the moment after which the process counts as gone.
type Holding struct {
	Places int       `json:"places"`
	Until  base.Time `json:"until"`
}

const (
	allowanceSlice  = base.Second / 10
	allowanceSlices = 11
	holdingFor      = 15 * base.Second
	blocksASecond   = 40 // a process asks for more at most this often per second: an unused block is at most 2.5 % of the limit
)

// Take takes want of the operations allowed perSecond, and a few more, so that not every operation needs a call. What is taken beyond a second's
// worth must be paid off first. If got is 0, none are available and wait is the time until there may be some.
func (a *Allowance) Take(now base.Time, perSecond, want int) (got int, wait base.Millis) {
	a.advance(now, perSecond)
	used := a.used()
	switch room := int64(perSecond) - used; {
	case a.Debt > 0:
		return 0, base.Millis(math.Ceil(a.Debt * float64(base.Second) / float64(perSecond)))
	case room <= 0:
		return 0, a.roomAfter(now, int64(perSecond))
	default:
		taken := max(int64(want), min(room, int64(perSecond/blocksASecond)))
		a.Slices[a.Newest%allowanceSlices] += min(taken, room)
		a.Debt = float64(taken - min(taken, room))
		return int(taken), 0
	}
}

// advance drops what is older than a second and pays off debt.
func (a *Allowance) advance(now base.Time, perSecond int) {
	slice := int64(now) / allowanceSlice
	if slice <= a.Newest { // also when the clock was set back
		return
	}
	passed := slice - a.Newest
	for i := range min(passed, allowanceSlices) {
		a.Slices[(slice-i)%allowanceSlices] = 0
	}
	a.Debt = max(0, a.Debt-float64(passed)*float64(perSecond)*float64(allowanceSlice)/float64(base.Second))
	a.Newest = slice
}

func (a *Allowance) used() (sum int64) {
	for _, n := range a.Slices {
		sum += n
	}
	return sum
}

// roomAfter returns how long it takes until enough of the count is older than a second.
func (a *Allowance) roomAfter(now base.Time, perSecond int64) base.Millis {
	sum := a.used()
	for i := a.Newest - allowanceSlices + 1; i <= a.Newest; i++ {
		if i < 0 {
			continue
		}
		if sum -= a.Slices[i%allowanceSlices]; sum < perSecond {
			return max(1, (i+allowanceSlices)*allowanceSlice-int64(now))
		}
	}
	return base.Second
}

// Hold sets the number of places, out of most, that a process wants to hold from now on, and returns the number that it holds. The places of a
// process that has not called Hold for long are free.
func (a *Allowance) Hold(now base.Time, holder string, most, want int) int {
	delete(a.Held, holder)
	others := 0
	for name, h := range a.Held {
		if h.Until <= now {
			delete(a.Held, name)
			continue
		}
		others += h.Places
	}
	got := max(0, min(want, most-others))
	if got > 0 {
		if a.Held == nil {
			a.Held = map[string]Holding{}
		}
		a.Held[holder] = Holding{Places: got, Until: now.Add(holdingFor)}
	}
	return got
}
