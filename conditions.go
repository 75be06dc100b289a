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

// The kinds of things that CountOf counts.
const (
	DistinctSources    = "distinct_sources"    // different senders; a person who uses both the console and a link counts once
	DistinctSignals    = "distinct_signals"    // signals
	DistinctWaitpoints = "distinct_waitpoints" // waitpoints that received a signal
)

// OnSignal is satisfied by a signal of that name at the waitpoint of that key. An empty key means the first waitpoint, an empty
// name any signal.
func OnSignal(key, name string) Condition {
	return Condition{Type: conditionSingle, Key: key, Name: name}
}

// AllOf is satisfied when all of its members are.
func AllOf(members ...Condition) Condition { return Condition{Type: conditionAllOf, Members: members} }

// AnyOf is satisfied when one of its members is.
func AnyOf(members ...Condition) Condition { return Condition{Type: conditionAnyOf, Members: members} }

// CountOf is satisfied by n distinct senders, signals or waitpoints, according to kind (DistinctSources, DistinctSignals,
// DistinctWaitpoints), among the signals at the waitpoints of these keys. Set Name and SourceTypes to count only some signals.
// Each CountOf of a condition counts separately.
func CountOf(n int, kind string, keys ...string) Condition {
	return Condition{Type: conditionCount, N: n, CountKind: kind, Keys: keys}
}

// OperatorOnly is satisfied by no signal: an operator resumes the work. It needs no waitpoint.
func OperatorOnly() Condition { return Condition{Type: conditionOperatorOnly} }

// TimeoutOnly is satisfied by no signal: the wait ends at its timeout, which is required. It needs no waitpoint.
func TimeoutOnly() Condition { return Condition{Type: conditionTimeoutOnly} }

// NewWaitpoint makes a waitpoint for the suspension. An empty key means the key of the condition, if that has exactly one.
func NewWaitpoint(key string) Binding { return Binding{Fresh: &api.FreshWaitpoint{Key: key}} }

// ExistingWaitpoint uses a waitpoint that was made earlier, with the signals that it has received.
func ExistingWaitpoint(w *Waitpoint) Binding {
	return Binding{UsePending: &api.PendingWaitpoint{ID: w.ID}}
}
