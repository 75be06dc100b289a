package txn

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/store"
)

// changeLane changes the settings of one lane (S2).
type changeLane struct {
	e           *Engine
	caller      Caller
	id          int32
	action      string
	op          Operator
	change      func(old core.LaneSettings) core.LaneSettings
	request     store.DocRef
	fingerprint string
}

// PutLane states the whole record of a lane, registering it if it is new (S2).
func (e *Engine) PutLane(ctx context.Context, c Caller, name string, s core.LaneSettings, op Operator) (LaneView, error) {
	if err := base.CheckLane(name); err != nil {
		return LaneView{}, err
	}
	if err := s.Normalize(); err != nil {
		return LaneView{}, err
	}
	if e.Dict.Now().Lanes[name] == nil && op.Revision == nil { // a lane that does not exist has no revision
		if _, err := e.Store.Register(ctx, []core.Lane{core.NewLane(name, "put_lane")}, nil); err != nil {
			return LaneView{}, PublicFault(err)
		}
		if err := e.Dict.reload(ctx); err != nil {
			return LaneView{}, PublicFault(err)
		}
	}
	return e.changeLane(ctx, c, name, "put_lane", s, op, func(core.LaneSettings) core.LaneSettings { return s })
}

// SetLaneState opens or closes a lane and leaves its other settings alone (S3).
func (e *Engine) SetLaneState(ctx context.Context, c Caller, name string, state core.LaneState, op Operator) (LaneView, error) {
	if _, err := e.laneSeen(ctx, c, name); err != nil {
		return LaneView{}, err
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

func (e *Engine) changeLane(ctx context.Context, c Caller, name, operation string, args any, op Operator, change func(core.LaneSettings) core.LaneSettings) (LaneView, error) {
	if err := base.CheckReason("reason", op.Reason); err != nil {
		return LaneView{}, err
	}
	lane, err := e.laneNamed(ctx, name)
	if err != nil {
		return LaneView{}, err
	}
	cmd := &changeLane{e: e, caller: c, id: lane.ID, action: operation, op: op, change: change}
	if op.RequestKey != "" {
		if err := base.CheckRequestKey(op.RequestKey); err != nil {
			return LaneView{}, err
		}
		cmd.request, cmd.fingerprint = RequestRef(c, operation, name, op.RequestKey), Fingerprint(args, op.Reason, op.Revision)
	}
	if err := e.Do(ctx, cmd); err != nil {
		return LaneView{}, err
	}
	return e.GetLane(ctx, c, name)
}

func (e *Engine) laneNamed(ctx context.Context, name string) (*core.Lane, error) {
	if lane := e.Dict.Now().Lanes[name]; lane != nil {
		return lane, nil
	}
	if err := e.Dict.reload(ctx); err != nil {
		return nil, PublicFault(err)
	}
	if lane := e.Dict.Now().Lanes[name]; lane != nil {
		return lane, nil
	}
	return nil, noSuchLane(name)
}

// laneSeen is a lane that the caller may see.
func (e *Engine) laneSeen(ctx context.Context, c Caller, name string) (*core.Lane, error) {
	lane, err := e.laneNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	if !c.lanesSeen(e.Dict.Now())(lane) {
		return nil, noSuchLane(name)
	}
	return lane, nil
}

// lanesSeen returns which lanes the caller may see (U121): those that its namespaces use, and those that were created for all. A lane that was
// created by a submit and changed since is shown as long as no other namespace is in use: it may belong to the other, and would reveal it.
func (c Caller) lanesSeen(dict *Dictionary) func(*core.Lane) bool {
	if c.Namespaces == nil {
		return func(*core.Lane) bool { return true }
	}
	used := map[string]bool{}
	for class := range dict.AllUsable() {
		if c.Sees(class.Namespace) {
			used[class.Lane] = true
		}
	}
	alone := dict.table.usedOnlyBy(c.Sees)
	return func(lane *core.Lane) bool {
		return used[lane.Name] || lane.RegisteredBy == "put_lane" || lane.Revision > 0 && alone
	}
}

// foreignKeys returns which weights of a lane a caller must not see (I14): those of namespaces that it does not see, and of fairness keys that only
// these have.
func (e *Engine) foreignKeys(c Caller, dict *Dictionary, lane string) func(key string) bool {
	own, others := map[string]bool{}, map[string]bool{}
	for _, class := range dict.OfLane[lane] {
		if c.Sees(class.Namespace) {
			own[class.FairnessKey] = true
		} else {
			others[class.FairnessKey] = true
		}
	}
	return func(key string) bool {
		return !c.Sees(key) && !own[key] && (others[key] || dict.table.has(key) || e.spaces.knows(key))
	}
}

// shownLane is a lane as the caller may see it.
func (e *Engine) shownLane(c Caller, lane core.Lane) core.Lane {
	if c.Namespaces != nil && len(lane.Settings.FairnessWeights) > 0 {
		lane.Settings = lane.Settings.WithoutWeights(e.foreignKeys(c, e.Dict.Now(), lane.Name))
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

func (l *changeLane) Decide(u *Tx) error {
	if repeated, err := u.Repeated(l.caller, l.request, l.fingerprint, nil); repeated || err != nil {
		return err
	}
	lane, ok := u.lanes[l.id]
	if !ok {
		return base.Errorf(base.CodeLaneNotFound, "no such lane")
	}
	if err := base.CheckRevision(l.op.Revision, lane.Revision); err != nil {
		return err
	}
	old := lane.Settings
	fx := u.effects(l.caller)
	if !lane.Change(fx, l.change(old), l.op.Reason) {
		u.RecordRequest(l.request, l.fingerprint, nil)
		return nil
	}
	if old.MaxConcurrent == 0 && lane.Settings.MaxConcurrent > 0 {
		lane.Counting = true
		u.addTask(task{Kind: taskCountLane, Lane: lane.Name})
	}
	if old.AgeingMS != lane.Settings.AgeingMS {
		u.addTask(task{Kind: taskRefileLane, Lane: lane.Name})
	}
	if lane.Settings.RetentionMS.Shortens(old.RetentionMS, u.Engine.Cfg.Retention) {
		u.addTaskAt(task{Kind: taskRetireLane, Lane: lane.Name, Retention: &old.RetentionMS}, u.Now.Add(u.Engine.lanesKnown()))
	}
	u.lanes[l.id] = lane
	u.Changes.Lanes = append(slices.DeleteFunc(u.Changes.Lanes, func(other core.Lane) bool { return other.ID == lane.ID }), lane)
	u.keep(fx)
	if l.caller.Audits() {
		u.Audit(l.caller, core.AuditRow{
			Namespace: keyring.Everywhere, Action: l.action, Entity: "lane", EntityID: lane.Name, Reason: l.op.Reason,
		}, old, lane.Settings)
	}
	u.RecordRequest(l.request, l.fingerprint, nil)
	return nil
}

// chains: lanes are shared by all namespaces.
func (l *changeLane) Chains(*Tx) []string {
	if !l.caller.Audits() {
		return nil
	}
	return []string{keyring.Everywhere}
}

// GetLane returns a lane with its counts.
func (e *Engine) GetLane(ctx context.Context, c Caller, name string) (LaneView, error) {
	if err := e.Dict.reload(ctx); err != nil {
		return LaneView{}, PublicFault(err)
	}
	lane, err := e.laneSeen(ctx, c, name)
	if err != nil {
		return LaneView{}, err
	}
	views, err := e.laneViews(ctx, c, lane)
	if err != nil {
		return LaneView{}, err
	}
	return views[0], nil
}

// Lanes lists lanes by name (S2).
func (e *Engine) Lanes(ctx context.Context, c Caller, cursor string, limit *int) ([]LaneView, string, error) {
	lanes, next, err := pageByName(ctx, e, "lanes", cursor, limit, func(d *Dictionary) map[string]*core.Lane {
		seen := c.lanesSeen(d)
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

// decodeTask reads a piece of follow-up work.
func decodeTask(doc *store.Doc) (task, error) {
	var t task
	if err := json.Unmarshal(doc.Body, &t); err != nil {
		return t, Corrupt("task", err)
	}
	return t, nil
}
