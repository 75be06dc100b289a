package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Move is one step of a plan. It draws from a seed of its own, so that leaving out another one does not change it.
type Move struct {
	Kind string
	Seed uint64
}

// Plan is what is done in a history.
type Plan struct {
	Seed      uint64
	Processes int
	Moves     []Move
}

// String shows the plan in the form that a failure is kept in.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %d processes:", p.Seed, p.Processes)
	for _, m := range p.Moves {
		fmt.Fprintf(&b, " %s/%x", m.Kind, m.Seed)
	}
	return b.String()
}

// kind is a kind of move.
type kind struct {
	name   string
	weight int
	fault  bool
	always bool // part of every history
	do     func(w *World, r *rand.Rand)
}

// Draw draws the plan of a history with so many commands. Each history has some of the features, so that those that it has meet more often.
func Draw(seed uint64, commands int) Plan { return draw(seed, commands).withStreams() }

func draw(seed uint64, commands int) Plan {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // G404: a history is repeated from its seed
	p := Plan{Seed: seed, Processes: 2 + r.IntN(2)}
	var some []kind
	faults := r.IntN(8) > 0
	for _, k := range kinds() {
		if k.always || r.IntN(3) > 0 && (!k.fault || faults) {
			some = append(some, k)
		}
	}
	total := 0
	for _, k := range some {
		total += k.weight
	}
	for n := 0; n < commands; {
		at := r.IntN(total)
		i := slices.IndexFunc(some, func(k kind) bool { at -= k.weight; return at < 0 })
		p.Moves = append(p.Moves, Move{some[i].name, r.Uint64()})
		if !some[i].fault {
			n++
		}
	}
	return p
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }
