package sim

import (
	"math/rand/v2"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/store"
)

// faults are the moves that make things fail.
func faults() []kind {
	return []kind{
		{name: "refuse", weight: 6, fault: true, do: refuse},
		{name: "lose", weight: 8, fault: true, do: lose},
		{name: "slow", weight: 5, fault: true, do: slow},
		{name: "freeze", weight: 3, fault: true, do: freeze},
		{name: "break", weight: 2, fault: true, do: breakOff},
		{name: "kill", weight: 4, fault: true, do: kill},
		{name: "hints", weight: 5, fault: true, do: hints},
		{name: "skew", weight: 2, fault: true, do: skew},
	}
}

// any returns a process that runs.
func (w *World) any(r *rand.Rand) *process {
	var list []*process
	for _, p := range w.procs {
		if !p.killed {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[r.IntN(len(list))]
}

func refuse(w *World, r *rand.Rand) {
	if p := w.any(r); p != nil {
		why := pick(r, store.Retry, store.Unavailable, store.Busy)
		w.record("p%d: a call is going to be refused: %s", p.index, why)
		for range r.IntN(3) {
			p.faults = append(p.faults, verdict{})
		}
		p.faults = append(p.faults, verdict{how: refused, refuse: why})
	}
}

func lose(w *World, r *rand.Rand) {
	if p := w.any(r); p != nil {
		w.record("p%d: an answer is going to be lost", p.index)
		for range r.IntN(4) {
			p.faults = append(p.faults, verdict{})
		}
		p.faults = append(p.faults, verdict{how: lost})
	}
}

func slow(w *World, r *rand.Rand) {
	if p := w.any(r); p != nil {
		p.slow = pick(r, 30*time.Millisecond, 200*time.Millisecond, time.Second, 4*time.Second, 40*time.Second)
		w.record("p%d: a call is going to take %v", p.index, p.slow)
	}
}

// freeze stops a process between two calls, with the locks that it holds.
func freeze(w *World, r *rand.Rand) {
	if p := w.any(r); p != nil {
		d := pick(r, 300*time.Millisecond, 2*time.Second, 6*time.Second)
		w.record("p%d is frozen for %v", p.index, d)
		p.frozen = clock.System().Now().Add(d)
	}
}

// breakOff ends the sessions of a process, as the server does with idle ones.
func breakOff(w *World, r *rand.Rand) {
	if p := w.any(r); p != nil {
		w.record("p%d: its sessions end", p.index)
		p.port.s.Break()
	}
}

// kill ends a process, or starts one that is down.
func kill(w *World, r *rand.Rand) {
	index := r.IntN(len(w.procs))
	p := w.procs[index]
	if !p.killed {
		w.record("p%d is killed", index)
		p.kill()
		if r.IntN(2) == 0 {
			return
		}
	}
	w.record("p%d is started", index)
	w.start(index)
}

func hints(w *World, r *rand.Rand) {
	p := w.any(r)
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 1 + r.IntN(6)
	switch how := r.IntN(4); how {
	case 0:
		p.lose += n
		w.record("p%d: %d hints get lost", p.index, n)
	case 1:
		p.double += n
		w.record("p%d: %d hints come twice", p.index, n)
	case 2:
		p.delay += n
		w.record("p%d: %d hints come late", p.index, n)
	default:
		d := pick(r, 300*time.Millisecond, 3*time.Second)
		p.deaf = clock.System().Now().Add(d)
		w.record("p%d hears nothing for %v", p.index, d)
	}
}

// skew sets the clock of a host. A process that runs does not see it: what it measures is measured by a clock that is never set.
func skew(w *World, r *rand.Rand) {
	index := r.IntN(len(w.procs))
	d := pick(r, -time.Hour, -3*time.Second, -200*time.Millisecond, 0, 500*time.Millisecond, 20*time.Second, time.Hour)
	w.skew[index] = d
	w.record("the clock of p%d's host is off by %v from its next start on", index, d)
}
