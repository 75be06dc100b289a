package wire

import "github.com/flowfabric/flowfabric/api"

// NoSuspension is the answer about an execution that was never suspended in its present run.
type NoSuspension struct{}

// Resumed is how the wait ended after which a task goes on (U28).
type Resumed struct {
	SuspensionID string             `json:"suspension_id,omitempty" doc:"The suspension that ended; absent after a wait for children."`
	Cause        string             `json:"cause" doc:"How it ended: signal, operator, timeout, early_signals or budget_approved; of a wait for children children, children_impossible or children_timeout."`
	Signals      []api.SignalRecord `json:"signals" doc:"The signals that came, in order of acceptance."`
	Children     []api.Child        `json:"children,omitempty" doc:"After a wait for children: those that it waited for."`
	Continuation api.Payload        `json:"continuation,omitempty" spread:"kept" doc:"The continuation."`
}

// MarshalJSON writes the members of the continuation, which encoding/json does not know.
func (r Resumed) MarshalJSON() ([]byte, error) { return Marshal(&r) }

// UnmarshalJSON reads them.
func (r *Resumed) UnmarshalJSON(text []byte) error { return DecodeAnswer(text, r) }
