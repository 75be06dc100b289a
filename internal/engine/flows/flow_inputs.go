package flows

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// inlineInputs is how many bytes of named inputs come with a task; the others are read by name (F37).
const inlineInputs = 1 << 20

// ReadInput reads one named input of a member with its bytes (F37). Codes: input_not_found.
func (e *Graphs) ReadInput(ctx context.Context, c txn.Caller, id base.GivenID, name string) (core.NamedInput, error) {
	loaded, x, err := e.ReadOne(ctx, c, id, store.Want{Executions: []base.UUID{id.UUID}, Docs: []store.DocRef{inputsRef(id.UUID)}})
	if err != nil {
		return core.NamedInput{}, err
	}
	inputs, err := namedInputs(loaded, x)
	if err != nil {
		return core.NamedInput{}, err
	}
	for _, in := range inputs {
		if in.Name != name {
			continue
		}
		if in.Result == nil {
			return in, nil
		}
		return in, e.fillInputs(ctx, []*core.NamedInput{&in})
	}
	return core.NamedInput{}, base.Errorf(base.CodeInputNotFound, "the execution has no input %q", name)
}

// Inputs lists the named inputs of a member, without their bytes.
func (e *Graphs) Inputs(ctx context.Context, c txn.Caller, id base.GivenID) ([]core.NamedInput, error) {
	loaded, x, err := e.ReadOne(ctx, c, id, store.Want{Executions: []base.UUID{id.UUID}, Docs: []store.DocRef{inputsRef(id.UUID)}})
	if err != nil {
		return nil, err
	}
	return namedInputs(loaded, x)
}

// checkInputs refuses a second input of one name for a member that existed before the extension, or is added by it, and that waits for all its
// edges (F36). Nodes to be created were checked before.
func (x *extension) checkInputs(ctx context.Context) error {
	given := map[base.UUID]map[string]bool{}
	for i := range x.edges {
		edge := &x.edges[i]
		to := x.refs[edge.To].ID.UUID
		if edge.Pass == "" || !x.old[to] && !x.joining(to) {
			continue
		}
		names, known := given[to]
		if !known {
			var err error
			if names, err = x.e.inputNames(ctx, to); err != nil {
				return err
			}
			given[to] = names
		}
		if names[edge.Pass] {
			return base.Errorf(base.CodeDuplicateName, "another edge gives %s an input called %s", edge.To, edge.Pass).WithField(x.places[i].Place("pass"))
		}
		if names != nil {
			names[edge.Pass] = true
		}
	}
	return nil
}

// inputNames are the names under which edges give an execution inputs; nil if it does not wait for all of them.
func (e *Graphs) inputNames(ctx context.Context, to base.UUID) (map[string]bool, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Executions: []base.UUID{to}})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	if x := loaded.Executions[to]; x != nil && joinOf(x).Policy != core.AllOf {
		return nil, nil
	}
	edges, err := e.Inbound(ctx, to)
	names := map[string]bool{}
	for i := range edges {
		names[edges[i].Pass] = true
	}
	return names, err
}

// namedInputs are the frozen inputs of a member among rows that were read.
func namedInputs(loaded *store.Loaded, x *core.Execution) (inputs []core.NamedInput, err error) {
	doc, ok := loaded.Docs[inputsRef(x.ID.UUID)]
	if !ok || x.Member == nil || !x.Member.Inputs {
		return nil, nil
	}
	return inputs, ReadDoc(&doc, &inputs)
}

// fillInputs reads the bytes of named inputs.
func (e *Graphs) fillInputs(ctx context.Context, inputs []*core.NamedInput) error {
	want := store.Want{Results: true}
	for _, in := range inputs {
		want.History = append(want.History, store.HistoryRef{ID: in.Result.Of.UUID, Epoch: in.Result.Epoch})
	}
	loaded, err := e.ReadIf(ctx, want)
	if err != nil {
		return txn.PublicFault(err)
	}
	type place struct {
		of    base.UUID
		epoch int64
	}
	found := map[place][]byte{}
	for i := range loaded.History {
		if rec := &loaded.History[i]; rec.Result != nil {
			found[place{rec.ExecutionID.UUID, rec.Epoch}] = rec.Result.Data
		}
	}
	for _, in := range inputs {
		data, ok := found[place{in.Result.Of.UUID, in.Result.Epoch}]
		if !ok {
			return e.missingInput(ctx, in)
		}
		in.Data = data
	}
	return nil
}

// AttachInputs adds the named inputs to the tasks of one answer, with as many of their bytes as fit. Like waits they are read after the leases are
// committed; tasks without such inputs cost nothing.
func (e *Graphs) AttachInputs(ctx context.Context, tasks []txn.Task) error {
	var want store.Want
	for i := range tasks {
		if m := tasks[i].Execution.Member; m != nil && m.Inputs && tasks[i].Inputs == nil {
			want.Docs = append(want.Docs, inputsRef(tasks[i].Execution.ID.UUID))
		}
	}
	if len(want.Docs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.Cfg.StoreTimeout)
	defer cancel()
	return e.Insist(ctx, func() error { return e.readInputs(ctx, tasks, want) })
}

func (e *Graphs) readInputs(ctx context.Context, tasks []txn.Task, want store.Want) error {
	loaded, err := e.Store.Read(ctx, want)
	if err != nil {
		return err
	}
	var inline []*core.NamedInput
	for i := range tasks {
		inputs, err := namedInputs(loaded, tasks[i].Execution)
		if err != nil {
			return err
		}
		room := inlineInputs
		for n := range inputs {
			if in := &inputs[n]; in.Result != nil && in.Result.Size <= room {
				room -= in.Result.Size
				inline = append(inline, in)
			}
		}
		tasks[i].Inputs = inputs
	}
	return e.fillInputs(ctx, inline)
}
