package work

import (
	"context"
	"errors"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// ingester turns what stands in the inbox into executions, or applies it to those that exist.
type ingester struct {
	lock  txn.CallLock // held while rows are ingested
	aside map[base.UUID]*leftAlone
}

// leftAlone is a row that cannot be ingested, because it makes the engine panic. It is tried again when its pause is over (S63).
type leftAlone struct {
	failures int // in a row
	until    time.Time
}

// ingestAll ingests everything in the inbox, page by page: rows that others hold, and rows that are left alone, hold up none behind them.
func (e *Work) ingestAll(ctx context.Context) {
	var after base.UUID
	for more := true; more && ctx.Err() == nil; {
		var err error
		if after, more, err = e.ingest(ctx, after); err != nil {
			e.QuietLog.Warn("submissions wait to be ingested", "error", err)
		}
	}
}

// ingest ingests the first rows behind one. It returns the last of them, and whether there may be more. Within a process one ingest runs at a time:
// a second one would only lock what the first has just filed, and keep it from being claimed.
func (e *Work) ingest(ctx context.Context, after base.UUID) (last base.UUID, more bool, err error) {
	want := store.Want{Inbox: ingestLimit, InboxAfter: after}
	loaded, err := e.Store.Read(ctx, want)
	if err != nil || len(loaded.Inbox) == 0 {
		return after, false, err
	}
	if err := e.inbox.lock.Lock(ctx); err != nil {
		return after, false, err
	}
	defer e.inbox.lock.Unlock()
	if loaded, err = e.Store.Read(ctx, want); err != nil || len(loaded.Inbox) == 0 {
		return after, false, err
	}
	last, more = loaded.Inbox[len(loaded.Inbox)-1].ID.UUID, len(loaded.Inbox) == ingestLimit
	batch, err := e.ingestions(ctx, loaded.Inbox)
	if err != nil {
		return last, false, err
	}
	errs := e.ProcessEachBeside(batch) // what stays in the inbox is found by the next look
	for i, cmd := range batch {
		if err := e.inbox.learn(ctx, e, cmd.(interface{ Subject() base.UUID }).Subject(), errs[i]); err != nil {
			return last, false, err
		}
	}
	return last, more, errors.Join(errs...)
}

// ingestions makes the commands for rows, without those that are left alone.
func (e *Work) ingestions(ctx context.Context, rows []store.InboxRow) (batch []txn.Command, err error) {
	var carry []base.UUID
	for _, row := range rows {
		if alone := e.inbox.aside[row.ID.UUID]; alone != nil && alone.until.After(e.Cfg.Clock.Now()) {
			continue
		}
		if len(row.Body) == 0 {
			carry = append(carry, row.ID.UUID)
			continue
		}
		cmd, err := e.newIngestion(ctx, row)
		if err != nil {
			return nil, err
		}
		batch = append(batch, cmd)
	}
	outcomes, err := e.outcomesOf(ctx, carry)
	return append(batch, outcomes...), err
}

// learn leaves a row alone for a while that has failed, unless it was the store that failed, or another transaction holds what the row needs. The
// lock is held.
func (in *ingester) learn(ctx context.Context, e *Work, row base.UUID, err error) error {
	switch {
	case err == nil:
		delete(in.aside, row)
		return nil
	case base.CodeOf(err).Info().Class == "unavailable":
		return nil
	}
	alone := in.aside[row]
	if alone == nil {
		alone = &leftAlone{}
		txn.SetIn(&in.aside, row, alone)
	}
	now, unread := e.Store.Now(ctx)
	if unread != nil {
		return unread
	}
	pause := txn.LaterBy(alone.failures)
	alone.failures++
	alone.until = e.Cfg.Clock.Now().Add(time.Duration(pause) * time.Millisecond)
	e.Gauges.Rows.Add(row.String(), now.Add(pause))
	return e.Write(ctx, "quarantine", &store.Changes{
		Events: []core.Event{txn.Quarantined(row, base.CodeOf(err), alone.failures, now, now.Add(pause))},
	})
}

// ingestion files a submission from the inbox. The key was written by the user's own transaction.
type ingestion struct {
	Submit
	bad error // the row cannot be read
}

func (e *Work) newIngestion(ctx context.Context, row store.InboxRow) (*ingestion, error) {
	a := &ingestion{}
	a.e, a.ID = e, row.ID
	if a.bad = a.readBody(row.Body); a.bad != nil {
		return a, nil
	}
	class, err := e.Dict.ClassOf(ctx, a.Refs.Class(&a.S))
	a.Class = class
	return a, err
}

func (a *ingestion) Name() string { return "adopt" }

// Subject is the execution that the command is about.
func (a *ingestion) Subject() base.UUID { return a.ID.UUID }

// Want locks the id, so that of several processes one files the submission.
func (a *ingestion) Want(w *store.Want, _ bool) {
	w.Executions = append(w.Executions, a.ID.UUID)
	if a.bad == nil {
		a.keepClass()
	}
}

func (a *ingestion) More(*txn.Tx, *store.Want) {}

func (a *ingestion) Decide(u *txn.Tx) error {
	u.At("ingest", a.ID.UUID)
	switch {
	case !u.NotIngested[a.ID.UUID]: // another process has filed it
	case a.bad != nil:
		a.quarantine(u)
	case !a.LostClass(u):
		a.file(u)
	}
	return nil
}

// file creates the execution.
func (a *ingestion) file(u *txn.Tx) {
	u.Changes.DropInbox = append(u.Changes.DropInbox, a.ID.UUID)
	u.Changes.Dictionary = u.Dict.Version
	fx := u.Effects(a.caller)
	a.S.LaneRetry = retryOfLane(u.Dict, a.S.Lane)
	u.Create(core.NewExecution(fx, &a.S, a.ID, a.Class), fx)
	if a.S.IdempotencyKey != "" { // the window of the key began no later than now (L84)
		timer := u.TimerAt(txn.TimerKeys, txn.RoundUp(u.Now.Add(a.S.Policy.DedupWindowMS), base.Minute))
		timer.Texts = append(timer.Texts, txn.EncodeKey(a.key()))
	}
}

// quarantine drops a submission that was accepted and cannot be read. Its caller has the answer already and its transaction is committed, so an
// event and a log line report it. It is not tried again.
func (a *ingestion) quarantine(u *txn.Tx) {
	u.Changes.DropInbox = append(u.Changes.DropInbox, a.ID.UUID)
	u.Changes.Events = append(u.Changes.Events, txn.Quarantined(a.ID.UUID, base.CodeCorruption, 1, u.Now, 0))
	u.After = append(u.After, func() {
		a.e.QuietLog.Error("a submission of a committed transaction cannot be read", "execution_id", a.ID, "error", a.bad)
	})
}
