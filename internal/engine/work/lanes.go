package work

import (
	"context"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// changeLane changes the settings of one lane (S2).
type changeLane struct {
	e           *Work
	caller      txn.Caller
	id          int32
	action      string
	op          txn.Operator
	change      func(old core.LaneSettings) core.LaneSettings
	request     store.DocRef
	fingerprint string
}

// PutLane states the whole record of a lane, registering it if it is new (S2).
func (e *Work) PutLane(ctx context.Context, c txn.Caller, name string, s core.LaneSettings, op txn.Operator) (txn.LaneView, error) {
	if err := base.CheckLane(name); err != nil {
		return txn.LaneView{}, err
	}
	if err := s.Normalize(); err != nil {
		return txn.LaneView{}, err
	}
	if e.Dict.Now().Lanes[name] == nil && op.Revision == nil { // a lane that does not exist has no revision
		if _, err := e.Store.Register(ctx, []core.Lane{core.NewLane(name, "put_lane")}, nil); err != nil {
			return txn.LaneView{}, txn.PublicFault(err)
		}
		if err := e.Dict.Reload(ctx); err != nil {
			return txn.LaneView{}, txn.PublicFault(err)
		}
	}
	return e.changeLane(ctx, c, name, "put_lane", s, op, func(core.LaneSettings) core.LaneSettings { return s })
}

// SetLaneState opens or closes a lane and leaves its other settings alone (S3).
func (e *Work) SetLaneState(ctx context.Context, c txn.Caller, name string, state core.LaneState, op txn.Operator) (txn.LaneView, error) {
	if _, err := e.laneSeen(ctx, c, name); err != nil {
		return txn.LaneView{}, err
	}
	return e.changeLane(ctx, c, name, stateActions[state], state, op, func(old core.LaneSettings) core.LaneSettings {
		old.State = state
		return old
	})
}

// stateActions are what setting the state of a lane is called.
var stateActions = map[core.LaneState]string{
	core.LaneActive: "resume_lane", core.LanePaused: "pause_lane", core.LaneDraining: "drain_lane", core.LaneDisabled: "disable_lane",
}

func (e *Work) changeLane(ctx context.Context, c txn.Caller, name, operation string, args any, op txn.Operator, change func(core.LaneSettings) core.LaneSettings) (txn.LaneView, error) {
	if err := base.CheckReason("reason", op.Reason); err != nil {
		return txn.LaneView{}, err
	}
	lane, err := e.laneNamed(ctx, name)
	if err != nil {
		return txn.LaneView{}, err
	}
	cmd := &changeLane{e: e, caller: c, id: lane.ID, action: operation, op: op, change: change}
	if op.RequestKey != "" {
		if err := base.CheckRequestKey(op.RequestKey); err != nil {
			return txn.LaneView{}, err
		}
		cmd.request, cmd.fingerprint = txn.RequestRef(c, operation, name, op.RequestKey), txn.Fingerprint(args, op.Reason, op.Revision)
	}
	if err := e.Do(ctx, cmd); err != nil {
		return txn.LaneView{}, err
	}
	return e.GetLane(ctx, c, name)
}

func (e *Work) laneNamed(ctx context.Context, name string) (*core.Lane, error) {
	if lane := e.Dict.Now().Lanes[name]; lane != nil {
		return lane, nil
	}
	if err := e.Dict.Reload(ctx); err != nil {
		return nil, txn.PublicFault(err)
	}
	if lane := e.Dict.Now().Lanes[name]; lane != nil {
		return lane, nil
	}
	return nil, noSuchLane(name)
}

// laneSeen is a lane that the caller may see.
func (e *Work) laneSeen(ctx context.Context, c txn.Caller, name string) (*core.Lane, error) {
	lane, err := e.laneNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	if !c.LanesSeen(e.Dict.Now())(lane) {
		return nil, noSuchLane(name)
	}
	return lane, nil
}

// shownLane is a lane as the caller may see it.
func (e *Work) shownLane(c txn.Caller, lane core.Lane) core.Lane {
	if c.Namespaces != nil && len(lane.Settings.FairnessWeights) > 0 {
		lane.Settings = lane.Settings.WithoutWeights(e.ForeignKeys(c, e.Dict.Now(), lane.Name))
	}
	return lane
}

func noSuchLane(name string) error { return base.Errorf(base.CodeLaneNotFound, "no lane %q", name) }

func (l *changeLane) Name() string { return "put_lane" }

func (l *changeLane) Want(w *store.Want, _ bool) {
	w.LockLanes = append(w.LockLanes, l.id)
	if l.request.Key != "" {
		w.Docs = append(w.Docs, l.request)
	}
}

func (l *changeLane) Decide(u *txn.Tx) error {
	if repeated, err := u.Repeated(l.caller, l.request, l.fingerprint, nil); repeated || err != nil {
		return err
	}
	lane, ok := u.Lanes[l.id]
	if !ok {
		return base.Errorf(base.CodeLaneNotFound, "no such lane")
	}
	if err := base.CheckRevision(l.op.Revision, lane.Revision); err != nil {
		return err
	}
	old := lane.Settings
	fx := u.Effects(l.caller)
	if !lane.Change(fx, l.change(old), l.op.Reason) {
		u.RecordRequest(l.request, l.fingerprint, nil)
		return nil
	}
	if old.MaxConcurrent == 0 && lane.Settings.MaxConcurrent > 0 {
		lane.Counting = true
		u.AddTask(taskCountLane, TaskArgs{Lane: lane.Name})
	}
	if old.AgeingMS != lane.Settings.AgeingMS {
		u.AddTask(taskRefileLane, TaskArgs{Lane: lane.Name})
	}
	if lane.Settings.RetentionMS.Shortens(old.RetentionMS, u.Engine.Cfg.Retention) {
		u.AddTaskAt(TaskRetireLane, TaskArgs{Lane: lane.Name, Retention: &old.RetentionMS}, u.Now.Add(l.e.lanesKnown()))
	}
	u.Lanes[l.id] = lane
	u.Changes.Lanes = append(slices.DeleteFunc(u.Changes.Lanes, func(other core.Lane) bool { return other.ID == lane.ID }), lane)
	u.Keep(fx)
	if admin.Audits(l.caller) {
		admin.Audit(u, l.caller, core.AuditRow{
			Namespace: keyring.Everywhere, Action: l.action, Entity: "lane", EntityID: lane.Name, Reason: l.op.Reason,
		}, old, lane.Settings)
	}
	u.RecordRequest(l.request, l.fingerprint, nil)
	return nil
}

// By returns the caller.
func (l *changeLane) By() txn.Caller { return l.caller }

// chains: lanes are shared by all namespaces.
func (l *changeLane) Chains(*txn.Tx) []string {
	if !admin.Audits(l.caller) {
		return nil
	}
	return []string{keyring.Everywhere}
}

// GetLane returns a lane with its counts.
func (e *Work) GetLane(ctx context.Context, c txn.Caller, name string) (txn.LaneView, error) {
	if err := e.Dict.Reload(ctx); err != nil {
		return txn.LaneView{}, txn.PublicFault(err)
	}
	lane, err := e.laneSeen(ctx, c, name)
	if err != nil {
		return txn.LaneView{}, err
	}
	views, err := e.laneViews(ctx, c, lane)
	if err != nil {
		return txn.LaneView{}, err
	}
	return views[0], nil
}

// Lanes lists lanes by name (S2).
func (e *Work) Lanes(ctx context.Context, c txn.Caller, cursor string, limit *int) ([]txn.LaneView, string, error) {
	lanes, next, err := txn.PageByName(ctx, e.Engine, "lanes", cursor, limit, func(d *txn.Dictionary) map[string]*core.Lane {
		seen := c.LanesSeen(d)
		shown := maps.Clone(d.Lanes)
		maps.DeleteFunc(shown, func(_ string, lane *core.Lane) bool { return !seen(lane) })
		return shown
	})
	if err != nil {
		return nil, "", err
	}
	views, err := e.laneViews(ctx, c, lanes...)
	return views, next, err
}

// lanesKnown is how long after a change of a lane every process has heard of it, and what was decided by the old settings is
// committed.
func (e *Work) lanesKnown() base.Millis {
	return max(3*base.Second, 3*e.Cfg.PollInterval.Milliseconds())
}
