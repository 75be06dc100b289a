package wire

import "github.com/flowfabric/flowfabric/internal/jsonx"

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
