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

// sweepChunk is how many executions one timer's list is handled by at a time.
const sweepChunk = 500

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
		u.touchLease(ent) // only the timer changes (S65)
	}
	return nil
}

// elapse fires the timer of an execution whose times are ahead of the clock: its entry in the due index, which is due now, was made for the
// duration of the timer (arm). Any change of the execution since then would have made a later one.
func (u *Tx) elapse(ent *Row) {
	if due, _ := ent.Exec.Ahead(u.Now); due == 0 {
		return
	}
	fx, held := u.engineEffects(), ent.Exec.Holds
	ent.Exec.Elapse(fx)
	u.freed(held, ent.Exec.Holds)
	u.touch(ent)
	u.keep(fx)
}

// sweepWake handles executions whose timer is due (L19). Most entries of finished work are stale: a plain read without locks filters them.
func (e *Engine) sweepWake(ctx context.Context, t store.Timer) error {
	for ids := range slices.Chunk(t.IDs, sweepChunk) {
		loaded, err := e.Store.Read(ctx, store.Want{Executions: ids, SkipUnreadable: true})
		if err != nil {
			return err
		}
		var due []base.UUID
		var cmds []command
		for _, id := range ids {
			x := loaded.Executions[id]
			if loaded.Unreadable[id] != nil || x != nil && x.WakeAt != 0 && x.TimerAt <= t.At {
				due = append(due, id)
				cmds = append(cmds, &wake{id: id, at: t.At})
			}
		}
		if err := e.quarantine(ctx, t, due, e.doAll(ctx, cmds)); err != nil {
			return err
		}
	}
	return nil
}

// quarantine moves the timers of rows whose rule failed, so that they delay no others (S63).
func (e *Engine) quarantine(ctx context.Context, t store.Timer, ids []base.UUID, errs []error) error {
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
		next := now.Add(laterBy(failures))
		e.notes.Error("an execution's timer cannot be handled", "execution_id", ids[i], "failures", failures+1, "error", err)
		ch := &store.Changes{
			AddTimers: []store.Timer{withFailures(store.Timer{At: next, Kind: t.Kind, IDs: []base.UUID{ids[i]}}, failures+1)},
			Events:    []core.Event{quarantined(ids[i], base.CodeOf(err), failures+1, now, next)},
		}
		if err := e.Write(ctx, "quarantine", ch); err != nil {
			return err
		}
		e.Gauges.Rows.add(ids[i].String(), next)
	}
	return nil
}

// maxFailures is the number of failures from which on the pause stays the same.
const maxFailures = 12

// laterBy is the pause before the next try of what has failed so often before in a row (S63).
func laterBy(failures int) base.Millis {
	return min(base.Second<<min(failures, maxFailures), 5*base.Minute)
}

// quarantined returns the event about a row that was set aside: an execution or follow-up work, by its UUID, or a part of the log, by its position.
// If next is absent, it is not tried again.
func quarantined(row any, why base.Code, failures int, now, next base.Time) core.Event {
	fields := map[string]any{"row": row, "error": string(why), "failures": failures}
	if next != 0 {
		maps.Copy(fields, map[string]any{"next_try_at": next})
	}
	data, _ := json.Marshal(fields)
	return core.Event{
		Kind: "sweep.quarantined", At: now, AttemptIndex: -1, Actor: core.EngineActor(), Data: eventdata.OfJSON(data),
	}
}

// removal removes one finished execution whose time is over (L139..L141).
type removal struct{ id base.UUID }

func (r *removal) Name() string { return "remove" }

func (r *removal) Want(want *store.Want, _ bool) { want.Executions = append(want.Executions, r.id) }

func (r *removal) More(u *Tx, want *store.Want) { u.WantRemovable(want, r.id) }

func (r *removal) Flows(u *Tx) []base.UUID { return u.FlowsBelow(r.id) }

func (r *removal) Decide(u *Tx) error {
	ent := u.Entries[r.id]
	if ent == nil || !ent.Exec.Status.Terminal() {
		return nil
	}
	at, ok := u.removeAt(ent.Exec)
	switch {
	case !ok:
	case at > u.Now:
		u.timer(timerRetain, RoundUp(at, base.Second), r.id)
	case ent.Exec.Member != nil:
		u.addTask(task{Kind: taskRemoveFlow, Flow: ent.Exec.FlowID.UUID})
	case ent.Exec.CheckRemovable(u.Now) != nil:
		if until := ent.Exec.Retain.Until; until != 0 {
			u.timer(timerRetain, RoundUp(until, base.Second), r.id)
		}
	case u.CheckRemovable(ent.Exec) != nil:
		u.timer(timerRetain, RoundUp(u.Now.Add(lookForChildren), base.Minute), r.id)
	default:
		u.Remove(ent)
	}
	return nil
}

func (e *Engine) sweepRetained(ctx context.Context, t store.Timer) error {
	for ids := range slices.Chunk(t.IDs, sweepChunk) {
		cmds := make([]command, len(ids))
		for i, id := range ids {
			cmds[i] = &removal{id: id}
		}
		if err := e.quarantine(ctx, t, ids, e.doAll(ctx, cmds)); err != nil {
			return err
		}
	}
	return nil
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
		refs[i] = store.DocRef{Kind: docRequest, Owner: of, Key: key}
	}
	return e.onRefs(ctx, refs, func(u *Tx, doc *store.Doc) error {
		if doc.ExpiresAt <= u.Now {
			u.dropDoc(doc.DocRef)
		}
		return nil
	})
}

// onDocs runs a rule over small records without owner, each locked.
func (e *Engine) onDocs(ctx context.Context, kind store.DocKind, keys []string, rule func(u *Tx, doc *store.Doc) error) error {
	refs := make([]store.DocRef, len(keys))
	for i, key := range keys {
		refs[i] = store.DocRef{Kind: kind, Key: key}
	}
	return e.onRefs(ctx, refs, rule)
}

// onRefs runs a rule over small records, each locked.
func (e *Engine) onRefs(ctx context.Context, refs []store.DocRef, rule func(u *Tx, doc *store.Doc) error) error {
	want := store.Want{LockDocs: true, Docs: refs}
	u, err := e.begin(ctx, want)
	if err != nil {
		return err
	}
	defer u.tx.Rollback(ctx)
	for _, ref := range want.Docs {
		if doc := u.Doc(ref); doc != nil {
			if err := rule(u, doc); err != nil {
				return err
			}
		}
	}
	return u.commit(ctx, []string{"sweep"})
}

// sweepClaims removes the record of a claim if none of its leases is held and none of its grants is outstanding any more (L117).
func (e *Engine) sweepClaims(ctx context.Context, t store.Timer) error {
	return e.onDocs(ctx, docClaim, t.Texts, func(u *Tx, doc *store.Doc) error {
		loaded, err := e.Store.Read(ctx, store.Want{Executions: claimedIDs(doc)})
		if err != nil {
			return err
		}
		instance, key, _ := strings.Cut(doc.Key, "\x01")
		key, grants := strings.CutSuffix(key, grantMark)
		for _, x := range loaded.Executions {
			if grants && x.HoldsGrantOf(instance, key) || !grants && x.HoldsLeaseOf(instance, key) {
				timer := u.TimerAt(timerClaims, RoundUp(u.Now.Add(claimRecordLook), base.Second))
				timer.Texts = append(timer.Texts, doc.Key)
				return nil
			}
		}
		u.dropDoc(doc.DocRef)
		return nil
	})
}

// sweepWorkers marks instances that have lapsed and removes those that lapsed long ago (S50, S54).
func (e *Engine) sweepWorkers(ctx context.Context, t store.Timer) error {
	return e.onDocs(ctx, DocWorker, t.Texts, func(u *Tx, doc *store.Doc) error {
		w, err := DecodeWorker(doc)
		if err != nil {
			return err
		}
		fx := u.engineEffects()
		switch {
		case w.Removable(u.Now):
			u.dropDoc(doc.DocRef)
		case !w.Live(u.Now) && w.Lapse(fx):
			u.putWorker(w)
			u.keep(fx)
		case doc.ExpiresAt <= u.Now:
			u.putWorker(w)
		}
		return nil
	})
}
