package flowfabric

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
)

// ParentEnd says what happens to children when their parent ends. A retry does not end the parent.
type ParentEnd = api.ParentEnd

// The values of ParentEnd; "" is CancelOnFailure.
const (
	CancelOnFailure = api.CancelOnFailure // if the parent succeeds they continue, else they are cancelled
	CancelOnEnd     = api.CancelOnEnd
	Detach          = api.Detach // they continue
)

// Spawning is the work to start as children of a task.
type Spawning struct {
	Children    []Node // at most 1000
	Defaults    Node   // defaults for fields that children leave out
	Edges       []Edge // between children, in addition to those of the nodes
	OnParentEnd ParentEnd
}

// Spawn returns the spawn of a WorkItem; it refuses children whose input or policy cannot be encoded.
func (s *Spawning) Spawn() (*api.Spawn, error) {
	part, err := graph{defaults: s.Defaults, nodes: s.Children, edges: s.Edges}.wire("")
	if err != nil {
		return nil, asChildren(err)
	}
	return &api.Spawn{Children: part.Nodes, Defaults: part.Defaults, Edges: part.Edges, OnParentEnd: s.OnParentEnd}, nil
}

// asChildren renames nodes in the path of a refusal to the field name that a spawn uses.
func asChildren(err error) error {
	var refusal *Error
	if !errors.As(err, &refusal) || !strings.HasPrefix(refusal.Field, "nodes") {
		return err
	}
	named := *refusal
	named.Field = "children" + strings.TrimPrefix(refusal.Field, "nodes")
	return &named
}

// ChildrenOptions say what a task waits for. The zero value: the end of all children of this run, with any outcome.
type ChildrenOptions = api.ChildrenOptions

// ChildrenWaited is the result of a wait for children.
type ChildrenWaited = api.ChildrenWaited

// Child is a child as its parent sees it.
type Child = api.Child

// Spawn starts children of the task at once. A child is identified by its name in all attempts of a run: a handler that runs
// again gets the existing children. Children may wait for each other as the nodes of a flow do.
//
// Codes: those of Flows.Submit, name_taken if a name is used for other work already, nesting_limit_exceeded, stale_lease,
// lease_revoked, execution_not_active.
func (t *Task) Spawn(ctx context.Context, children ...Node) (map[string]ID, error) {
	spawned, err := t.SpawnWith(ctx, Spawning{Children: children})
	return spawned.IDs, err
}

// SpawnWith is Spawn with all options. Codes: those of Spawn.
func (t *Task) SpawnWith(ctx context.Context, s Spawning) (api.SpawnResult, error) {
	if ctx.Err() != nil {
		return api.SpawnResult{}, context.Cause(ctx)
	}
	spawn, err := s.Spawn()
	if err != nil {
		return api.SpawnResult{}, err
	}
	answer, err := t.keepUntilAnswered(ctx, api.WorkItem{Op: api.OpSpawn, Spawn: spawn})
	if err != nil {
		return api.SpawnResult{}, err
	}
	return *answer.Spawned, nil
}

// WaitForChildren hands the work back until its children have ended, and returns ErrParked, which the handler returns. The
// handler is then called again from its start, in the same attempt, and does not wait again: a wait that is over returns the
// children at once, and so does one whose children had all ended before it began.
//
// A wait that can no longer be satisfied, such as for the success of a child that failed, returns ErrChildrenImpossible; one that
// timed out returns ErrChildrenTimeout. Both return the children in their current state as well.
//
// Codes: child_not_found, invalid_join, invalid_argument, stale_lease, lease_revoked, execution_not_active.
func (t *Task) WaitForChildren(ctx context.Context, o ...ChildrenOptions) ([]Child, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	return t.waited(t.leave(ctx, api.WorkItem{Op: api.OpWaitChildren, Children: &options}))
}

// SpawnAndWait is SpawnWith and WaitForChildren in one transaction. Without names in the options it waits for all children.
//
// Codes: those of both.
func (t *Task) SpawnAndWait(ctx context.Context, s Spawning, o ...ChildrenOptions) ([]Child, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	spawn, err := s.Spawn()
	if err != nil {
		return nil, err
	}
	return t.waited(t.leave(ctx, api.WorkItem{Op: api.OpSpawn, Spawn: spawn, Children: &options}))
}

// Errors of waits for children that ended without being satisfied.
var (
	ErrChildrenImpossible = errors.New("flowfabric: the children cannot end as was waited for any more")
	ErrChildrenTimeout    = errors.New("flowfabric: the children did not end in time")
)

// The states of a finished wait for children.
const (
	childrenImpossible = "impossible"
	childrenTimeout    = "timeout"
)

// waited converts the answer to a wait for children.
func (t *Task) waited(answer api.WorkAnswer, err error) ([]Child, error) {
	if err != nil || answer.Waited == nil {
		return nil, err
	}
	switch answer.Waited.State {
	case childrenImpossible:
		return answer.Waited.Children, ErrChildrenImpossible
	case childrenTimeout:
		return answer.Waited.Children, ErrChildrenTimeout
	default:
		return answer.Waited.Children, nil
	}
}

// ChildResult returns the decoded result of a child. If the child did not succeed the error is an *ExecutionError.
//
// Codes: execution_not_found, execution_not_terminal if it has not ended, invalid_json if the result cannot be decoded into T.
func ChildResult[T any](ctx context.Context, t *Task, c Child) (T, error) {
	var none T
	switch {
	case c.Outcome == "":
		return none, calls.Refuse(base.CodeExecutionNotTerminal, "the child %q has not ended", c.Name)
	case c.Outcome != StatusSucceeded:
		return none, fmt.Errorf("flowfabric: child %q: %w", c.Name, &ExecutionError{ID: c.ID, Status: c.Outcome, Reason: c.FailureReason})
	}
	result, err := t.runner.client.Executions().Result(ctx, c.ID)
	if err != nil {
		return none, err
	}
	return decode[T](result)
}
