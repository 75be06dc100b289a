package txn

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// ReadOne reads one execution with the other rows of want. An execution in the inbox is ingested first (L88), and outcomes that it carries are applied.
func (e *Engine) ReadOne(ctx context.Context, c Caller, id base.GivenID, want store.Want) (*store.Loaded, *core.Execution, error) {
	applied := false
	for ingested := false; ; ingested = true {
		loaded, err := e.Store.Read(ctx, want)
		if err != nil {
			return nil, nil, PublicFault(err)
		}
		if x := loaded.Executions[id.UUID]; x != nil && id.Names(x.ID) && c.Sees(x.Class.Namespace) {
			if store.Carries(x.Version) && !applied {
				// What cannot be applied now, because the user's next transaction holds the row, is not shown yet.
				_, applied = e.ApplyOutcomes(ctx, []base.UUID{id.UUID}), true
				continue
			}
			gone, err := e.Vanished(ctx, x)
			if err != nil {
				return nil, nil, err
			}
			if gone[id.UUID] {
				return nil, nil, NotFound(id)
			}
			return loaded, x, nil
		}
		if ingested || !e.Appeared(ctx, id.UUID) {
			return nil, nil, NotFound(id)
		}
	}
}

// Describe shows an execution (L120).
func (e *Engine) Describe(ctx context.Context, c Caller, id base.GivenID) (View, error) {
	loaded, x, err := e.ReadOne(ctx, c, id, store.Want{Executions: []base.UUID{id.UUID}})
	if err != nil {
		return View{}, err
	}
	return e.View(ctx, x, loaded.Dictionary)
}

// View shows an execution by the lanes of a version of the dictionary.
func (e *Engine) View(ctx context.Context, x *core.Execution, version int64) (View, error) {
	dict, err := e.Dict.At(ctx, version)
	if err != nil {
		return View{}, PublicFault(err)
	}
	return View{Execution: x, Lane: dict.State(x.Class.Lane)}, nil
}

// State returns the state of a lane, or active if the dictionary does not have it.
func (d *Dictionary) State(lane string) core.LaneState {
	if l := d.Lanes[lane]; l != nil {
		return l.Settings.State
	}
	return core.LaneActive
}

// Input reads the input of an execution (L125).
func (e *Engine) Input(ctx context.Context, c Caller, id base.GivenID) (core.Payload, error) {
	_, x, err := e.ReadOne(ctx, c, id, store.Want{Executions: []base.UUID{id.UUID}, Inputs: true})
	if err != nil {
		return core.Payload{}, err
	}
	return x.Input, nil
}

// Attempts lists the attempts by index (L126).
func (e *Engine) Attempts(ctx context.Context, c Caller, id base.GivenID) ([]core.Attempt, error) {
	loaded, x, err := e.ReadOne(ctx, c, id, store.Want{
		Executions: []base.UUID{id.UUID}, History: []store.HistoryRef{{ID: id.UUID, All: true}},
	})
	if err != nil {
		return nil, err
	}
	return core.AttemptsOf(x, loaded.History), nil
}

// Attempt returns one attempt (L126): that of an index, or the last one if index is negative.
func (e *Engine) Attempt(ctx context.Context, c Caller, id base.GivenID, index int) (core.Attempt, error) {
	attempts, err := e.Attempts(ctx, c, id)
	if err != nil {
		return core.Attempt{}, err
	}
	if index < 0 && len(attempts) > 0 {
		return attempts[len(attempts)-1], nil
	}
	for _, attempt := range attempts {
		if attempt.Index == index {
			return attempt, nil
		}
	}
	return core.Attempt{}, base.Errorf(base.CodeAttemptNotFound, "the execution has no such attempt").With("attempts", len(attempts))
}

// Leases returns the lease history above an epoch (L127); more reports whether further entries exist.
func (e *Engine) Leases(ctx context.Context, c Caller, id base.GivenID, after int64, limit int) (entries []core.LeaseRecord, more bool, err error) {
	loaded, x, err := e.readLeases(ctx, c, id, after, limit+1)
	if err == nil && after < x.HistoryFloor() { // what the store has below is no longer in the history (L40)
		loaded, x, err = e.readLeases(ctx, c, id, x.HistoryFloor(), limit+1)
	}
	if err != nil {
		return nil, false, err
	}
	entries = loaded.History
	if open := core.OpenLease(x); open != nil && open.Epoch > after {
		entries = append(entries, *open)
	}
	if len(entries) > limit {
		return entries[:limit], true, nil
	}
	return entries, false, nil
}

// LeasesPage lists the lease history a part at a time (L127).
func (e *Engine) LeasesPage(ctx context.Context, c Caller, id base.GivenID, cursor string, limit *int) (entries []core.LeaseRecord, next string, err error) {
	n, err := core.PageLimit(limit)
	if err != nil {
		return nil, "", err
	}
	scope, after := "leases\x00"+id.UUID.String(), int64(0)
	if cursor != "" {
		if err := core.DecodeNumbers(scope, cursor, &after); err != nil {
			return nil, "", err
		}
	}
	entries, more, err := e.Leases(ctx, c, id, after, n)
	if err == nil && more && n > 0 {
		next = core.EncodeNumbers(scope, entries[n-1].Epoch)
	}
	return entries, next, err
}

func (e *Engine) readLeases(ctx context.Context, c Caller, id base.GivenID, after int64, limit int) (*store.Loaded, *core.Execution, error) {
	return e.ReadOne(ctx, c, id, store.Want{
		Executions: []base.UUID{id.UUID}, History: []store.HistoryRef{{ID: id.UUID, Epoch: after, All: true, Limit: limit}},
	})
}

// ServerTime is the store's clock (L129).
func (e *Engine) ServerTime(ctx context.Context) (base.Time, error) {
	now, err := e.Store.Now(ctx)
	if err != nil {
		return 0, PublicFault(err)
	}
	return now, nil
}

// StoreTime is the store's clock as the engine last saw it, carried on by the host's. It costs nothing.
func (e *Engine) StoreTime() base.Time { return e.Sweep.StoreNow() }

// MaxWait is the longest that a reader may wait (L124).
const MaxWait = 60 * time.Second

// Wait returns when the execution is terminal, or with its current state when d is over (L124).
func (e *Engine) Wait(ctx context.Context, c Caller, id base.GivenID, d time.Duration) (View, error) {
	return WaitFor(ctx, e, id.UUID, d, func(ctx context.Context) (View, bool, error) {
		view, err := e.Describe(ctx, c, id)
		return view, err == nil && view.Execution.Status.Terminal(), err
	})
}

// WaitFor reads something until it has ended, or d is over. In between it waits for waiters.wake.
func WaitFor[V any](ctx context.Context, e *Engine, id base.UUID, d time.Duration, read func(context.Context) (view V, ended bool, err error)) (view V, err error) {
	if d < 0 || d > MaxWait {
		return view, base.Invalid("wait_ms", "%s, want 0..%s", d, MaxWait)
	}
	timer := e.Cfg.Clock.NewTimer(d)
	defer timer.Stop()
	for {
		ended, leave := e.Waiters.enter(id) // subscribe first, read second: no completion is missed
		view, over, err := read(ctx)
		if err != nil || over || d == 0 {
			leave()
			return view, err
		}
		select {
		case <-ended:
			leave()
			continue
		case <-timer.C:
		case <-e.Stop:
		case <-ctx.Done():
		}
		leave()
		view, _, err = read(context.WithoutCancel(ctx))
		return view, err
	}
}

// Vanished returns those of the executions, by id, that count as removed although their rows are there (L141): the rooms know what they were part of.
func (e *Engine) Vanished(ctx context.Context, xs ...*core.Execution) (map[base.UUID]bool, error) {
	return e.vanished(ctx, xs)
}

// ReadIf reads rows, if any are named.
func (e *Engine) ReadIf(ctx context.Context, want store.Want) (*store.Loaded, error) {
	if len(want.Docs)+len(want.Owned)+len(want.Executions)+len(want.Scans)+len(want.History) == 0 {
		return &store.Loaded{}, nil
	}
	return e.Store.Read(ctx, want)
}

// ReadDocs reads small records.
func (e *Engine) ReadDocs(ctx context.Context, refs ...store.DocRef) (map[store.DocRef]store.Doc, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: refs})
	if err != nil {
		return nil, PublicFault(err)
	}
	return loaded.Docs, nil
}

// PageByName lists some of what the dictionary has, by name, behind the cursor.
func PageByName[T any](ctx context.Context, e *Engine, scope, cursor string, limit *int, all func(*Dictionary) map[string]T) (page []T, next string, err error) {
	n, err := core.PageLimit(limit)
	if err != nil {
		return nil, "", err
	}
	after := ""
	if cursor != "" {
		key, err := core.DecodeCursor(scope, cursor)
		if err != nil {
			return nil, "", err
		}
		after = string(key)
	}
	if err := e.Dict.Reload(ctx); err != nil {
		return nil, "", PublicFault(err)
	}
	known := all(e.Dict.Now())
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(name string) bool { return name <= after })
	if len(names) > n {
		if names = names[:n]; n > 0 {
			next = core.EncodeCursor(scope, []byte(names[n-1]))
		}
	}
	for _, name := range names {
		page = append(page, known[name])
	}
	return page, next, nil
}

// ListDocs gives a page of the small records of a kind that have no owner, by key: of those that show keeps.
func ListDocs[T any](
	ctx context.Context, e *Engine, kind store.DocKind, scope, cursor string, limit *int, show func(doc *store.Doc) (T, bool, error),
) (items []T, next string, err error) {
	n, err := core.PageLimit(limit)
	if err != nil {
		return nil, "", err
	}
	after, last := "", ""
	if cursor != "" {
		key, err := core.DecodeCursor(scope, cursor)
		if err != nil {
			return nil, "", err
		}
		after = string(key)
	}
	for n > 0 {
		loaded, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: kind, After: after, Limit: n + 1}}})
		if err != nil {
			return nil, "", PublicFault(err)
		}
		docs := loaded.Scanned[0]
		for i := range docs {
			item, keep, err := show(&docs[i])
			switch {
			case err != nil:
				return nil, "", err
			case keep && len(items) == n:
				return items, core.EncodeCursor(scope, []byte(last)), nil
			case keep:
				items, last = append(items, item), docs[i].Key
			}
		}
		if len(docs) <= n {
			break
		}
		after = docs[n].Key
	}
	return items, "", nil
}
