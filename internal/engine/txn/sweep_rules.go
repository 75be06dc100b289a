package txn

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
	"github.com/flowfabric/flowfabric/internal/store"
)

// SweepChunk is how many executions one timer's list is handled by at a time.
const SweepChunk = 500

// wake settles one execution and arms its next timer.
type wake struct {
	id base.UUID
	at base.Time // time of the entry in the due index, which is used up
}

func (w *wake) Name() string { return "wake" }

func (w *wake) Want(want *store.Want, _ bool) { want.Executions = append(want.Executions, w.id) }

func (w *wake) Decide(u *Tx) error {
	ent := u.Entries[w.id]
	if ent == nil {
		return nil
	}
	if ent.Exec.TimerAt > w.at {
		u.Settle(ent)
		return nil // a later entry stands
	}
	ent.Exec.TimerAt = 0
	u.Settle(ent)
	if w.at <= u.Now { // otherwise it was due by a clock that was set back since, and it is unknown how much of the time has passed
		u.elapse(ent)
	}
	if ent.Exec.WakeAt != 0 {
		u.TouchLease(ent) // only the timer changes (S65)
	}
	return nil
}

// elapse fires the timer of an execution whose times are ahead of the clock: its entry in the due index, which is due now, was made for the
// duration of the timer (arm). Any change of the execution since then would have made a later one.
func (u *Tx) elapse(ent *Row) {
	if due, _ := ent.Exec.Ahead(u.Now); due == 0 {
		return
	}
	fx, held := u.EngineEffects(), ent.Exec.Holds
	ent.Exec.Elapse(fx)
	u.Freed(held, ent.Exec.Holds)
	u.Touch(ent)
	u.Keep(fx)
}

// sweepWake handles executions whose timer is due (L19). Most entries of finished work are stale: a plain read without locks filters them.
func (e *Engine) sweepWake(ctx context.Context, t store.Timer) error {
	for ids := range slices.Chunk(t.IDs, SweepChunk) {
		loaded, err := e.Store.Read(ctx, store.Want{Executions: ids, SkipUnreadable: true})
		if err != nil {
			return err
		}
		var due []base.UUID
		var cmds []Command
		for _, id := range ids {
			x := loaded.Executions[id]
			if loaded.Unreadable[id] != nil || x != nil && x.WakeAt != 0 && x.TimerAt <= t.At {
				due = append(due, id)
				cmds = append(cmds, &wake{id: id, at: t.At})
			}
		}
		if err := e.Quarantine(ctx, t, due, e.DoAll(ctx, cmds)); err != nil {
			return err
		}
	}
	return nil
}

// Quarantine moves the timers of rows whose rule failed, so that they delay no others (S63).
func (e *Engine) Quarantine(ctx context.Context, t store.Timer, ids []base.UUID, errs []error) error {
	failures := failuresOf(t)
	for i, err := range errs {
		if err == nil {
			continue
		}
		if base.CodeOf(err).Info().Class == "unavailable" {
			return err // the store failed, not the row: the whole timer is tried again
		}
		now, unread := e.Store.Now(ctx)
		if unread != nil {
			return unread
		}
		next := now.Add(LaterBy(failures))
		e.QuietLog.Error("an execution's timer cannot be handled", "execution_id", ids[i], "failures", failures+1, "error", err)
		ch := &store.Changes{
			AddTimers: []store.Timer{withFailures(store.Timer{At: next, Kind: t.Kind, IDs: []base.UUID{ids[i]}}, failures+1)},
			Events:    []core.Event{Quarantined(ids[i], base.CodeOf(err), failures+1, now, next)},
		}
		if err := e.Write(ctx, "quarantine", ch); err != nil {
			return err
		}
		e.Gauges.Rows.Add(ids[i].String(), next)
	}
	return nil
}

// maxFailures is the number of failures from which on the pause stays the same.
const maxFailures = 12

// LaterBy is the pause before the next try of what has failed so often before in a row (S63).
func LaterBy(failures int) base.Millis {
	return min(base.Second<<min(failures, maxFailures), 5*base.Minute)
}

// Quarantined returns the event about a row that was set aside: an execution or follow-up work, by its UUID, or a part of the log, by its position.
// If next is absent, it is not tried again.
func Quarantined(row any, why base.Code, failures int, now, next base.Time) core.Event {
	fields := map[string]any{"row": row, "error": string(why), "failures": failures}
	if next != 0 {
		maps.Copy(fields, map[string]any{"next_try_at": next})
	}
	data, _ := json.Marshal(fields)
	return core.Event{
		Kind: "sweep.quarantined", At: now, AttemptIndex: -1, Actor: core.EngineActor(), Data: eventdata.OfJSON(data),
	}
}

// sweepKeys removes idempotency keys whose window is over (L84).
func (e *Engine) sweepKeys(ctx context.Context, t store.Timer) error {
	ch := &store.Changes{}
	for _, text := range t.Texts {
		if key, ok := decodeKey(text); ok {
			ch.DropKeys = append(ch.DropKeys, key)
		}
	}
	return e.Write(ctx, "drop_keys", ch)
}

// sweepRequests removes recorded answers whose time is over (W4).
func (e *Engine) sweepRequests(ctx context.Context, t store.Timer) error {
	refs := make([]store.DocRef, len(t.Texts))
	for i, text := range t.Texts {
		of, key, _ := strings.Cut(text, ownerEnd)
		refs[i] = store.DocRef{Kind: DocRequest, Owner: of, Key: key}
	}
	return e.OnRefs(ctx, refs, func(u *Tx, doc *store.Doc) error {
		if doc.ExpiresAt <= u.Now {
			u.DropDoc(doc.DocRef)
		}
		return nil
	})
}

// OnDocs runs a rule over small records without owner, each locked.
func (e *Engine) OnDocs(ctx context.Context, kind store.DocKind, keys []string, rule func(u *Tx, doc *store.Doc) error) error {
	refs := make([]store.DocRef, len(keys))
	for i, key := range keys {
		refs[i] = store.DocRef{Kind: kind, Key: key}
	}
	return e.OnRefs(ctx, refs, rule)
}

// OnRefs runs a rule over small records, each locked.
func (e *Engine) OnRefs(ctx context.Context, refs []store.DocRef, rule func(u *Tx, doc *store.Doc) error) error {
	want := store.Want{LockDocs: true, Docs: refs}
	u, err := e.Begin(ctx, want)
	if err != nil {
		return err
	}
	defer u.StoreTx.Rollback(ctx)
	for _, ref := range want.Docs {
		if doc := u.Doc(ref); doc != nil {
			if err := rule(u, doc); err != nil {
				return err
			}
		}
	}
	return u.Commit(ctx, []string{"sweep"})
}
