package txn

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// FollowUp is a piece of follow-up work: work that is too large for the transaction that made it necessary. It is done afterwards in bounded batches,
// kept until it is done, and harmless if done twice.
type FollowUp struct {
	Kind string `json:"kind"`
	Lane string `json:"lane,omitempty"`

	Retention *core.RetentionByStatus `json:"retention,omitempty"` // the retention of the lane, or the default, before the change
	Default   *core.RetentionByStatus `json:"default,omitempty"`   // the default now
	Cursor    string                  `json:"cursor,omitempty"`    // of the scan of the lane: done up to here

	Quota  string    `json:"quota,omitempty"`
	Budget base.UUID `json:"budget,omitzero"`
	Gone   base.UUID `json:"gone,omitzero"`   // the budget below it that was deleted
	Before base.Time `json:"before,omitzero"` // what came later is not concerned

	Execution base.UUID `json:"execution,omitzero"`
	Epoch     int64     `json:"epoch,omitempty"`

	Rule  string    `json:"rule,omitempty"`
	Token base.UUID `json:"token,omitzero"`

	Flow base.UUID      `json:"flow,omitzero"`
	End  *core.EndedRun `json:"end,omitempty"` // how the execution ended (F27)

	Satisfied bool      `json:"satisfied,omitempty"` // how a wait for children was decided; Cursor names the list of them
	Since     base.Time `json:"since,omitzero"`      // when that was

	Failures int `json:"failures,omitempty"` // in a row
}

// The kinds of follow-up work.
const (
	TaskCountLane   = "count_lane"   // a lane got a cap: what runs in it takes its places (S5)
	TaskRefileLane  = "refile_lane"  // a lane's ageing changed: its queued rows get new order keys (S8)
	TaskRetireLane  = "retire_lane"  // a lane's retention got shorter: it applies to what has ended before (L139)
	TaskRetireAll   = "retire_all"   // the default retention got shorter: it applies to what has ended before (L139)
	taskTrimHistory = "trim_history" // entries have left the lease history of an execution (L40)
	TaskFreeQuota   = "free_quota"   // a quota was removed: what it blocked continues (S47)

	TaskCancelHolders = "cancel_holders" // a budget was breached: leases charged to it end (B27)
	TaskFreeBudget    = "free_budget"    // a budget was deleted: what it blocked continues (B33)
	TaskFreeUnreached = "free_unreached" // a budget below this one was deleted: what this one no longer applies to continues (B33)
	TaskDropEpoch     = "drop_epoch"     // a past epoch of a budget is to be removed
	TaskDropBudget    = "drop_budget"    // what a deleted budget left is to be removed (B5)
	TaskLeaveBudget   = "leave_budget"   // the execution that a budget is for was removed

	TaskUnmark = "unmark_rule" // a process may have ended while it checked whether a quota or budget may be removed (S38, B5)

	TaskResolveEdges = "resolve_edges"  // a member has ended: edges that lead from it are still pending (F28)
	TaskCancelLosers = "cancel_losers"  // a join is decided: upstreams that it no longer needs end (F30)
	TaskCancelFlow   = "cancel_members" // a flow was cancelled: its members end (F49)
	TaskBeginSubflow = "begin_subflow"  // a flow node may start: its sub-flow is created (F46)
	TaskEndNode      = "end_node"       // a sub-flow has ended: so does its node (F47)
	TaskEndChildren  = "end_children"   // a parent has ended: its children flow is sealed or cancelled (F44)
	TaskSpreadBudget = "spread_budget"  // a budget applies to the members of a flow, or was deleted and no longer does (B6)
	TaskSealQuorums  = "seal_quorums"   // a flow was sealed while a member could not be read, whose quorum may be out of reach (F24)
	TaskRemoveFlow   = "remove_flow"    // a finished flow is to be removed (L140)
)

// AddTask adds follow-up work that starts at once.
func (u *Tx) AddTask(t FollowUp) { u.AddTaskAt(t, u.Now) }

// AddTaskAt adds follow-up work that starts at that time.
func (u *Tx) AddTaskAt(t FollowUp, at base.Time) {
	u.AddTaskAs(u.Engine.Mint().String(), t, at)
}

// AddTaskAs adds follow-up work under an id. If it exists already it is done once, at the earlier time.
func (u *Tx) AddTaskAs(id string, t FollowUp, at base.Time) {
	u.PutDoc(t.Doc(store.DocRef{Kind: docTask, Key: id}))
	timer := u.TimerAt(taskTimer(t.Kind), at)
	timer.Texts = append(timer.Texts, id)
}

// Doc returns the record of the work.
func (t *FollowUp) Doc(ref store.DocRef) store.Doc {
	body, _ := json.Marshal(t)
	return store.Doc{DocRef: ref, Body: body}
}

// sweepTasks runs follow-up work until it is done. What fails stays, to be tried again, and does not delay the rest (S63).
func (e *Engine) sweepTasks(ctx context.Context, t store.Timer) error {
	var failed error
	for _, id := range t.Texts {
		err := e.sweepTask(ctx, id, t.At)
		if err != nil && ofRow(err) && ctx.Err() == nil {
			err = e.setTaskAside(ctx, id, err)
		}
		if failed = cmp.Or(failed, err); ctx.Err() != nil {
			break
		}
	}
	return cmp.Or(failed, ctx.Err())
}

// setTaskAside moves follow-up work that fails for another reason than the store to a timer of its own, later with every failure (S63).
func (e *Engine) setTaskAside(ctx context.Context, id string, why error) error {
	doc, err := e.taskDoc(ctx, id)
	if err != nil || doc == nil {
		return err
	}
	wait, failures, ch, kind := LaterBy(maxFailures), 0, &store.Changes{}, timerTasks
	if work, err := decodeTask(doc); err == nil {
		work.Failures++
		wait, failures = LaterBy(work.Failures-1), work.Failures
		ch.PutDocs = []store.Doc{work.Doc(doc.DocRef)}
		kind = taskTimer(work.Kind)
	}
	now, err := e.Store.Now(ctx)
	if err != nil {
		return err
	}
	next := now.Add(wait)
	e.Notes.Error("follow-up work fails", "row", id, "failures", failures, "error", why)
	ch.AddTimers = []store.Timer{{At: next, Kind: kind, Texts: []string{id}}}
	ch.Events = []core.Event{Quarantined(id, base.CodeOf(why), failures, now, next)}
	if err := e.Write(ctx, "quarantine", ch); err != nil {
		return err
	}
	e.Gauges.Rows.Add(id, next)
	return nil
}

// sweepTask runs a piece of follow-up work that was due then, until it is done.
func (e *Engine) sweepTask(ctx context.Context, id string, due base.Time) (err error) {
	defer func() { err = e.Caught(inTask, recover(), err) }()
	doc, err := e.taskDoc(ctx, id)
	if err != nil || doc == nil {
		return err
	}
	work, err := decodeTask(doc)
	if err != nil {
		return err
	}
	if err := e.workOff(ctx, doc.DocRef, work); err != nil {
		return err
	}
	if err := e.Write(ctx, "task_done", &store.Changes{DropDocs: []store.DocRef{doc.DocRef}}); err != nil {
		return err
	}
	e.Meter.Followed(work.Kind, due, e.Sweep.StoreNow())
	return nil
}

// taskDoc returns the record of a piece of follow-up work, or nil if another process has done it.
func (e *Engine) taskDoc(ctx context.Context, id string) (*store.Doc, error) {
	ref := store.DocRef{Kind: docTask, Key: id}
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{ref}})
	if err != nil {
		return nil, err
	}
	doc, ok := loaded.Docs[ref]
	if !ok {
		return nil, nil
	}
	return &doc, nil
}

func (e *Engine) workOff(ctx context.Context, ref store.DocRef, t FollowUp) error {
	if e.Cfg.Trap != nil {
		e.Cfg.Trap("task:"+t.Kind, ref.Key)
	}
	switch t.Kind {
	case taskTrimHistory:
		return e.dropHistory(ctx, t)
	default:
		if do := e.extensions.tasks[t.Kind]; do != nil {
			return do(ctx, ref, t)
		}
		return base.Errorf(base.CodeCorruption, "unknown follow-up work %q", t.Kind)
	}
}

// EngineCaller is the engine itself.
var EngineCaller = Caller{Principal: "engine", Actor: "engine"}

// decodeTask reads a piece of follow-up work.
func decodeTask(doc *store.Doc) (FollowUp, error) {
	var t FollowUp
	if err := json.Unmarshal(doc.Body, &t); err != nil {
		return t, Corrupt("task", err)
	}
	return t, nil
}
