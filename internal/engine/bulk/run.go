package bulk

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/flows"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/waits"
	"github.com/flowfabric/flowfabric/internal/engine/work"
	"github.com/flowfabric/flowfabric/internal/store"
)

// bulkAction applies a job's action to one execution by the rules of its own operation (L137).
type bulkAction func(u *txn.Tx, j *job, ent *txn.Row, fx *core.Effects) (changed bool, err error)

// bulkActions is the table of actions of U57 that exist.
var bulkActions = map[string]bulkAction{
	"cancel": func(_ *txn.Tx, j *job, ent *txn.Row, fx *core.Effects) (bool, error) {
		already, err := ent.Exec.Cancel(fx, core.CancelCommand{Source: "operator", By: j.Caller.Principal, Reason: j.Reason})
		return !already, err
	},
	bulkReplay: func(u *txn.Tx, j *job, ent *txn.Row, fx *core.Effects) (bool, error) {
		if err := core.CheckDeadline(j.Args.DeadlineAt, u.Now); err != nil {
			return false, err
		}
		err := flows.Replay(u, ent.Exec, fx, core.ReplayCommand{By: j.Caller.Principal, Reason: j.Reason, DeadlineAt: j.Args.DeadlineAt, Lane: u.Lane(ent.Exec)}, nil)
		if err == nil && j.Args.KeepSteps {
			err = work.CarrySteps(u, ent.Exec)
		}
		return true, err
	},
	"priority": func(_ *txn.Tx, j *job, ent *txn.Row, fx *core.Effects) (bool, error) {
		return ent.Exec.SetPriority(fx, j.Args.Priority)
	},
	"hold": func(_ *txn.Tx, j *job, ent *txn.Row, fx *core.Effects) (bool, error) {
		return ent.Exec.PlaceHold(fx, j.Caller.Principal, j.Reason)
	},
	"release_hold": func(_ *txn.Tx, j *job, ent *txn.Row, fx *core.Effects) (bool, error) {
		return ent.Exec.ReleaseHold(fx, j.Reason)
	},
	bulkResume: resumeOne,
	bulkSignal: signalOne,
	bulkTag: func(u *txn.Tx, j *job, ent *txn.Row, fx *core.Effects) (bool, error) {
		return work.SetTags(u, ent.Exec, fx, j.Args.Tags)
	},
	"retain": func(u *txn.Tx, j *job, ent *txn.Row, fx *core.Effects) (bool, error) {
		u.RetainedUntil(ent, j.Args.Until)
		return true, ent.Exec.SetRetain(fx, &core.Retain{Until: j.Args.Until, By: j.Caller.Principal, Reason: j.Reason})
	},
	"delete": func(u *txn.Tx, j *job, ent *txn.Row, fx *core.Effects) (bool, error) {
		if err := flows.CheckRemovable(u, ent.Exec); err != nil {
			return false, err
		}
		ent.Exec.EmitDeleted(fx, j.Reason)
		u.Remove(ent)
		return true, nil
	},
}

// sweepJobs continues bulk jobs, and removes those that ended long ago.
func (e *Jobs) sweepJobs(ctx context.Context, t store.Timer) error {
	for _, text := range t.Texts {
		id, ok := base.ParseUUID(text)
		if !ok {
			continue
		}
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = e.jobRound(ctx, id); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// jobRound does the next batch of a job: its rows and its position change in one transaction, so that a restart repeats
// nothing. It reports whether there is more to do.
func (e *Jobs) jobRound(ctx context.Context, id base.UUID) (more bool, err error) {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{jobRef(id)}})
	if err != nil {
		return false, err
	}
	doc, ok := loaded.Docs[jobRef(id)]
	if !ok {
		return false, nil
	}
	j, err := decodeJob(&doc)
	if err != nil {
		return false, err
	}
	if due := j.due(loaded.Now); due > loaded.Now {
		return false, e.armJob(ctx, id, due)
	}
	if j.State != "running" {
		return false, e.forgetJob(ctx, id)
	}
	batch, err := e.nextBatch(ctx, j)
	if err != nil {
		return false, err
	}
	cmd := &jobBatch{e: e, id: id, at: j.position(), batch: batch, waits: j.Action == bulkResume || j.Action == bulkSignal}
	if j.Action == bulkReplay || j.Action == bulkDelete {
		if cmd.apart, err = e.actOnMembers(ctx, j, batch.ids); err != nil {
			return false, err
		}
	}
	err = e.runBatch(cmd)
	return err == nil && (cmd.early || !batch.last && j.Rate == 0), err
}

// due returns when the job continues, or when its record is removed. A next batch further ahead than any rate asks for was delayed by a clock that
// was set back since: it runs now.
func (j *job) due(now base.Time) base.Time {
	switch {
	case j.State != "running":
		return j.EndedAt.Add(bulkKeptFor)
	case j.NotBefore.Sub(now) > core.ClockStep:
		return now
	default:
		return j.NotBefore
	}
}

// armJob arms a job again whose timer came too early, as timers do after the clock was set back (armAll). The caller drops that timer, and the job
// must not be left without one.
func (e *Jobs) armJob(ctx context.Context, id base.UUID, due base.Time) error {
	return e.Write(ctx, "arm_bulk", &store.Changes{AddTimers: []store.Timer{{At: due, Kind: timerJobs, Texts: []string{id.String()}}}})
}

// runBatch runs a batch of a job. An execution that makes it panic is counted as failed, and stops no other (L138).
func (e *Jobs) runBatch(cmd *jobBatch) error {
	for {
		err := e.RunNow(cmd)
		if err == nil || cmd.panickedOn.IsZero() {
			return err
		}
		if _, again := cmd.apart[cmd.panickedOn]; again {
			return err
		}
		txn.SetIn(&cmd.apart, cmd.panickedOn, err)
		cmd.panickedOn = base.UUID{}
	}
}

// position returns how far the job is.
func (j *job) position() jobPosition { return jobPosition{j.Cursor, j.Next} }

type jobPosition struct {
	cursor string
	next   int
}

// bulkRows is the next part of a job.
type bulkRows struct {
	ids  []base.GivenID
	then jobPosition
	last bool
}

// batch is how many executions one transaction handles: no more than the rate allows a second.
func (j *job) batch() int {
	if j.Rate > 0 {
		return min(bulkBatch, j.Rate)
	}
	return bulkBatch
}

func (e *Jobs) nextBatch(ctx context.Context, j *job) (bulkRows, error) {
	if len(j.IDs) > 0 {
		end := min(j.Next+j.batch(), len(j.IDs))
		return bulkRows{ids: j.IDs[j.Next:end], then: jobPosition{next: end}, last: end == len(j.IDs)}, nil
	}
	if j.Cursor == "" { // every row created before the start must be there to be found
		if err := e.Follower.ReachAll(ctx); err != nil {
			return bulkRows{}, err
		}
	}
	f := j.Filter
	if f.Created.To == 0 || f.Created.To > j.StartedAt+1 {
		f.Created.To = j.StartedAt + 1 // rows created before its start (L137)
	}
	page, err := e.List(ctx, j.Caller, txn.ListRequest{Filter: f, Order: store.CreatedAsc, Limit: txn.Ptr(j.batch()), Cursor: j.Cursor})
	if err != nil {
		return bulkRows{}, err
	}
	rows := bulkRows{then: jobPosition{cursor: page.Next}, last: page.Next == ""}
	for _, item := range page.Items {
		rows.ids = append(rows.ids, item.Execution.ID.Given())
	}
	return rows, nil
}

// jobBatch applies a job's action to some executions.
type jobBatch struct {
	e     *Jobs
	id    base.UUID
	at    jobPosition // where the job stood when the rows were chosen
	batch bulkRows
	waits bool // the action looks at wait states
	// apart are the outcomes of members of flows, which were handled separately because their replay or removal concerns others too.
	apart map[base.UUID]error
	early bool // some must be looked at again before the job continues

	panickedOn base.UUID // the execution that made it panic
}

func (b *jobBatch) Panicked(row base.UUID) { b.panickedOn = row }

func (b *jobBatch) Name() string { return "bulk_batch" }

func (b *jobBatch) Want(w *store.Want, _ bool) {
	w.Docs = append(w.Docs, jobRef(b.id))
	w.LockDocs, w.SkipUnreadable = true, true // a row that cannot be read does not stop the job (L138)
	for _, id := range b.batch.ids {
		w.Executions = append(w.Executions, id.UUID)
		w.Docs = append(w.Docs, work.StepsRef(id.UUID))
		if b.waits {
			w.Owned = append(w.Owned, waits.WaitStateKey(id.UUID)) // each once
		}
	}
}

// More loads what is removed together with executions.
func (b *jobBatch) More(u *txn.Tx, w *store.Want) {
	doc := u.Doc(jobRef(b.id))
	if doc == nil {
		return
	}
	if j, err := decodeJob(doc); err == nil && j.Action == "delete" {
		for _, id := range b.batch.ids {
			u.WantRemovable(w, id.UUID)
		}
	}
}

func (b *jobBatch) Decide(u *txn.Tx) error {
	doc := u.Doc(jobRef(b.id))
	if doc == nil {
		return nil
	}
	j, err := decodeJob(doc)
	if err != nil {
		return err
	}
	if j.State != "running" || j.position() != b.at {
		return nil // stopped, or done by another process
	}
	if b.early = j.Action == bulkReplay && b.tooEarly(u, j); b.early {
		return nil
	}
	var items []storedItem
	for _, id := range b.batch.ids {
		if matched, err := b.one(u, j, id); matched {
			items = append(items, itemOf(id, err))
		}
	}
	j.keepItems(u, items)
	refused := 0
	for i := range items {
		if items[i].Code != "" {
			refused++
		}
	}
	u.After = append(u.After, func() { b.e.countItems(j.Action, len(items)-refused, refused) })
	j.Cursor, j.Next = b.batch.then.cursor, b.batch.then.next
	if b.batch.last {
		j.end(u, j.Caller, "done")
		return nil
	}
	if j.Rate > 0 {
		j.slowDown(u, len(b.batch.ids))
	}
	j.put(u)
	return nil
}

// tooEarly reports whether an execution to be replayed has just ended, which this commit publishes, or has become a member of a flow, or one that
// matches, since those were handled: their replay concerns others too (F54).
func (b *jobBatch) tooEarly(u *txn.Tx, j *job) (early bool) {
	for _, id := range b.batch.ids {
		ent, err := u.Find(j.Caller, id)
		if _, apart := b.apart[id.UUID]; apart || err != nil {
			continue
		}
		u.Settle(ent)
		matches := j.Filter.Empty() || j.Filter.Matches(ent.Exec, u.LaneState(ent.Exec))
		early = early || matches && (ent.JustEnded() || ent.Exec.Member != nil)
	}
	return early
}

// slowDown delays the next batch by as long as this one may take at the job's rate. Time and timer are written with the batch, so that a restart
// does not make the job faster.
func (j *job) slowDown(u *txn.Tx, handled int) {
	j.NotBefore = u.Now.Add((int64(handled)*1000 + int64(j.Rate) - 1) / int64(j.Rate))
	timer := u.TimerAt(timerJobs, j.NotBefore)
	timer.Texts = append(timer.Texts, j.ID.String())
}

// one applies the action to one execution that still matches. A refusal is counted and stops nothing.
func (b *jobBatch) one(u *txn.Tx, j *job, id base.GivenID) (matched bool, err error) {
	ent, err := u.Find(j.Caller, id)
	if outcome, apart := b.apart[id.UUID]; apart {
		err = outcome
	} else if err == nil {
		u.At("bulk", id.UUID)
		u.Settle(ent)
		if !j.Filter.Empty() && !j.Filter.Matches(ent.Exec, u.LaneState(ent.Exec)) {
			return false, nil
		}
		err = u.Apply(j.Caller, ent, func(x *core.Execution, fx *core.Effects) (bool, error) {
			return bulkActions[j.Action](u, j, ent, fx)
		})
	}
	if err == nil {
		j.Done++
		return true, nil
	}
	if code := base.CodeOf(err); code == base.CodeCorruption || code == base.CodeInternal {
		j.Failed++
		return true, err
	}
	if j.Refused == nil {
		j.Refused = map[base.Code]int{}
	}
	j.Refused[base.CodeOf(err)]++
	return true, err
}
