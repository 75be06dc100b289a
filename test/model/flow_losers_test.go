package model

import "slices"

// Why a loser is cancelled (F31). Joins that were decided both ways at once may each cancel it, and whose follow-up work comes first is
// not fixed: byEither stands for the one or the other.
const (
	bySatisfied, byImpossible = "join_satisfied", "join_impossible"
	byEither                  = "join_satisfied or join_impossible"
)

// races are the decisions whose losers are not cancelled yet.
type races struct {
	left map[string]int // by why they will be
	torn bool           // there were some of both kinds at a time
}

// leaveLosers leaves it to follow-up work to cancel those of the candidates that are not needed since a decision.
func (w *fabric) leaveLosers(held bool, candidates []*knot) {
	why := byImpossible
	if held {
		why = bySatisfied
	}
	if w.races.left == nil {
		w.races.left = map[string]int{}
	}
	w.races.left[why]++
	w.races.torn = w.races.torn || w.races.left[bySatisfied] > 0 && w.races.left[byImpossible] > 0
	w.work = append(w.work, func() {
		w.losers(why, candidates)
		w.races.left[why]--
	})
}

// losers ends those of the candidates that no undecided join needs, and then those that lead to them alone (F30, F31).
func (w *fabric) losers(why string, candidates []*knot) {
	if w.races.torn {
		why = byEither
	}
	for len(candidates) > 0 {
		k := candidates[0]
		candidates = candidates[1:]
		if final(k.status) || k.isOutput() {
			continue
		}
		if w.needed(k) {
			w.happened("a candidate that is still needed")
			continue
		}
		w.happened("lost: " + why)
		w.end(k, cancelled, why)
		candidates = append(candidates, upstreams(k)...)
	}
}

// lost reports whether a join has cancelled the member.
func (k *knot) lost() bool {
	return k.status == cancelled && (k.why == bySatisfied || k.why == byImpossible || k.why == byEither)
}

func (k *knot) isOutput() bool { return k.net != nil && k.net.output == k.name }

// needed reports whether an undecided join, or the wait of a parent, needs the member.
func (w *fabric) needed(k *knot) bool {
	for _, t := range k.outbound() {
		if !final(t.to.status) && t.to.join == pending {
			return true
		}
	}
	return slices.ContainsFunc(w.knots, func(p *knot) bool {
		return p.wait != nil && p.wait.cause == "" && slices.Contains(p.wait.children, k)
	})
}
