package txn

import (
	"context"

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
		WantKeys(w)
	}
}

func (r *ringLook) Decide(u *Tx) (err error) {
	r.now = u.Now
	r.ring, err = u.Ring()
	return err
}

// TimerLabels are the labels of the timers that the sweep turns; "": one of them has none.
func (e *Engine) TimerLabels() (labels []string) {
	for kind := range sweepRules {
		labels = AppendNew(labels, timerName(kind))
	}
	for kind := range e.extensions.timers {
		labels = AppendNew(labels, timerName(kind))
	}
	return labels
}

// KnownGauges are the gauges that the process itself knows: who polls them does not wait for the store.
func (e *Engine) KnownGauges() metrics.Collector { return knownGauges{e.Gauges} }

type knownGauges struct{ *gauges }

// Collect tells the present values.
func (k knownGauges) Collect() []metrics.Family { return k.known() }

// SetApart is how many commands wait for rows that other transactions hold.
func (e *Engine) SetApart() int { return e.Held.depth() }

// LookedInto reports whether it is known what was lost when the database came back.
func (e *Engine) LookedInto() bool { return len(e.lives.asked()) == 0 }

// Project waits until the search rows hold all that was committed.
func (e *Engine) Project(ctx context.Context) error { return e.Follower.ReachAll(ctx) }

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
	_, err := e.Dict.ClassOf(ctx, core.Class{Namespace: "default", Lane: "default", Kind: kind})
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

// NeedsKept is how many parsed needs of classes are kept of late.
const NeedsKept = needsKept

// NeedsOf reads the needs of classes by their numbers; all have the same.
func NeedsOf(needs string) func(class int32) *core.Needs {
	t := newClassTable(0)
	return func(class int32) *core.Needs { return t.needs(&core.Class{ID: class, Needs: needs}) }
}

// DictionaryOf returns a dictionary of classes, and a function that returns how many of their needs were parsed.
func DictionaryOf(classes []*core.Class) (d *Dictionary, parsed func() int) {
	d = newDictionary(&store.Dictionary{Classes: classes})
	return d, func() int { return len(d.Table.parsed) + len(d.Table.older) }
}
