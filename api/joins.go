package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// JoinPolicy says how many of its edges a member needs.
type JoinPolicy string

// The policies of a join.
const (
	JoinAll    JoinPolicy = "all_of"
	JoinAny    JoinPolicy = "any_of"
	JoinQuorum JoinPolicy = "quorum"
)

// Join says how many of the edges that lead to a member it needs. The zero value: all of them.
type Join struct {
	Policy JoinPolicy `json:"policy" enum:"all_of,any_of,quorum" doc:"How many it needs."` // "": JoinAll
	K      int        `json:"k,omitempty" doc:"Of quorum: so many."`
	// CancelRemaining cancels the members that are not needed any more when it is decided, unless somebody else waits for them.
	CancelRemaining CancelRemaining `json:"on_satisfied" enum:"let_run,cancel_remaining" doc:"What becomes of members that are not needed any more."`
}

// CancelRemaining is true where members that are not needed any more are cancelled. In JSON it is cancel_remaining or let_run.
type CancelRemaining bool

const (
	cancelRemaining = "cancel_remaining"
	letRun          = "let_run"
)

// MarshalText returns the word of the HTTP API.
func (c CancelRemaining) MarshalText() ([]byte, error) {
	if c {
		return []byte(cancelRemaining), nil
	}
	return []byte(letRun), nil
}

// UnmarshalText reads the word of the HTTP API.
func (c *CancelRemaining) UnmarshalText(text []byte) error {
	*c = string(text) == cancelRemaining
	return nil
}

// JoinView is a join with its numbers.
type JoinView struct {
	Join
	JoinState
}

// JoinState is how far a join is.
type JoinState struct {
	N          int       `json:"n" doc:"Edges that lead to the member."`
	Satisfied  int       `json:"satisfied" doc:"Of those: satisfied."`
	Impossible int       `json:"impossible" doc:"Of those: impossible."`
	State      string    `json:"state,omitempty" enum:"pending,satisfied,impossible,overridden" doc:"Whether the member may start; absent while no edge leads to it."`
	DecidedAt  time.Time `json:"decided_at,omitzero" doc:"When that was decided."`
	Detail     string    `json:"detail,omitempty" doc:"Why it is impossible, where the edges do not tell: quorum_unreachable."`
	// Changed is true in the answer to SetJoin if it was another before.
	Changed Changed      `json:"outcome,omitempty" enum:"set,unchanged" doc:"In the answer to a change: whether it changed something."`
	Waiting []Membership `json:"waiting,omitempty" doc:"The first 100 members that it waits for; get_join shows them."` // Flows.Join shows them
}

// Changed is true where a command changed something. In JSON it is set; unchanged, or absent, is false.
type Changed bool

const (
	outcomeSet       = "set"
	outcomeUnchanged = "unchanged"
)

// MarshalText returns the word of the HTTP API.
func (c Changed) MarshalText() ([]byte, error) {
	if c {
		return []byte(outcomeSet), nil
	}
	return []byte(outcomeUnchanged), nil
}

// UnmarshalText reads the word of the HTTP API.
func (c *Changed) UnmarshalText(text []byte) error {
	*c = string(text) == outcomeSet
	return nil
}

// Membership is an execution that is a member of a flow under a name, or becomes one.
type Membership struct {
	Name string `json:"name" doc:"Its name in the flow."`
	ID   ID     `json:"execution_id" doc:"Its execution."`
}

// NamedInput is what a member of a flow got from another along an edge, beside the input that it was submitted with. It is the same in
// all attempts of a run.
type NamedInput struct {
	Name    string `json:"name" doc:"Its name."`                              // of the edge's Pass: the name of the other, unless it was given another
	From    string `json:"from" doc:"Name of the member that it comes from."` // name of the other
	FromID  ID     `json:"execution_id" doc:"Execution of that."`
	Outcome Status `json:"outcome" doc:"How that ended."`
	Present bool   `json:"present" doc:"That left a result."` // one that succeeded without is not present, nor is one that did not succeed
	// Result is what it left. If it is present and Omitted, it was too large to come along: InputFrom fetches it.
	Result        Payload `json:"result,omitempty" spread:"shown" doc:"The result."`
	FailureReason string  `json:"failure_reason,omitempty" doc:"Why that did not succeed."`
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
