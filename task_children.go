package flowfabric

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
)

// ParentEnd says what becomes of children whose parent ends. A retry is no end.
type ParentEnd = api.ParentEnd

// What becomes of them; "" is CancelOnFailure.
const (
	CancelOnFailure = api.CancelOnFailure // they go on if it succeeds, else they are cancelled
	CancelOnEnd     = api.CancelOnEnd
	Detach          = api.Detach // they go on
)

// Spawning is work to start below a task.
type Spawning struct {
	Children    []Node // at most 1000
	Defaults    Node   // what children have that leave it out
	Edges       []Edge // between children, besides those of the nodes
	OnParentEnd ParentEnd
}

// Spawn is what a WorkItem starts: children whose input or policy cannot be written are refused.
func (s *Spawning) Spawn() (*api.Spawn, error) {
	part, err := graph{defaults: s.Defaults, nodes: s.Children, edges: s.Edges}.wire("")
	if err != nil {
		return nil, asChildren(err)
	}
	return &api.Spawn{Children: part.Nodes, Defaults: part.Defaults, Edges: part.Edges, OnParentEnd: s.OnParentEnd}, nil
}

// asChildren calls the nodes of a refusal what a spawn calls them.
func asChildren(err error) error {
	var refusal *Error
	if !errors.As(err, &refusal) || !strings.HasPrefix(refusal.Field, "nodes") {
		return err
	}
	named := *refusal
	named.Field = "children" + strings.TrimPrefix(refusal.Field, "nodes")
	return &named
}

// Spawned are the children that a spawn named.
type Spawned = api.Spawned

// ChildrenOptions say what a task waits for. The zero value: the end of all children of this run, however they end.
type ChildrenOptions = api.ChildrenOptions

// ChildrenWaited is how a wait for children is.
type ChildrenWaited = api.ChildrenWaited

// Child is a child as its parent sees it.
type Child = api.Child

// Spawn starts work below the task, at once. A child is known by its name in all attempts of a run: a handler that runs again gets those
// it has. Children may wait for each other as the nodes of a flow do.
//
// Codes: those of Flows.Submit, name_taken when a name stands for other work already, nesting_limit_exceeded, stale_lease, lease_revoked,
// execution_not_active.
func (t *Task) Spawn(ctx context.Context, children ...Node) (map[string]ID, error) {
	spawned, err := t.SpawnWith(ctx, Spawning{Children: children})
	return spawned.IDs, err
}

// SpawnWith is Spawn with all that can be said. Codes: those of Spawn.
func (t *Task) SpawnWith(ctx context.Context, s Spawning) (Spawned, error) {
	if ctx.Err() != nil {
		return Spawned{}, context.Cause(ctx)
	}
	spawn, err := s.Spawn()
	if err != nil {
		return Spawned{}, err
	}
	answer, err := t.keepUntilAnswered(ctx, WorkItem{Op: OpSpawn, Spawn: spawn})
	if err != nil {
		return Spawned{}, err
	}
	return *answer.Spawned, nil
}

// WaitForChildren hands the work back until its children have ended, and returns ErrParked, which the handler returns. The handler is
// then called again from its start, in the same attempt, and passes: a wait that is over returns the children at once, and so does one
// whose children have all ended before it began.
//
// A wait that cannot be satisfied any more, such as for the success of one that failed, is ErrChildrenImpossible; one whose time was
// over is ErrChildrenTimeout. Both come with the children as they are.
//
// Codes: child_not_found, invalid_join, invalid_argument, stale_lease, lease_revoked, execution_not_active.
func (t *Task) WaitForChildren(ctx context.Context, o ...ChildrenOptions) ([]Child, error) {
	options, err := transport.Single(o)
	if err != nil {
		return nil, err
	}
	return t.waited(t.leave(ctx, WorkItem{Op: OpWaitChildren, Children: &options}))
}

// SpawnAndWait is SpawnWith and WaitForChildren in one transaction. Names that the options leave out are those of all children.
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
	return t.waited(t.leave(ctx, WorkItem{Op: OpSpawn, Spawn: spawn, Children: &options}))
}

// Errors of waits for children that did not come to what was waited for.
var (
	ErrChildrenImpossible = errors.New("flowfabric: the children cannot end as was waited for any more")
	ErrChildrenTimeout    = errors.New("flowfabric: the children did not end in time")
)

// The states of a wait for children that is over.
const (
	childrenImpossible = "impossible"
	childrenTimeout    = "timeout"
)

// waited is what a wait for children returns.
func (t *Task) waited(answer WorkAnswer, err error) ([]Child, error) {
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

// ChildResult fetches the result of a child and decodes it. One that did not succeed gives an *ExecutionError.
//
// Codes: execution_not_found, execution_not_terminal for one that has not ended, invalid_json when the result is not a T.
func ChildResult[T any](ctx context.Context, t *Task, c Child) (T, error) {
	var none T
	switch {
	case c.Outcome == "":
		return none, newError(base.CodeExecutionNotTerminal, "the child %q has not ended", c.Name)
	case c.Outcome != StatusSucceeded:
		return none, fmt.Errorf("flowfabric: child %q: %w", c.Name, &ExecutionError{ID: c.ID, Status: c.Outcome, Reason: c.FailureReason})
	}
	result, err := t.runner.client.Executions().Result(ctx, c.ID)
	if err != nil {
		return none, err
	}
	return decode[T](result)
}
