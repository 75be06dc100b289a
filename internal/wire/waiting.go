package wire

import (
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Binding is a waitpoint of a suspension: one that it makes, or a pending one that it adopts (U29).
type Binding struct {
	Fresh      *FreshWaitpoint   `json:"fresh,omitempty" oneof:"binding" doc:"A new waitpoint."`
	UsePending *PendingWaitpoint `json:"use_pending,omitempty" oneof:"binding" doc:"One that was made before, with its token and its signals."`
}

// FreshWaitpoint is a waitpoint that a suspension makes.
type FreshWaitpoint struct {
	WaitpointKey *string `json:"waitpoint_key,omitempty" maxLength:"128" doc:"Its key; the condition's if absent."`
	WaitpointID  string  `json:"waitpoint_id,omitempty" doc:"Id that the caller brings."`
}

// PendingWaitpoint is a waitpoint that a suspension adopts.
type PendingWaitpoint struct {
	WaitpointID string `json:"waitpoint_id" required:"true" doc:"Its id."`
}

// CheckJSON wants one of the two.
func (*Binding) CheckJSON(given []string) Errors {
	if len(given) > 0 {
		return nil
	}
	return Errors{{Code: jsonx.CodeMissingField, Field: "/fresh", Detail: "a binding is fresh or use_pending", Hint: `give {"fresh":{}} or {"use_pending":{"waitpoint_id":"..."}}`}}
}

// NoSuspension is the answer about an execution that was never suspended in its present run.
type NoSuspension struct{}

// Resumed is how the wait ended after which a task goes on (U28).
type Resumed struct {
	SuspensionID string             `json:"suspension_id,omitempty" doc:"The suspension that ended; absent after a wait for children."`
	Cause        string             `json:"cause" doc:"How it ended: signal, operator, timeout, early_signals or budget_approved; of a wait for children children, children_impossible or children_timeout."`
	Signals      []api.SignalRecord `json:"signals" doc:"The signals that came, in order of acceptance."`
	Children     []api.Child        `json:"children,omitempty" doc:"After a wait for children: those that it waited for."`
	ContinuationShown
}
