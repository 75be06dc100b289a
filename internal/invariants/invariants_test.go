package invariants_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
	"github.com/flowfabric/flowfabric/internal/invariants"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/sqlite"
)

const now = base.Time(1_000_000)

// made is a ready execution and the events of its submit.
func made(t *testing.T) (*core.Execution, []core.Event) {
	t.Helper()
	s := core.Submission{Namespace: "n", Lane: "l", Kind: "k"}
	if err := s.Normalize(base.DefaultLimits()); err != nil {
		t.Fatal(err)
	}
	class := s.Class()
	class.ID = 1
	fx := &core.Effects{Now: now}
	x := core.NewExecution(fx, &s, base.IDOf(base.UUID{0: 2, 15: 1}), &class)
	return x, fx.Events
}

// taken is the same execution under its first lease.
func taken(t *testing.T) (*core.Execution, []core.Event) {
	t.Helper()
	x, told := made(t)
	fx := &core.Effects{Now: now + 1}
	x.Acquire(fx, core.Acquisition{LeaseID: base.UUID{1}, AttemptID: base.UUID{2}, WorkerID: "w", InstanceID: "i", TTL: 1000})
	x.TimerAt = x.WakeAt
	return x, append(told, fx.Events...)
}

func TestI17_I18_what_a_record_does_not_satisfy_is_found(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(x *core.Execution)
		want   string // begins the finding; "" for none
	}{
		"a running record is whole": {func(*core.Execution) {}, ""},
		"a lease is gone":           {func(x *core.Execution) { x.Lease = nil }, "LI1"},
		"a lease of another":        {func(x *core.Execution) { x.Lease.AttemptID = base.UUID{9} }, "LI1"},
		"an epoch too many":         {func(x *core.Execution) { x.LeaseEpoch++ }, "LI2"},
		"what comes next":           {func(x *core.Execution) { x.Next = core.NextRetry }, "LI4"},
		"held and ready":            {func(x *core.Execution) { x.Status, x.Held = core.Ready, &core.Hold{} }, "LI"},
		"over before the end":       {func(x *core.Execution) { x.CompletedAt = now }, "LI5"},
		"an attempt too many":       {func(x *core.Execution) { x.TotalAttempts++ }, "LI7"},
		"above its cap":             {func(x *core.Execution) { x.ReclaimCount = x.Policy.MaxReclaims + 1 }, "LI9"},
		"no timer":                  {func(x *core.Execution) { x.WakeAt = 0 }, "LI11"},
		"not in the due index":      {func(x *core.Execution) { x.TimerAt = 0 }, "I17"},
		"in the due index too late": {func(x *core.Execution) { x.TimerAt = x.WakeAt + 51 }, "I17"},
		"it will never be looked at": {func(x *core.Execution) {
			x.Status, x.Reason, x.Lease, x.WakeAt, x.Next = core.Blocked, core.PausedByOperator, nil, 0, core.NextReclaim
		}, "LI10"},
		"suspended without a suspension": {func(x *core.Execution) { x.Status = core.Suspended }, "WI7"},
		"a suspension that runs":         {func(x *core.Execution) { x.Waits = &core.Waits{Suspension: &core.OpenSuspension{}} }, "WI7"},
		"active without a holder": {func(x *core.Execution) {
			x.Waits = &core.Waits{Open: []core.OpenWaitpoint{{Active: true}}}
		}, "WI7"},
		"over with a waitpoint": {func(x *core.Execution) {
			x.Status, x.Waits = core.Failed, &core.Waits{Open: []core.OpenWaitpoint{{}}}
		}, "WI7"},
		"a waitpoint without a timer": {func(x *core.Execution) {
			x.Waits = &core.Waits{Open: []core.OpenWaitpoint{{ExpiresAt: x.WakeAt - 1}}}
		}, "LI11"},
		"a place without running": {func(x *core.Execution) { x.Status, x.Holds = core.Ready, []string{"lane:l"} }, "LI17"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, _ := taken(t)
			c.damage(x)
			found := invariants.Record{X: x}.Broken()
			begins := func(text string) bool { return strings.HasPrefix(text, c.want) }
			if c.want == "" && len(found) > 0 || c.want != "" && !slices.ContainsFunc(found, begins) {
				t.Errorf("found %q, want %s", found, c.want)
			}
		})
	}
}

func TestI17_I18_what_the_indexes_do_not_agree_with_is_found(t *testing.T) {
	t.Parallel()
	ready, _ := made(t)
	running, _ := taken(t)
	running.Holds = []string{"lane:l"}
	row := store.QueueRow{Class: 1, Order: ready.OrderKey, ID: ready.ID.UUID}
	other := row
	other.Order++
	for name, c := range map[string]struct {
		x        *core.Execution
		queue    []store.QueueRow
		counters map[string]int64
		want     []string
	}{
		"ready and in its queue":    {x: ready, queue: []store.QueueRow{row}},
		"ready and in no queue":     {x: ready, want: []string{"I17: "}},
		"in the queue elsewhere":    {x: ready, queue: []store.QueueRow{other}, want: []string{"I18: ", "I17: "}},
		"in the queue twice":        {x: ready, queue: []store.QueueRow{row, row}, want: []string{"I18: "}},
		"running and in the queue":  {x: running, queue: []store.QueueRow{row}, counters: map[string]int64{"lane:l": 1}, want: []string{"I18: "}},
		"a place that is not held":  {x: ready, queue: []store.QueueRow{row}, counters: map[string]int64{"lane:l": 1}, want: []string{"I18: "}},
		"a place that is not taken": {x: running, want: []string{"I18: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := invariants.Snapshot{Records: map[base.UUID]invariants.Record{c.x.ID.UUID: {X: c.x}}, Queue: c.queue, Counters: c.counters}
			found := snap.Broken()
			if len(found) != len(c.want) {
				t.Fatalf("found %q, want %q", found, c.want)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(found[i], want) {
					t.Errorf("found %q, want %q", found[i], want)
				}
			}
		})
	}
}

func TestL145_L146_events_that_tell_another_story_are_found(t *testing.T) {
	t.Parallel()
	x, told := taken(t)
	for name, c := range map[string]struct {
		told []core.Event
		want string
	}{
		"the whole story":    {told: told},
		"an earlier life":    {told: append(told[:2:2], told...)},
		"a lease not told":   {told: told[:1], want: "L146"},
		"a lease told twice": {told: append(told[:2:2], told[1]), want: "I10"},
		"an end not there":   {told: append(told[:2:2], core.Event{Kind: "execution.completed", Data: eventdata.OfJSON([]byte(`{}`))}), want: "L145"},
		"another lease ends": {told: append(told[:2:2], core.Event{Kind: "lease.released", Data: eventdata.OfJSON([]byte(`{"lease_epoch":2}`))}), want: "L146"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := invariants.History(x, c.told); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

func TestI17_an_execution_that_is_in_no_queue_of_a_store_is_found(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "audit.db"), sqlite.Config{UnsafeDurability: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	x, told := made(t)
	known, err := s.Register(t.Context(), []core.Lane{core.NewLane("l", "test")}, []core.Class{*x.Class})
	if err != nil {
		t.Fatal(err)
	}
	x.Class = known.Classes[0]
	write := func(ch *store.Changes) {
		t.Helper()
		tx, _, err := s.Begin(t.Context(), store.Want{})
		if err == nil {
			err = tx.Commit(t.Context(), ch)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	audit := func() []string {
		t.Helper()
		found, err := invariants.Audit(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	write(&store.Changes{Insert: []*core.Execution{x}, Events: told})
	if found := audit(); len(found) != 1 || !strings.HasPrefix(found[0], "I17: ") {
		t.Errorf("without its row in the queue: %q", found)
	}
	write(&store.Changes{Enqueue: []store.QueueRow{{Class: x.Class.ID, Order: x.OrderKey, ID: x.ID.UUID}}})
	if found := audit(); len(found) != 0 {
		t.Errorf("with its row in the queue: %q", found)
	}
	snap, err := invariants.Take(t.Context(), s, nil)
	if err != nil || len(snap.Records) != 1 || len(snap.Broken()) != 0 {
		t.Errorf("submitted after all were listed: %v, %+v", err, snap)
	}
	write(&store.Changes{Enqueue: []store.QueueRow{{Class: x.Class.ID, Order: x.OrderKey, ID: base.UUID{1}}}})
	if found := audit(); len(found) != 1 || !strings.HasPrefix(found[0], "I18: ") || !strings.HasSuffix(found[0], "there is no such execution") {
		t.Errorf("with a row of no execution: %q", found)
	}
}
