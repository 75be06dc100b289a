package flowfabric

import (
	"slices"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// NamedInput is what a member of a flow got from another along an edge, beside the input that it was submitted with. It is the same in
// all attempts of a run.
type NamedInput = api.NamedInput

// Inputs are what the work got from the members that it waited for, in the order of their names; none outside a flow. InputFrom decodes
// one of them.
func (t *Task) Inputs() []NamedInput { return slices.Clone(t.claimed.Inputs) }

// Name is the name of the work in its flow, or among the children of who spawned it; "" outside a flow.
func (t *Task) Name() string { return t.claimed.Name }

// FlowID is the flow that the work is a member of; "" outside a flow.
func (t *Task) FlowID() ID { return t.claimed.FlowID }

// InputFrom decodes what the work got from a member that it waited for: under the name of that, unless Node.PassAs gave it another. What
// was too large to come with the claim is fetched.
//
// Codes: input_not_found when nothing came under that name, because no edge passes it, it did not end in time to count, did not succeed
// or left no result; invalid_json when it is not a T.
func InputFrom[T any](t *Task, node string) (T, error) {
	var none T
	i := slices.IndexFunc(t.claimed.Inputs, func(in NamedInput) bool { return in.Name == node })
	if i < 0 {
		return none, newError(base.CodeInputNotFound, "nothing came from %q", node).At("name", "an edge passes it: Node.After, or pass of an edge")
	}
	in := &t.claimed.Inputs[i]
	switch {
	case in.FailureReason != "" || in.Outcome != StatusSucceeded && !in.Present:
		return none, newError(base.CodeInputNotFound, "%q is %s: %s", node, in.Outcome, in.FailureReason).At("name", "Task.Inputs tells how each of them ended")
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

// decodeAbsent is the result that a member did not leave: nothing, where nothing is a T.
func decodeAbsent[T any](node string) (none T, err error) {
	switch any(&none).(type) {
	case *None, *Payload:
		return none, nil
	default:
		return none, newError(base.CodeInputNotFound, "%q succeeded without a result", node).At("name", "Task.Inputs tells how each of them ended")
	}
}
