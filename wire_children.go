package flowfabric

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// The JSON of commands about children (U75).

// The outcomes of a wait for children.
const (
	outcomeReady   = "ready"
	outcomeWaiting = "waiting"
)

// childrenInto adds what a command about children answers.
func (a *WorkAnswer) childrenInto(w *wire.WorkAnswer) {
	waited := a.Waited.wire(a.Outcome)
	if a.Spawned == nil {
		w.Waited = waited
		return
	}
	spawned := a.Spawned.wire()
	spawned.Wait = waited
	w.Spawned = &spawned
}

func (s *Spawned) wire() wire.Spawned {
	w := wire.Spawned{Children: make(map[string]string, len(s.IDs)), Created: s.Created}
	for name, id := range s.IDs {
		w.Children[name] = string(id)
	}
	return w
}

// wire tells how a wait for children is; nil of another command.
func (c *ChildrenWaited) wire(outcome string) *wire.ChildrenWaited {
	switch {
	case c != nil:
		return &wire.ChildrenWaited{Outcome: outcomeReady, State: c.State, Children: c.Children}
	case outcome == outcomeWaiting:
		return &wire.ChildrenWaited{Outcome: outcomeWaiting}
	default:
		return nil
	}
}

// childrenFrom reads what a command about children answered.
func (a *WorkAnswer) childrenFrom(w *wire.WorkAnswer) {
	waited := w.Waited
	if w.Spawned != nil {
		a.Spawned = &Spawned{IDs: idsFrom(w.Spawned.Children), Created: w.Spawned.Created}
		waited = w.Spawned.Wait
	}
	if waited != nil && waited.Outcome == outcomeReady {
		a.Waited = &ChildrenWaited{State: waited.State, Children: waited.Children}
	}
}

// idsFrom are ids by name; never nil.
func idsFrom(w map[string]string) map[string]ID {
	ids := make(map[string]ID, len(w))
	for name, id := range w {
		ids[name] = ID(id)
	}
	return ids
}

// spawnInto writes a spawn into a command of a batch.
func (i *WorkItem) spawnInto(w *wire.WorkItem) error {
	if i.Spawn == nil {
		return newError(core.CodeInvalidArgument, "there is nothing to spawn").At("children", "name some work")
	}
	part, err := i.Spawn.graph().wire("")
	if err != nil {
		return asChildren(err)
	}
	w.Children = part.Nodes
	w.SpawnFields = wire.SpawnFields{Defaults: part.Defaults, Edges: part.Edges, OnParentEnd: string(i.Spawn.OnParentEnd)}
	if o := i.Children; o != nil {
		w.Wait = &wire.ChildrenWait{ChildrenWaitFields: o.wire(), TimeoutMS: span(o.Timeout), UsageField: wire.UsageField{Usage: i.Usage.Amounts}}
	}
	return readable(w)
}

// childrenInto writes a wait for children into a command of a batch.
func (i *WorkItem) childrenInto(w *wire.WorkItem) error {
	o := i.waitOptions()
	w.ChildrenWaitFields, w.TimeoutMS, w.Usage = o.wire(), span(o.Timeout), i.Usage.Amounts
	return readable(w)
}

// waitOptions are those of the wait; the zero value when there are none.
func (i *WorkItem) waitOptions() ChildrenOptions {
	if i.Children == nil {
		return ChildrenOptions{}
	}
	return *i.Children
}

func (o *ChildrenOptions) wire() wire.ChildrenWaitFields {
	w := wire.ChildrenWaitFields{Names: o.Names, Policy: string(o.Policy), K: o.K, Kind: string(o.Kind)}
	if o.CancelRemaining {
		w.OnSatisfied = wire.CancelRemaining
	}
	return w
}
