package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// notary is a store that notes what each commit changes and tells, and refuses some.
type notary struct {
	store.Store

	mu    sync.Mutex
	tries int
	told  []toldBy
	lives map[base.UUID][]changed
}

// toldBy is a commit with events.
type toldBy struct {
	seq    int64
	events []core.Event
}

// changed is an execution as a commit has left it, with what that told of it.
type changed struct {
	version int64 // before
	status  core.Status
	reason  core.Reason
	events  []core.Event
}

// Begin lets the transaction be seen.
func (w *notary) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	tx, loaded, err := w.Store.Begin(ctx, want)
	if tx == nil {
		return nil, loaded, err
	}
	return witnessed{tx, w}, loaded, err
}

type witnessed struct {
	store.Tx
	w *notary
}

// Commit commits or, now and then, rolls back: the engine then tries again.
func (t witnessed) Commit(ctx context.Context, ch *store.Changes) error {
	if t.w.refuses() {
		t.Tx.Rollback(ctx)
		return &store.Fault{Kind: store.Retry, Err: errors.New("refused by the test")}
	}
	lives := map[base.UUID]changed{}
	for _, x := range slices.Concat(ch.Insert, ch.Update, ch.Renew, ch.Assume) {
		lives[x.ID.UUID] = changed{version: x.Version >> 32, status: x.Status, reason: x.Reason}
	}
	events := slices.Clone(ch.Events)
	err := t.Tx.Commit(ctx, ch)
	if err == nil {
		t.w.note(lives, toldBy{ch.Seq, events})
	}
	return err
}

func (w *notary) refuses() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tries++
	return w.tries%8 == 0
}

func (w *notary) note(lives map[base.UUID]changed, told toldBy) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ev := range told.events {
		if x, found := lives[ev.ExecutionID.UUID]; found && ev.Kind != core.SilentChange {
			x.events = append(x.events, ev)
			lives[ev.ExecutionID.UUID] = x
		}
	}
	for id, x := range lives {
		w.lives[id] = append(w.lives[id], x)
	}
	if len(told.events) > 0 {
		w.told = append(w.told, told)
	}
}

// tell checks that the log has the events of the commits and no others (EI11), and that those of each execution, folded, give its statuses (EI8).
func (w *notary) tell(t *testing.T, log []engine.LoggedEvent) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortFunc(w.told, func(a, b toldBy) int { return cmp.Compare(a.seq, b.seq) })
	var committed, logged []string
	for _, told := range w.told {
		for _, ev := range told.events {
			if ev.Kind != core.SilentChange {
				committed = append(committed, ev.Kind+" "+ev.ExecutionID.String()+" "+string(ev.Data.JSON()))
			}
		}
	}
	for _, ev := range log {
		logged = append(logged, ev.Kind+" "+ev.ExecutionID.String()+" "+string(ev.Data.JSON()))
	}
	same(t, "the log, but for what came before", logged[len(logged)-len(committed):], committed)
	transitions := 0
	for id, life := range w.lives {
		slices.SortFunc(life, func(a, b changed) int { return cmp.Compare(a.version, b.version) })
		before := possible{}
		for _, x := range life {
			n, err := before.fold(&x)
			if err != nil {
				t.Errorf("%s: %v", id, err)
				break
			}
			transitions += n
			before = possible{x.status: true, admitted: x.status == core.Blocked && isAdmission(x.reason)}
		}
	}
	if transitions < 60 {
		t.Errorf("%d changes of status: the test proves little", transitions)
	}
}

func isAdmission(reason core.Reason) bool {
	return reason == core.WaitingForBudget || reason == core.WaitingForQuota
}

// possible are the statuses that an execution may have by what was told of it. Under admitted stands that it is blocked by admission alone, from
// which it returns in silence (E25).
type possible map[core.Status]bool

const admitted = core.Status(255)

var (
	theGate = []core.Status{core.Ready, core.Delayed, core.Blocked}
	live    = []core.Status{core.Ready, core.Delayed, core.Blocked, core.Granted, core.Running, core.Suspended}
)

// statusEvents is the change of status of each kind of event (E28); to nothing: to that which it names.
var statusEvents = map[string]struct{ from, to []core.Status }{
	"execution.ready":            {[]core.Status{core.Delayed, core.Blocked}, []core.Status{core.Ready}},
	"execution.delayed":          {[]core.Status{core.Blocked}, []core.Status{core.Delayed}},
	"execution.blocked":          {[]core.Status{core.Ready, core.Delayed, core.Granted}, []core.Status{core.Blocked}},
	"grant.issued":               {[]core.Status{core.Ready}, []core.Status{core.Granted}},
	"grant.ended":                {[]core.Status{core.Granted}, theGate},
	"lease.acquired":             {[]core.Status{core.Ready, core.Granted}, []core.Status{core.Running}},
	"lease.released":             {[]core.Status{core.Running}, theGate},
	"lease.expired":              {[]core.Status{core.Running}, theGate},
	"lease.revoked":              {[]core.Status{core.Running}, theGate},
	"attempt.ended":              {[]core.Status{core.Running}, theGate},
	"execution.suspended":        {[]core.Status{core.Running}, []core.Status{core.Suspended}},
	"execution.waiting_children": {[]core.Status{core.Running}, []core.Status{core.Blocked}},
	"execution.resumed":          {[]core.Status{core.Suspended}, theGate},
	"execution.completed":        {live, nil},
	"execution.replayed":         {[]core.Status{core.Succeeded, core.Failed, core.Cancelled, core.Expired, core.Skipped}, theGate},
	"execution.submitted":        {nil, nil},
}

// fold follows the events of one commit to the status that it has left, and counts them.
func (p possible) fold(x *changed) (n int, err error) {
	for _, ev := range x.events {
		change, found := statusEvents[ev.Kind]
		if !found {
			continue
		}
		var told struct {
			Status, Reason string
			Late           bool
			Lease          json.RawMessage
		}
		if err := json.Unmarshal(ev.Data.JSON(), &told); err != nil {
			return n, err
		}
		switch {
		case ev.Kind == "attempt.ended" && told.Lease == nil:
			continue // a takeover: the status is that of the lease that follows
		case told.Late:
			change.from = live // the lease had lapsed before, and its end is accepted all the same (E27)
		}
		if p[admitted] {
			p[core.Ready] = true
		}
		if ev.Kind != "execution.submitted" && !slices.ContainsFunc(change.from, func(s core.Status) bool { return p[s] }) {
			return n, fmt.Errorf("%s when it may be %v", ev.Kind, p)
		}
		clear(p)
		for _, status := range change.to {
			p[status] = true
		}
		for _, status := range core.Statuses() {
			if change.to == nil && status.String() == told.Status {
				p[status] = true
			}
		}
		p[admitted] = p[core.Blocked] && (told.Reason == core.WaitingForBudget.String() || told.Reason == core.WaitingForQuota.String())
		n++
	}
	if !p[x.status] && !(p[admitted] && x.status == core.Ready) {
		return n, fmt.Errorf("it is %s and nothing has told that: %v", x.status, x.events)
	}
	return n, nil
}
