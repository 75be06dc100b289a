package txn

import (
	"context"
	"iter"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Ring is the ring of a transaction of its own, and the moment of that.
func (e *Engine) Ring(ctx context.Context) (*keyring.Ring, base.Time, error) {
	r := &ringLook{}
	err := e.Do(ctx, r)
	return r.ring, r.now, err
}

// Unloaded is what a transaction says of a ring whose keys it has not loaded.
func (e *Engine) Unloaded(ctx context.Context) error { return e.Do(ctx, &ringLook{forgets: true}) }

// ringLook is Ring on its way.
type ringLook struct {
	forgets bool // to name the rows that it needs
	ring    *keyring.Ring
	now     base.Time
}

func (*ringLook) Name() string { return "look_at_ring" }

func (r *ringLook) Want(w *store.Want, _ bool) {
	if !r.forgets {
		wantKeys(w)
	}
}

func (r *ringLook) Decide(u *Tx) (err error) {
	r.now = u.Now
	r.ring, err = u.ring()
	return err
}

// Claimants is how many calls wait for work, whether they have looked or not.
func (e *Engine) Claimants() int { return e.picker.waiters() }

// WaitingClaims is how many calls have looked and wait for work.
func (e *Engine) WaitingClaims() (n int) {
	e.picker.mu.Lock()
	defer e.picker.mu.Unlock()
	for _, call := range e.picker.waiting {
		if call.looked && !call.serving {
			n++
		}
	}
	return n
}

// TimerLabels are the labels of the timers that the sweep turns; "": one of them has none.
func (e *Engine) TimerLabels() (labels []string) {
	for kind := range sweepRules {
		labels = appendNew(labels, timerName(kind))
	}
	for kind := range e.extensions.timers {
		labels = appendNew(labels, timerName(kind))
	}
	return labels
}

// KnownGauges are the gauges that the process itself knows: who polls them does not wait for the store.
func (e *Engine) KnownGauges() metrics.Collector { return knownGauges{e.Gauges} }

type knownGauges struct{ *gauges }

// Collect tells the present values.
func (k knownGauges) Collect() []metrics.Family { return k.known() }

// MarkRemoval begins the removal of a rule and goes no further, as a process does that ends in between.
func (e *Engine) MarkRemoval(ctx context.Context, key string) error {
	return e.Do(ctx, &setMark{&removalMark{key: key, Token: e.Mint()}})
}

// EndChildren is the follow-up work that the end of a parent leaves for its children.
func (e *Engine) EndChildren(ctx context.Context, parent base.GivenID, flow base.ID) error {
	loaded, err := e.Store.Read(ctx, store.Want{Executions: []base.UUID{parent.UUID}})
	if err != nil {
		return err
	}
	return e.endChildren(ctx, task{Kind: taskEndChildren, Execution: parent.UUID, Flow: flow.UUID, End: endOf(loaded.Executions[parent.UUID])})
}

// EndNode tells a flow node once more that its sub-flow has ended, as a second process does that has the same follow-up work (S64).
func (e *Engine) EndNode(ctx context.Context, sub base.ID) error {
	return e.endNode(ctx, task{Kind: taskEndNode, Flow: sub.UUID})
}

// FailNode is what a process does that has seen a flow node and cannot make its sub-flow.
func (e *Engine) FailNode(ctx context.Context, seen *core.Execution, why error) error {
	return e.failNode(ctx, seen, why)
}

// SetApart is how many commands wait for rows that other transactions hold.
func (e *Engine) SetApart() int { return e.held.depth() }

// LookedInto reports whether it is known what was lost when the database came back.
func (e *Engine) LookedInto() bool { return len(e.lives.asked()) == 0 }

// Kept is how much the picker keeps for queues and keys.
type Kept struct{ Queues, Candidates, Full, News int }

// KeptForKeys counts what the picker keeps.
func (e *Engine) KeptForKeys() (k Kept) {
	p := e.picker
	p.mu.Lock()
	defer p.mu.Unlock()
	k.Queues, k.Full, k.News = len(p.queues), len(p.full), len(p.news.list)
	for _, m := range p.matched {
		for _, lane := range m.lanes {
			lane.any() // leaves out what is worthless at the top
			k.Candidates += len(lane.turns)
		}
	}
	return k
}

// Project waits until the search rows hold all that was committed.
func (e *Engine) Project(ctx context.Context) error { return e.Follower.ReachAll(ctx) }

// Polls is how many polls of the sweep have begun. Each begins when the one before has been acted on.
func (e *Engine) Polls() uint64 {
	e.picker.mu.Lock()
	defer e.picker.mu.Unlock()
	return e.picker.polls
}

// ClockSeen is the store's clock as the last poll has read it.
func (e *Engine) ClockSeen() base.Time {
	e.Sweep.mu.Lock()
	defer e.Sweep.mu.Unlock()
	return e.Sweep.clock.store
}

// ReadLog reads what other processes have committed, and returns where the log is now known to end.
func (e *Engine) ReadLog(ctx context.Context) int64 {
	for e.Log.catchUp(ctx) {
	}
	end, _ := e.Log.Position()
	return end
}

// RegisterKind makes the class of a kind known, as the submit of an execution does before it is created.
func (e *Engine) RegisterKind(ctx context.Context, kind string) error {
	_, err := e.Dict.classOf(ctx, core.Class{Namespace: "default", Lane: "default", Kind: kind})
	return err
}

// TimerLabel is the label of a kind of timers.
func TimerLabel(kind store.TimerKind) string { return timerName(kind) }

// TimerRow is the first row that a timer is for.
func TimerRow(t store.Timer) string {
	if byID(t.Kind) {
		return t.IDs[0].String()
	}
	return t.Texts[0]
}

// IdleLooks is how many classes of a fairness key are looked at one by one to judge whether it is idle.
const IdleLooks = idleLooks

// ClassesUnder are n classes that the picker knows under one fairness key: how many there are, and themselves.
func ClassesUnder(key string, n int) (count func() int, all iter.Seq[*core.Class]) {
	k := &keyedClasses{}
	for i := range n {
		k.add(key, &core.Class{ID: int32(i)})
	}
	return func() int { return k.count(key) }, k.of(key)
}

// NeedsKept is how many parsed needs of classes are kept of late.
const NeedsKept = needsKept

// NeedsOf reads the needs of classes by their numbers; all have the same.
func NeedsOf(needs string) func(class int32) *core.Needs {
	t := newClassTable(0)
	return func(class int32) *core.Needs { return t.needs(&core.Class{ID: class, Needs: needs}) }
}

// ClassesOf are the numbers of those classes that name a quota, and how many needs were parsed to find them.
func ClassesOf(classes []*core.Class, quota string) (found []int32, parsed int) {
	d := newDictionary(&store.Dictionary{Classes: classes})
	found = ClassNumbers(d.ClassesOf(quota, everyClass))
	return found, len(d.table.parsed) + len(d.table.older)
}
