package waits

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// waiting is an execution with the records of its waits, as a command of this moment would find them: timers that are due have
// acted on this copy (W2), and nothing of that is stored.
type waiting struct {
	x   *core.Execution
	d   *core.WaitState
	now base.Time
}

// WantWaiting adds what waitingOf needs.
func WantWaiting(w *store.Want, id base.UUID) {
	w.Executions = append(w.Executions, id)
	w.Owned = append(w.Owned, WaitStateKey(id))
}

// waitingOf returns a copy of rows that were read for this call only. Codes: corruption.
func waitingOf(loaded *store.Loaded, x *core.Execution) (waiting, error) {
	d, err := ReadState(loaded, x.ID.UUID)
	if err != nil {
		return waiting{}, err
	}
	fx := &core.Effects{Now: loaded.Now, Actor: core.EngineActor()}
	x.Settle(fx)
	d.Apply(fx.Waits)
	return waiting{x: x, d: d, now: max(loaded.Now, x.Latest())}, nil
}

// readWaiting reads one execution with its waits. Codes: execution_not_found, corruption.
func (e *Waits) readWaiting(ctx context.Context, c txn.Caller, id base.GivenID) (waiting, error) {
	var want store.Want
	WantWaiting(&want, id.UUID)
	loaded, x, err := e.ReadOne(ctx, c, id, want)
	if err != nil {
		return waiting{}, err
	}
	return waitingOf(loaded, x)
}

// fill loads the payloads of an execution. They go with it: if it was removed meanwhile, that is the answer.
func (e *Waits) fill(ctx context.Context, c txn.Caller, id base.GivenID, data *WaitData) error {
	missing, err := data.Load(ctx, e.Store)
	if err != nil {
		return txn.PublicFault(err)
	}
	if err = missing[id.UUID]; err != nil {
		if _, _, gone := e.ReadOne(ctx, c, id, store.Want{Executions: []base.UUID{id.UUID}}); gone != nil {
			return gone
		}
	}
	return err
}

// Observe shows the open suspension, or the one of this run that closed last, with as many of its payloads as have room; nil: there was
// none (W82).
func (e *Waits) Observe(ctx context.Context, c txn.Caller, id base.GivenID) (*core.Observation, error) {
	w, err := e.readWaiting(ctx, c, id)
	if err != nil {
		return nil, err
	}
	shown, err := w.x.Observe(w.d)
	if err != nil || shown == nil {
		return nil, err
	}
	var data WaitData
	data.Observation(id.UUID, shown, WaitBytes)
	if err := e.fill(ctx, c, id, &data); err != nil {
		return nil, err
	}
	return shown, nil
}

// Suspensions is the history of an execution's waits (W85).
func (e *Waits) Suspensions(ctx context.Context, c txn.Caller, id base.GivenID, cursor string, limit *int) (SuspensionPage, error) {
	part, err := numberedPart("suspensions\x00"+id.UUID.String(), cursor, limit)
	if err != nil {
		return SuspensionPage{}, err
	}
	w, err := e.readWaiting(ctx, c, id)
	if err != nil {
		return SuspensionPage{}, err
	}
	history, err := w.x.Suspensions(w.d)
	if err != nil {
		return SuspensionPage{}, err
	}
	items, next := cutPart(part, history, func(o *core.Observation) int { return o.Seq })
	return SuspensionPage{Items: items, Next: next}, nil
}

// signalPageBytes is what the payloads of one page of signals come to at most; one signal is always shown.
const signalPageBytes = 8 << 20

// Signals lists the signals of an execution (W85).
func (e *Waits) Signals(ctx context.Context, c txn.Caller, id base.GivenID, q SignalQuery) (SignalPage, error) {
	part, err := numberedPart("signals\x00"+id.UUID.String()+"\x00"+q.Suspension.String(), q.Cursor, q.Limit)
	if err != nil {
		return SignalPage{}, err
	}
	w, err := e.readWaiting(ctx, c, id)
	if err != nil {
		return SignalPage{}, err
	}
	signals, err := w.d.SignalViews(q.Suspension)
	if err != nil {
		return SignalPage{}, err
	}
	ordinal := func(s *core.Signal) int { return s.Ordinal }
	part.limit = fitting(part, signals)
	items, next := cutPart(part, signals, ordinal)
	var data WaitData
	data.signals(id.UUID, items)
	if err := e.fill(ctx, c, id, &data); err != nil {
		return SignalPage{}, err
	}
	return SignalPage{Items: items, Next: next}, nil
}

// fitting is how many signals from the place of the part on have room in one answer.
func fitting(part listPart, signals []core.Signal) int {
	n, bytes := 0, 0
	for i := range signals {
		if signals[i].Ordinal <= part.after {
			continue
		}
		if bytes += signals[i].Payload.Size; n == part.limit || n > 0 && bytes > signalPageBytes {
			break
		}
		n++
	}
	return n
}

// listPart is the part that a caller asks for of a list whose entries have ascending numbers.
type listPart struct {
	scope string
	after int
	limit int
}

// numberedPart reads limit and cursor (W8). Codes: invalid_argument, invalid_cursor.
func numberedPart(scope, cursor string, limit *int) (listPart, error) {
	n, err := core.PageLimit(limit)
	if err != nil {
		return listPart{}, err
	}
	part := listPart{scope: scope, limit: n}
	if cursor != "" {
		var number int64
		if err := core.DecodeNumbers(scope, cursor, &number); err != nil {
			return listPart{}, err
		}
		part.after = int(number)
	}
	return part, nil
}

// cutPart takes the part out of the whole list. The cursor is that of its last entry, if more follow.
func cutPart[T any](part listPart, all []T, number func(*T) int) (items []T, next string) {
	for i := range all {
		switch n := number(&all[i]); {
		case n <= part.after:
		case part.limit == 0:
			return nil, ""
		case len(items) == part.limit:
			last := number(&items[len(items)-1])
			return items, core.EncodeNumbers(part.scope, int64(last))
		default:
			items = append(items, all[i])
		}
	}
	return items, ""
}
