package txn

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// AsWorker is the caller as the actor of a worker's command.
func (c Caller) AsWorker(x *core.Execution, fx *core.Effects) {
	fx.Actor.Type = "worker"
	if x.Attempt != nil && x.Attempt.WorkerID != "" {
		fx.Actor.ID = x.Attempt.WorkerID
	}
}

// Registrant is the caller as the owner of instances.
func (c Caller) Registrant() core.Registrant {
	return core.Registrant{Name: c.Principal, KeyID: c.KeyID, Namespaces: c.Namespaces}
}

// Submitter returns the caller as a submitter.
func (c Caller) Submitter() core.Submitter { return core.Submitter{Name: c.Principal, KeyID: c.KeyID} }

// SeesWorker reports whether an instance concerns the caller: it serves one of its namespaces (U121).
func (c Caller) SeesWorker(w *core.Worker) bool {
	return c.Namespaces == nil || len(w.Namespaces) == 0 || slices.ContainsFunc(w.Namespaces, c.Sees)
}

// Sees reports whether the caller may see something of that namespace (W5).
func (c Caller) Sees(namespace string) bool {
	return c.Namespaces == nil || Contains(c.Namespaces, namespace)
}

// WorksIn refuses a worker whose key is bound to lanes, of which that of the execution is none (U122): role_required, whatever lease it shows.
func (c Caller) WorksIn(lane string) error {
	if c.WorkLanes == nil || Contains(c.WorkLanes, lane) {
		return nil
	}
	return base.Errorf(base.CodeRoleRequired, "the caller may not work on this lane").With("lanes", c.WorkLanes).
		WithHint("use a key that may work on all lanes, or on that of the execution")
}

// LanesSeen returns which lanes the caller may see (U121): those that its namespaces use, and those that were created for all. A lane that was
// created by a submit and changed since is shown as long as no other namespace is in use: it may belong to the other, and would reveal it.
func (c Caller) LanesSeen(dict *Dictionary) func(*core.Lane) bool {
	if c.Namespaces == nil {
		return func(*core.Lane) bool { return true }
	}
	used := map[string]bool{}
	for class := range dict.AllUsable() {
		if c.Sees(class.Namespace) {
			used[class.Lane] = true
		}
	}
	alone := dict.Table.usedOnlyBy(c.Sees)
	return func(lane *core.Lane) bool {
		return used[lane.Name] || lane.RegisteredBy == "put_lane" || lane.Revision > 0 && alone
	}
}

// ForeignKeys returns which weights of a lane a caller must not see (I14): those of namespaces that it does not see, and of fairness keys that only
// these have.
func (e *Engine) ForeignKeys(c Caller, dict *Dictionary, lane string) func(key string) bool {
	own, others := map[string]bool{}, map[string]bool{}
	for _, class := range dict.OfLane[lane] {
		if c.Sees(class.Namespace) {
			own[class.FairnessKey] = true
		} else {
			others[class.FairnessKey] = true
		}
	}
	return func(key string) bool {
		return !c.Sees(key) && !own[key] && (others[key] || dict.Table.has(key) || e.Spaces.knows(key))
	}
}
