package flowfabric

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Inputs returns the inputs from the members that the work waited for, by name; none outside a flow. InputFrom decodes one of
// them.
func (t *Task) Inputs() []api.NamedInput { return slices.Clone(t.claimed.Inputs) }

// Name returns the name of the work in its flow, or among the children of its parent; "" outside a flow.
func (t *Task) Name() string { return t.claimed.Name }

// FlowID returns the id of the flow that the work is a member of; "" outside a flow.
func (t *Task) FlowID() ID { return t.claimed.FlowID }

// InputFrom decodes the input from a member that the work waited for: by the name of that member, unless Node.PassAs set another.
// If it was too large for the claim it is fetched.
//
// Codes: input_not_found if there is no input of that name, because no edge passes it, or the member did not end in time to
// count, did not succeed or left no result; invalid_json if it cannot be decoded into T.
func InputFrom[T any](t *Task, node string) (T, error) {
	var none T
	i := slices.IndexFunc(t.claimed.Inputs, func(in api.NamedInput) bool { return in.Name == node })
	if i < 0 {
		return none, calls.Refuse(base.CodeInputNotFound, "nothing came from %q", node).At("name", "an edge passes it: Node.After, or pass of an edge")
	}
	in := &t.claimed.Inputs[i]
	switch {
	case in.FailureReason != "" || in.Outcome != StatusSucceeded && !in.Present:
		return none, calls.Refuse(base.CodeInputNotFound, "%q is %s: %s", node, in.Outcome, in.FailureReason).At("name", "Task.Inputs tells how each of them ended")
	case !in.Present:
		return decodeAbsent[T](node)
	case !in.Result.Omitted():
		return decode[T](in.Result)
	}
	result, err := t.fetch(node)
	if err != nil {
		return none, err
	}
	return decode[T](result)
}

// decodeAbsent decodes the absent result of a member: it is an error unless T is None or Payload.
func decodeAbsent[T any](node string) (none T, err error) {
	switch any(&none).(type) {
	case *None, *Payload:
		return none, nil
	default:
		return none, calls.Refuse(base.CodeInputNotFound, "%q succeeded without a result", node).At("name", "Task.Inputs tells how each of them ended")
	}
}
