package flowfabric

import "github.com/flowfabric/flowfabric/api"

// The types of conditions.
const (
	conditionSingle       = "single"
	conditionAllOf        = "all_of"
	conditionAnyOf        = "any_of"
	conditionCount        = "count"
	conditionOperatorOnly = "operator_only"
	conditionTimeoutOnly  = "timeout_only"
)

// What CountOf counts.
const (
	DistinctSources    = "distinct_sources"    // different senders; the same person at the console and on a link is one
	DistinctSignals    = "distinct_signals"    // signals
	DistinctWaitpoints = "distinct_waitpoints" // waitpoints that got one
)

// OnSignal is met by a signal of that name at the waitpoint of that key. No key is that of the first waitpoint, no name any.
func OnSignal(key, name string) Condition {
	return Condition{Type: conditionSingle, Key: key, Name: name}
}

// AllOf is met when all of its members are.
func AllOf(members ...Condition) Condition { return Condition{Type: conditionAllOf, Members: members} }

// AnyOf is met when one of its members is.
func AnyOf(members ...Condition) Condition { return Condition{Type: conditionAnyOf, Members: members} }

// CountOf is met by n distinct things, as the kind says, among the signals at the waitpoints of these keys: DistinctSources,
// DistinctSignals, DistinctWaitpoints. Set Name and SourceTypes to count only some signals. Each count counts for itself.
func CountOf(n int, kind string, keys ...string) Condition {
	return Condition{Type: conditionCount, N: n, CountKind: kind, Keys: keys}
}

// OperatorOnly is met by no signal: an operator resumes the work. It needs no waitpoint.
func OperatorOnly() Condition { return Condition{Type: conditionOperatorOnly} }

// TimeoutOnly is met by no signal: the wait lasts until its timeout, which it must have. It needs no waitpoint.
func TimeoutOnly() Condition { return Condition{Type: conditionTimeoutOnly} }

// Fresh makes a waitpoint for the suspension. No key is that of the condition, if that names just one.
func Fresh(key string) Binding { return Binding{Fresh: &api.FreshWaitpoint{Key: key}} }

// Pending waits at a waitpoint that was made before, with the signals that it has.
func Pending(w *Waitpoint) Binding {
	return Binding{UsePending: &api.PendingWaitpoint{ID: w.ID}}
}
