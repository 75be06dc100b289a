package model

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// fabric is a second set of books on flows, kept as the specification says and without a line of the rules that the engine decides by.
// What a join counts is never stored: it is counted from the threads each time, and its fate is read off the best and the worst that can
// still become of them (FI3, FI5).
type fabric struct {
	now   func() base.Time
	nets  []*net
	knots []*knot

	ended    []*knot  // whose ends are not known yet
	work     []func() // that follows a commit
	races    races
	happened func(what string)
}

// net is a flow.
type net struct {
	label    string             // how this test calls it
	ids      map[string]base.ID // by store
	state    string
	sealed   bool
	revision int64
	output   string
	knots    []*knot
	threads  []*thread
	cancel   *stop
	parent   *knot // a flow node, or who spawned the members
	spawned  bool  // it is a children flow
	onEnd    string
	told     []string // the kinds of its events
}

// stop is what was asked of a flow that is cancelled.
type stop struct{ policy, reason string }

// knot is an execution: a member of a flow, or one outside.
type knot struct {
	plan
	text    string // its submitted input
	origin  plan   // as it was asked for
	net     *net
	ids     map[string]base.ID // by store
	fences  map[string]core.Fence
	lateIn  bool  // it was there before it became a member
	part    uint8 // its partition number (F2)
	status  string
	why     string // its reason, where that is a matter of flows
	join    string // state of its join
	run     int
	started bool // it was claimed in this run
	epoch   int64
	resumes bool // the next claim goes on with the same attempt
	held    bool

	delayUntil, deadline, endsAt base.Time // endsAt: of its lease or grant
	retriesLeft                  int
	gift                         *string // its result; nil: none
	inputs                       map[string]entry
	byCancel                     bool // a cancel of its flow ended it

	below    *net // the sub-flow or the children of this run
	wait     *await
	timeouts map[string]base.Time // of waits of this run, by what they ask for
	lastWait *engine.ChildrenWaitRequest
	lastSeen map[string]string // the outcomes of children that its last wait was answered with
	prints   bool              // it was spawned
	deeds    []deed            // steps that the present run sees
	stepped  bool              // it has written one, in whatever run
}

// plan is what a node is made of.
type plan struct {
	name    string
	lane    string
	spec    core.JoinSpec
	mayFail bool
	delay   base.Millis
	life    base.Millis // from its submit, or its replay; 0: for ever
	retries int
	replays int   // how often it may be replayed
	sub     *plot // of a flow node
	after   []string
	variant string // tells nodes of one name apart
}

// plot is a graph that is yet to be made.
type plot struct {
	plans  []plan
	lines  []line
	output string
}

// line is an edge that is yet to be made.
type line struct{ from, to, kind, pass string }

// thread is an edge.
type thread struct {
	from, to   *knot
	kind, pass string
	outcome    string // of the upstream that resolved it; "": it is pending
	run        int
	at         base.Time
	gift       *string
}

// entry is a named input (F34).
type entry struct {
	From    string
	Outcome string
	Present bool
	Data    string
}

// await is a wait for children (F40).
type await struct {
	children  []*knot
	spec      core.JoinSpec
	kind      string
	timeoutAt base.Time
	cause     string            // "": it is open
	seen      map[string]string // the outcomes of the children when it ended
}

const (
	success, failure, whatever = "success_only", "failure_only", "any_terminal"

	succeeded, failed, cancelled, expired, skipped = "succeeded", "failed", "cancelled", "expired", "skipped"
	ready, blocked, working                        = "ready", "blocked", "running"

	forJoin, forSub, byHold = "waiting_for_children", "waiting_for_subflow", "paused_by_operator"

	pending, satisfied, impossible, overridden = "pending", "satisfied", "impossible", "overridden"

	open, cancelling, completed = "open", "cancelling", "completed"
)

func final(status string) bool {
	return slices.Contains([]string{succeeded, failed, cancelled, expired, skipped}, status)
}

// meets is the first table of section 5.
func meets(kind, outcome string) bool {
	return slices.Contains(map[string][]string{
		success:  {succeeded},
		failure:  {failed, expired, cancelled},
		whatever: {succeeded, failed, expired, cancelled, skipped},
	}[kind], outcome)
}

// fateOf is what becomes of a join: each edge is met, lost, or may still become either. A join that has enough edges even at the worst holds, one that
// has too few even at the best is lost (FI5).
func fateOf(spec core.JoinSpec, met, lost, open int, sealed bool) string {
	n := met + lost + open
	enough := n
	switch spec.Policy {
	case core.AnyOf:
		enough = 1
	case core.Quorum:
		enough = spec.K
	}
	worst, best := met, n-lost
	if !sealed && enough > n {
		return pending // more edges may come (F24)
	}
	switch {
	case n == 0:
		return ""
	case worst >= enough:
		return satisfied
	case best < enough:
		return impossible
	default:
		return pending
	}
}

// tally counts the edges that lead to a member.
func (k *knot) tally() (met, lost, open int) {
	for _, t := range k.inbound() {
		switch {
		case t.outcome == "":
			open++
		case meets(t.kind, t.outcome):
			met++
		default:
			lost++
		}
	}
	return met, lost, open
}

func (k *knot) inbound() []*thread {
	return k.threads(func(t *thread) bool { return t.to == k })
}

func (k *knot) outbound() []*thread {
	return k.threads(func(t *thread) bool { return t.from == k })
}

func (k *knot) threads(which func(t *thread) bool) (some []*thread) {
	if k.net == nil {
		return nil
	}
	for _, t := range k.net.threads {
		if which(t) {
			some = append(some, t)
		}
	}
	return some
}

// gate lets a knot pass that waits (L14).
func (w *fabric) gate(k *knot) {
	k.why = ""
	switch {
	case k.join == pending:
		k.status, k.why = blocked, forJoin
	case k.sub != nil:
		k.status, k.why = blocked, forSub
	case k.delayUntil > w.now():
		k.status = delayed
	case k.held:
		k.status, k.why = blocked, byHold
	default:
		k.status, k.delayUntil = ready, 0
	}
}

// end is the way into every terminal status.
func (w *fabric) end(k *knot, status, why string) {
	if final(k.status) {
		return
	}
	k.status, k.why = status, why
	k.held, k.delayUntil, k.endsAt, k.resumes = false, 0, 0, false
	if k.wait != nil && k.wait.cause == "" {
		k.wait = nil
	}
	if why == "flow_cancelled" && k.net != nil && k.net.cancel != nil {
		k.byCancel = true
	}
	w.ended = append(w.ended, k)
}

// leave ends a lease; what comes next is resumed where that is said.
func (k *knot) leave(resumes bool) { k.endsAt, k.resumes = 0, resumes }

// follow lets everything happen that follows from what has been done: first what belongs to the same commit, round by round, then one
// piece of follow-up work after the other.
func (w *fabric) follow() {
	for {
		for len(w.ended) > 0 {
			round := w.ended
			w.ended = nil
			w.tell(round)
		}
		for _, n := range slices.Clone(w.nets) {
			w.endNet(n)
		}
		if len(w.work) == 0 {
			w.races = races{}
			return
		}
		next := w.work[0]
		w.work = w.work[1:]
		next()
	}
}

// tell lets the graph know of knots that have ended together (F28).
func (w *fabric) tell(round []*knot) {
	var reached []*knot
	for _, k := range round {
		// A node that ends because its sub-flow has leaves the members of that alone: flow_only touches none (F49).
		if k.below != nil && (k.below.spawned || !k.below.isOver()) {
			below, status := k.below, k.status
			w.work = append(w.work, func() { w.parentEnded(k, below, status) })
		}
		for _, t := range k.outbound() {
			if t.outcome == "" {
				t.resolve(w.now())
				if !slices.Contains(reached, t.to) {
					reached = append(reached, t.to)
				}
			}
		}
	}
	for _, k := range w.knots { // as these ends leave it: what follows from them is the next round
		w.decideWait(k)
	}
	for _, k := range reached {
		w.decide(k)
	}
}

func (t *thread) resolve(now base.Time) {
	t.outcome, t.run, t.at, t.gift = t.from.status, t.from.run, now, t.from.gift
	if t.outcome != succeeded {
		t.gift = nil
	}
}

// decide decides the join of a member that is blocked on it, if its edges do (F25, F26).
func (w *fabric) decide(k *knot) {
	if k.join != pending || final(k.status) {
		return
	}
	met, lost, open := k.tally()
	switch fateOf(k.spec, met, lost, open, k.net.sealed) {
	case satisfied:
		w.holds(k, satisfied)
	case impossible:
		k.join = impossible
		if k.spec.Policy == core.Quorum && k.spec.K > met+lost+open {
			w.happened("a quorum out of reach")
		}
		w.happened("join: impossible")
		w.end(k, skipped, "dependency_impossible")
		w.follows(k)
	}
}

// holds lets a member go.
func (w *fabric) holds(k *knot, join string) {
	k.join = join
	k.inputs = k.freeze()
	w.happened("join: " + join)
	w.gate(k)
	w.follows(k)
}

// follows is what a decided join asks for beside its member.
func (w *fabric) follows(k *knot) {
	if _, _, open := k.tally(); k.spec.OnSatisfied == core.CancelRemaining && open > 0 {
		var waiting []*knot // by their edges
		for _, t := range k.inbound() {
			if t.outcome == "" {
				waiting = append(waiting, t.from)
			}
		}
		w.leaveLosers(k.join == satisfied, waiting)
	}
	w.begins(k)
}

// begins leaves it to follow-up work to make the sub-flow of a node that may start (F46).
func (w *fabric) begins(k *knot) {
	if k.status == blocked && k.why == forSub {
		w.work = append(w.work, func() { w.beginSub(k) })
	}
}

func upstreams(k *knot) (from []*knot) {
	for _, t := range k.inbound() {
		from = append(from, t.from)
	}
	return from
}

// freeze is F35 and F36: of edges that share a name the one counts that was resolved first, and of those of one moment the first by name.
func (k *knot) freeze() map[string]entry {
	inputs := map[string]entry{}
	first := map[string]*thread{}
	for _, t := range k.inbound() {
		if t.pass == "" || t.outcome == "" || !meets(t.kind, t.outcome) {
			continue
		}
		if before := first[t.pass]; before != nil && (before.at < t.at || before.at == t.at && before.from.name < t.from.name) {
			continue
		}
		first[t.pass] = t
		in := entry{From: t.from.name, Outcome: t.outcome, Present: t.gift != nil}
		if t.gift != nil {
			in.Data = *t.gift
		}
		inputs[t.pass] = in
	}
	return inputs
}
