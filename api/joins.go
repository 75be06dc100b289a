package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// JoinPolicy says how many of its edges a member needs.
type JoinPolicy string

// Join policies.
const (
	JoinAll    JoinPolicy = "all_of"
	JoinAny    JoinPolicy = "any_of"
	JoinQuorum JoinPolicy = "quorum"
)

// Join says how many of its incoming edges a member needs. The zero value: all.
type Join struct {
	Policy JoinPolicy `json:"policy" enum:"all_of,any_of,quorum" doc:"How many edges it needs."` // "": JoinAll
	K      int        `json:"k,omitempty" doc:"For quorum: the number."`
	// CancelRemaining cancels members that are no longer needed once the join is decided, unless other members wait for them.
	CancelRemaining CancelRemaining `json:"on_satisfied" enum:"let_run,cancel_remaining" doc:"What happens to members that are no longer needed."`
}

// CancelRemaining says whether members that are no longer needed are cancelled. In JSON it is cancel_remaining or let_run.
type CancelRemaining bool

const (
	cancelRemaining = "cancel_remaining"
	letRun          = "let_run"
)

// MarshalText returns the value of the HTTP API.
func (c CancelRemaining) MarshalText() ([]byte, error) {
	if c {
		return []byte(cancelRemaining), nil
	}
	return []byte(letRun), nil
}

// UnmarshalText reads the value of the HTTP API.
func (c *CancelRemaining) UnmarshalText(text []byte) error {
	*c = string(text) == cancelRemaining
	return nil
}

// JoinView is a join with its progress.
type JoinView struct {
	Join
	JoinState
}

// JoinState is the progress of a join.
type JoinState struct {
	N          int       `json:"n" doc:"Number of edges that lead to the member."`
	Satisfied  int       `json:"satisfied" doc:"Number of satisfied edges."`
	Impossible int       `json:"impossible" doc:"Number of impossible edges."`
	State      string    `json:"state,omitempty" enum:"pending,satisfied,impossible,overridden" doc:"Whether the member may start; absent while no edge leads to it."`
	DecidedAt  time.Time `json:"decided_at,omitzero" doc:"When that was decided."`
	Detail     string    `json:"detail,omitempty" doc:"Why it is impossible, if not clear from the edges: quorum_unreachable."`
	// Changed is true in the answer to SetJoin if the join was different before.
	Changed Changed      `json:"outcome,omitempty" enum:"set,unchanged" doc:"In the answer to a change: whether it changed something."`
	Waiting []Membership `json:"waiting,omitempty" doc:"The first 100 members that it waits for; shown by get_join."` // Flows.Join shows them
}

// Changed reports whether a command changed something. In JSON it is set for true, and unchanged or absent for false.
type Changed bool

const (
	outcomeSet       = "set"
	outcomeUnchanged = "unchanged"
)

// MarshalText returns the value of the HTTP API.
func (c Changed) MarshalText() ([]byte, error) {
	if c {
		return []byte(outcomeSet), nil
	}
	return []byte(outcomeUnchanged), nil
}

// UnmarshalText reads the value of the HTTP API.
func (c *Changed) UnmarshalText(text []byte) error {
	*c = string(text) == outcomeSet
	return nil
}

// Membership is an execution that is or becomes a member of a flow, with its name.
type Membership struct {
	Name string `json:"name" doc:"Its name in the flow."`
	ID   ID     `json:"execution_id" doc:"Its execution."`
}

// NamedInput is what a member of a flow received from another member along an edge, in addition to its own input. It is the same
// in all attempts of a run.
type NamedInput struct {
	Name    string `json:"name" doc:"Its name."`                    // the upstream member's name unless the edge's Pass names it
	From    string `json:"from" doc:"Name of the upstream member."` // name of the upstream member
	FromID  ID     `json:"execution_id" doc:"Execution of the upstream member."`
	Outcome Status `json:"outcome" doc:"Outcome of the upstream member."`
	Present bool   `json:"present" doc:"The upstream member has a result."` // false if it succeeded without a result, or did not succeed
	// Result is the result of the upstream member. If it is present and Omitted, it was too large for this answer: use InputFrom.
	Result        Payload `json:"result,omitempty" spread:"shown" doc:"The result."`
	FailureReason string  `json:"failure_reason,omitempty" doc:"Why the upstream member did not succeed."`
}

// MarshalJSON writes the state as the HTTP API shows it.
func (s JoinState) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&s) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (s *JoinState) UnmarshalJSON(text []byte) error { return readAnswer(text, s) }

// MarshalJSON writes the join as the HTTP API shows it.
func (j JoinView) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&j) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (j *JoinView) UnmarshalJSON(text []byte) error { return readAnswer(text, j) }

// MarshalJSON writes the input as a task of the HTTP API shows it.
func (n NamedInput) MarshalJSON() ([]byte, error) { return n.AppendJSON(nil) }

// AppendJSON adds what MarshalJSON writes to a text.
func (n NamedInput) AppendJSON(text []byte) ([]byte, error) {
	type fields NamedInput
	if n.Present || n.Outcome != StatusSucceeded {
		return jsonx.Append(text, (*fields)(&n))
	}
	reason := n.FailureReason
	n.Result, n.FailureReason = Payload{}, ""
	text, err := jsonx.Append(text, (*fields)(&n))
	if err != nil {
		return nil, err
	}
	text = append(jsonx.AppendName(text[:len(text)-1], "result", endingSize), '0') // a success without result has size 0 (F34)
	if reason != "" {
		text = jsonx.AppendString(jsonx.AppendName(text, "failure_reason", ""), reason)
	}
	return append(text, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (n *NamedInput) UnmarshalJSON(text []byte) error { return readAnswer(text, n) }
