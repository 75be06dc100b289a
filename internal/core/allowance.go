package core

import "math"

// Allowance is what all processes together have used of a limit (U129): how often something happened in the last second, and how
// many of them are under way. It is one small record, so that the limit holds however many processes there are.
type Allowance struct {
	// Slices counts by tenth of a second, Newest is the number of the last of them. Eleven slices cover a second wherever it begins.
	Slices [allowanceSlices]int64 `json:"slices"`
	Newest int64                  `json:"newest"`
	// Debt is what was taken at once beyond what a second allows. Nothing is allowed until it is paid off, at the same rate.
	Debt float64 `json:"debt,omitempty"`
	// Held has the places of each process.
	Held map[string]Holding `json:"held,omitempty"`
}

// Holding is the places that a process holds until it says so again, or until a moment after which it counts as gone.
type Holding struct {
	Places int  `json:"places"`
	Until  Time `json:"until"`
}

const (
	allowanceSlice  = Second / 10
	allowanceSlices = 11
	holdingFor      = 15 * Second
	blocksASecond   = 40 // so often a second a process asks for more, at most: what one has left is 2.5 % of the limit
)

// Take takes so many of what may happen perSecond, and a few more, so that not every one of them must ask. What is taken beyond a
// second's worth must be paid off first. got is 0 when there are none: then wait tells when there may be some.
func (a *Allowance) Take(now Time, perSecond, want int) (got int, wait Millis) {
	a.advance(now, perSecond)
	used := a.used()
	switch room := int64(perSecond) - used; {
	case a.Debt > 0:
		return 0, Millis(math.Ceil(a.Debt * float64(Second) / float64(perSecond)))
	case room <= 0:
		return 0, a.roomAfter(now, int64(perSecond))
	default:
		taken := max(int64(want), min(room, int64(perSecond/blocksASecond)))
		a.Slices[a.Newest%allowanceSlices] += min(taken, room)
		a.Debt = float64(taken - min(taken, room))
		return int(taken), 0
	}
}

// advance forgets what was longer ago than a second, and pays off debt.
func (a *Allowance) advance(now Time, perSecond int) {
	slice := int64(now) / allowanceSlice
	if slice <= a.Newest { // also when the clock was set back
		return
	}
	passed := slice - a.Newest
	for i := range min(passed, allowanceSlices) {
		a.Slices[(slice-i)%allowanceSlices] = 0
	}
	a.Debt = max(0, a.Debt-float64(passed)*float64(perSecond)*float64(allowanceSlice)/float64(Second))
	a.Newest = slice
}

func (a *Allowance) used() (sum int64) {
	for _, n := range a.Slices {
		sum += n
	}
	return sum
}

// roomAfter tells how long it takes until enough is longer ago than a second.
func (a *Allowance) roomAfter(now Time, perSecond int64) Millis {
	sum := a.used()
	for i := a.Newest - allowanceSlices + 1; i <= a.Newest; i++ {
		if i < 0 {
			continue
		}
		if sum -= a.Slices[i%allowanceSlices]; sum < perSecond {
			return max(1, (i+allowanceSlices)*allowanceSlice-int64(now))
		}
	}
	return Second
}

// Hold states how many places of most a process wants to hold from now on, and answers how many it does. Those of a process that
// has not said so for long are free.
func (a *Allowance) Hold(now Time, holder string, most, want int) int {
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
