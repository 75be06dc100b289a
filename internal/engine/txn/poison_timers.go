package txn

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// ofRow reports whether an error is due to the row or the rule that met it, and not to the store: a repetition fails again.
func ofRow(err error) bool {
	if PanicOf(err) != nil {
		return true
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var refusal *base.Error
	if errors.As(err, &refusal) {
		info := base.CodeOf(err).Info()
		return info.Class != "unavailable" && !info.Retryable
	}
	return store.FaultOf(err) == store.Broken
}

// setTimerAside splits a timer whose rule failed: what can be handled is, and each of the others gets a timer of its own, later with every failure,
// and an event (S63). An error means that the store failed: the whole timer is tried again.
func (e *Engine) setTimerAside(ctx context.Context, t store.Timer, why error) error {
	if !ofRow(why) || ctx.Err() != nil {
		return why
	}
	items := itemsOf(t)
	if len(items) == 1 {
		return e.quarantineTimer(ctx, items[0], why)
	}
	for _, item := range items {
		err := e.applyRule(ctx, item)
		if err != nil {
			err = e.setTimerAside(ctx, item, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// quarantineTimer moves a timer of one row.
func (e *Engine) quarantineTimer(ctx context.Context, t store.Timer, why error) error {
	failures := failuresOf(t)
	now, err := e.Store.Now(ctx)
	if err != nil {
		return err
	}
	moved := withFailures(t, failures+1)
	moved.At = now.Add(LaterBy(failures))
	e.QuietLog.Error("a timer cannot be handled", "kind", e.TimerLabel(t.Kind), "failures", failures+1, "error", why)
	ch := &store.Changes{
		AddTimers: []store.Timer{moved},
		Events:    []core.Event{Quarantined(e.rowOf(t), base.CodeOf(PublicFault(why)), failures+1, now, moved.At)},
	}
	if err := e.Write(ctx, "quarantine", ch); err != nil {
		return err
	}
	e.Gauges.Rows.Add(e.rowOf(t), moved.At)
	return nil
}

// byID reports whether timers of the kind name executions; all others name their rows by texts.
func byID(kind store.TimerKind) bool { return kind == timerWake || kind == TimerRetain }

// itemsOf is a timer for each row that a timer is for.
func itemsOf(t store.Timer) (items []store.Timer) {
	add := func(ids []base.UUID, texts []string) {
		items = append(items, store.Timer{At: t.At, Kind: t.Kind, IDs: ids, Texts: texts})
	}
	if byID(t.Kind) {
		for _, id := range t.IDs {
			add([]base.UUID{id}, t.Texts)
		}
		return items
	}
	for _, text := range t.Texts {
		add(t.IDs, []string{text})
	}
	return items
}

// rowOf returns the row of a timer that has one.
func (e *Engine) rowOf(t store.Timer) string {
	if byID(t.Kind) {
		return t.IDs[0].String()
	}
	return e.TimerLabel(t.Kind) + ":" + t.Texts[0]
}

// A timer of a row that was set aside contains how often the row has failed in a row, in the list that its kind does not use.

// failuresOf returns how often the row of a timer has failed in a row.
func failuresOf(t store.Timer) int {
	switch {
	case byID(t.Kind) && len(t.Texts) == 1:
		n, _ := strconv.Atoi(t.Texts[0])
		return n
	case !byID(t.Kind) && len(t.IDs) == 1:
		return int(binary.BigEndian.Uint16(t.IDs[0][:]))
	default:
		return 0
	}
}

// withFailures is the timer of a row that has failed so often in a row.
func withFailures(t store.Timer, n int) store.Timer {
	if byID(t.Kind) {
		t.Texts = []string{strconv.Itoa(n)}
		return t
	}
	var count base.UUID
	binary.BigEndian.PutUint16(count[:], uint16(min(n, maxFailures)))
	t.IDs = []base.UUID{count}
	return t
}

// textsOf shows ids.
func textsOf(ids []base.UUID) []string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return texts
}
