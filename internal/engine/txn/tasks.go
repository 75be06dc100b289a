package txn

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// task is a piece of follow-up work: work that is too large for the transaction that made it necessary. It is done afterwards in bounded batches,
// kept until it is done, and harmless if done twice.
type task struct {
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
	taskCountLane   = "count_lane"   // a lane got a cap: what runs in it takes its places (S5)
	taskRefileLane  = "refile_lane"  // a lane's ageing changed: its queued rows get new order keys (S8)
	taskRetireLane  = "retire_lane"  // a lane's retention got shorter: it applies to what has ended before (L139)
	taskRetireAll   = "retire_all"   // the default retention got shorter: it applies to what has ended before (L139)
	taskTrimHistory = "trim_history" // entries have left the lease history of an execution (L40)
	taskFreeQuota   = "free_quota"   // a quota was removed: what it blocked continues (S47)

	taskCancelHolders = "cancel_holders" // a budget was breached: leases charged to it end (B27)
	taskFreeBudget    = "free_budget"    // a budget was deleted: what it blocked continues (B33)
	taskFreeUnreached = "free_unreached" // a budget below this one was deleted: what this one no longer applies to continues (B33)
	taskDropEpoch     = "drop_epoch"     // a past epoch of a budget is to be removed
	taskDropBudget    = "drop_budget"    // what a deleted budget left is to be removed (B5)
	taskLeaveBudget   = "leave_budget"   // the execution that a budget is for was removed

	taskUnmark = "unmark_rule" // a process may have ended while it checked whether a quota or budget may be removed (S38, B5)

	taskResolveEdges = "resolve_edges"  // a member has ended: edges that lead from it are still pending (F28)
	taskCancelLosers = "cancel_losers"  // a join is decided: upstreams that it no longer needs end (F30)
	taskCancelFlow   = "cancel_members" // a flow was cancelled: its members end (F49)
	taskBeginSubflow = "begin_subflow"  // a flow node may start: its sub-flow is created (F46)
	taskEndNode      = "end_node"       // a sub-flow has ended: so does its node (F47)
	taskEndChildren  = "end_children"   // a parent has ended: its children flow is sealed or cancelled (F44)
	taskSpreadBudget = "spread_budget"  // a budget applies to the members of a flow, or was deleted and no longer does (B6)
	taskSealQuorums  = "seal_quorums"   // a flow was sealed while a member could not be read, whose quorum may be out of reach (F24)
	taskRemoveFlow   = "remove_flow"    // a finished flow is to be removed (L140)
)

const (
	countBatch  = 500
	refileBatch = 1000
)

// addTask adds follow-up work that starts at once.
func (u *Tx) addTask(t task) { u.addTaskAt(t, u.Now) }

// addTaskAt adds follow-up work that starts at that time.
func (u *Tx) addTaskAt(t task, at base.Time) {
	u.addTaskAs(u.Engine.Mint().String(), t, at)
}

// addTaskAs adds follow-up work under an id. If it exists already it is done once, at the earlier time.
func (u *Tx) addTaskAs(id string, t task, at base.Time) {
	u.PutDoc(t.doc(store.DocRef{Kind: docTask, Key: id}))
	timer := u.TimerAt(taskTimer(t.Kind), at)
	timer.Texts = append(timer.Texts, id)
}

// doc returns the record of the work.
func (t *task) doc(ref store.DocRef) store.Doc {
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
	wait, failures, ch, kind := laterBy(maxFailures), 0, &store.Changes{}, timerTasks
	if work, err := decodeTask(doc); err == nil {
		work.Failures++
		wait, failures = laterBy(work.Failures-1), work.Failures
		ch.PutDocs = []store.Doc{work.doc(doc.DocRef)}
		kind = taskTimer(work.Kind)
	}
	now, err := e.Store.Now(ctx)
	if err != nil {
		return err
	}
	next := now.Add(wait)
	e.notes.Error("follow-up work fails", "row", id, "failures", failures, "error", why)
	ch.AddTimers = []store.Timer{{At: next, Kind: kind, Texts: []string{id}}}
	ch.Events = []core.Event{quarantined(id, base.CodeOf(why), failures, now, next)}
	if err := e.Write(ctx, "quarantine", ch); err != nil {
		return err
	}
	e.Gauges.Rows.add(id, next)
	return nil
}

// sweepTask runs a piece of follow-up work that was due then, until it is done.
func (e *Engine) sweepTask(ctx context.Context, id string, due base.Time) (err error) {
	defer func() { err = e.caught(inTask, recover(), err) }()
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

func (e *Engine) workOff(ctx context.Context, ref store.DocRef, t task) error {
	if e.Cfg.Trap != nil {
		e.Cfg.Trap("task:"+t.Kind, ref.Key)
	}
	switch t.Kind {
	case taskCountLane:
		return e.countLane(ctx, t)
	case taskRefileLane:
		return e.refileLane(ctx, t)
	case taskRetireLane:
		return e.retireLane(ctx, ref, t)
	case taskRetireAll:
		return e.retireAll(ctx, ref, t)
	case taskTrimHistory:
		return e.dropHistory(ctx, t)
	case taskFreeQuota:
		return e.freeQuota(ctx, t)
	case taskCancelHolders:
		return e.cancelRest(ctx, t)
	case taskFreeBudget:
		return e.freeBudget(ctx, t)
	case taskFreeUnreached:
		return e.freeUnreached(ctx, t)
	case taskDropEpoch:
		return e.dropEpoch(ctx, t)
	case taskDropBudget:
		return e.dropBudget(ctx, t)
	case taskLeaveBudget:
		return e.leaveBudget(ctx, t)
	case taskUnmark:
		return e.unmark(ctx, t.Rule, t.Token)
	default:
		return e.workOffFlow(ctx, t)
	}
}

// countLane gives every execution that runs in the lane its place, then opens the lane for picks (S5). Meanwhile nothing is picked there, so the
// number of running executions only falls.
func (e *Engine) countLane(ctx context.Context, t task) error {
	f := core.Filter{Lane: []string{t.Lane}, Status: []string{"running", "granted"}}
	err := e.eachMatching(ctx, f, countBatch, func(x *core.Execution) command {
		return &onOne{
			op: "count_place", caller: EngineCaller, id: x.ID.Given(),
			act: func(u *Tx, x *core.Execution, _ *core.Effects, _ *core.LeaseRecord) (bool, error) {
				if x.Status != core.Running && x.Status != core.Granted {
					return false, nil
				}
				SetIn(&u.counters, LaneCounter(t.Lane), u.counters[LaneCounter(t.Lane)])
				u.takePlace(u.laneNamed(t.Lane), x)
				return true, nil
			},
		}
	})
	if err != nil {
		return err
	}
	lane := e.Dict.Now().Lanes[t.Lane]
	return e.Do(ctx, &openLane{id: lane.ID})
}

// EngineCaller is the engine itself.
var EngineCaller = Caller{Principal: "engine", Actor: "engine"}

// openLane ends the count of a lane's places.
type openLane struct{ id int32 }

func (o *openLane) Name() string { return "open_lane" }

func (o *openLane) Want(w *store.Want, _ bool) { w.LockLanes = append(w.LockLanes, o.id) }

func (o *openLane) Decide(u *Tx) error {
	lane := u.lanes[o.id]
	lane.Counting = false
	u.lanes[o.id] = lane
	u.Changes.Lanes = append(slices.DeleteFunc(u.Changes.Lanes, func(other core.Lane) bool { return other.ID == o.id }), lane)
	return nil
}

// refileLane gives the lane's queued executions the order keys of the current ageing (S8).
func (e *Engine) refileLane(ctx context.Context, t task) error {
	f := core.Filter{Lane: []string{t.Lane}, Status: []string{"ready", "blocked"}}
	return e.eachMatching(ctx, f, refileBatch, func(x *core.Execution) command {
		return &onOne{
			op: "refile", caller: EngineCaller, id: x.ID.Given(),
			act: func(u *Tx, x *core.Execution, _ *core.Effects, _ *core.LeaseRecord) (bool, error) {
				lane := u.laneNamed(t.Lane)
				return x.Queued() && x.OrderKey != x.RankKey(lane.Settings.AgeingMS), nil
			},
		}
	})
}

// eachMatching runs a command on every execution that matches the filter, in batches.
func (e *Engine) eachMatching(ctx context.Context, f core.Filter, batch int, cmd func(x *core.Execution) command) error {
	if err := e.Follower.ReachAll(ctx); err != nil {
		return err
	}
	r := ListRequest{Filter: f, Order: store.IDAsc, Limit: &batch}
	for {
		page, err := e.List(ctx, EngineCaller, r)
		if err != nil {
			return err
		}
		cmds := make([]command, len(page.Items))
		for i, item := range page.Items {
			cmds[i] = cmd(item.Execution)
		}
		for _, err := range e.doAll(ctx, cmds) {
			if err != nil && base.CodeOf(err) != base.CodeExecutionNotFound {
				return err
			}
		}
		if page.Next == "" {
			return nil
		}
		r.Cursor = page.Next
	}
}
