package api

import (
	"cmp"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Submission is a piece of work to do.
type Submission struct {
	Kind string `json:"kind" required:"true" maxLength:"128" doc:"Kind of work."`
	SubmitOptions
	Input Payload `json:"input,omitempty" spread:"sent" doc:"The input."`
}

// SubmitOptions say where, when and how. The zero value is useful.
type SubmitOptions struct {
	ID             ID                `json:"execution_id,omitempty" doc:"Id that the caller brings, which makes the submit repeatable."` // minted by the client when empty, so that a repeat is a duplicate
	Lane           string            `json:"lane,omitempty" maxLength:"64" doc:"Queue to go through; default if absent."`
	Priority       int               `json:"priority,omitempty" doc:"Larger starts earlier; clamped into 0..9000."` // never refused
	Delay          time.Duration     `json:"delay_ms,omitempty" oneof:"start" minimum:"0" maximum:"315360000000" doc:"Not started for so long."`
	StartAt        time.Time         `json:"delay_until,omitzero" oneof:"start" doc:"Not started before this moment."`                                  // instead of Delay
	Deadline       time.Time         `json:"deadline_at,omitzero" doc:"Expires at this moment."`                                                        // not done by then: expired
	IdempotencyKey string            `json:"idempotency_key,omitempty" maxLength:"256" doc:"Name of the work: a second submit with it is a duplicate."` // one execution in a namespace has it at a time
	Tags           map[string]string `json:"tags,omitempty" doc:"Tags by key."`
	Policy         *Policy           `json:"policy,omitempty" doc:"How it is run: retries, timeouts, routing, retention."` // nil: no retry, engine defaults
	// The fields that follow are short for fields of the policy. To give one in both places is invalid_argument.
	Requires    []string           `json:"requires,omitempty" doc:"Capabilities that a worker must have; short for the field of the policy."`
	FairnessKey string             `json:"fairness_key,omitempty" maxLength:"128" doc:"Shares a lane fairly among its keys; short for the field of the policy."`
	Quotas      []QuotaUse         `json:"quotas,omitempty" doc:"Quotas that limit it; short for the field of the policy."`                    // when it starts; up to 8
	BudgetIDs   []string           `json:"budget_ids,omitempty" doc:"Budgets that it uses, by id or name; short for the field of the policy."` // up to 16
	Estimate    map[string]int64   `json:"estimate,omitempty" doc:"What it is expected to use, by dimension: reserved when it starts; short for the field of the policy."`
	Budgets     []BudgetDefinition `json:"budgets,omitempty" doc:"Budgets that are made with it and cover it alone, up to 4; short for the field of the policy."`
}

// MarshalJSON writes the submission as the HTTP API takes it (U32). An input that could not be encoded is its error.
func (s Submission) MarshalJSON() ([]byte, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	return jsonx.Marshal(&s)
}

// UnmarshalJSON reads a submission as strictly as the HTTP API does: its errors have codes, and the path of the field at fault.
// Of the policy nothing is lost, also what has no field in Policy; it is checked by the call that uses it.
//
// Codes: invalid_json, unknown_field, missing_field, invalid_argument.
func (s *Submission) UnmarshalJSON(text []byte) error {
	var read Submission
	if err := cmp.Or(readRequest(text, &read), CheckLimits(read.Budgets)); err != nil {
		return err
	}
	read.Policy = read.Policy.Read()
	*s = read
	return nil
}

// Check refuses what cannot be sent: an input or a policy that cannot be encoded, a budget that contradicts itself. The calls that submit do it.
func (s *Submission) Check() error {
	return cmp.Or(s.Input.Problem("input"), CheckOptions(&s.SubmitOptions))
}

// CheckOptions refuses options that cannot be sent. It serves packages of this module.
func CheckOptions(o *SubmitOptions) error { return cmp.Or(o.Policy.check(), CheckResets(o.Budgets)) }

// CheckLimits refuses a limit that JSON gave as 0, in budgets that are made with work, and says which of them is at fault: in Go 0 means none.
func CheckLimits(all []BudgetDefinition) error {
	for i := range all {
		if err := all[i].CheckLimits(); err != nil {
			return Within(fmt.Sprintf("budgets[%d]", i), err)
		}
	}
	return nil
}

// SubmitResult is the answer to a submit.
type SubmitResult struct {
	ID          ID
	Duplicate   bool // the idempotency key or id had been used before, for the same work
	PublicState string
	Priority    int   // as clamped
	Err         error // of SubmitMany: why this item was refused
}

// submitted is a SubmitResult in JSON.
type submitted struct {
	Outcome     string   `json:"outcome"`
	ID          ID       `json:"execution_id"`
	PublicState string   `json:"public_state"`
	Priority    int      `json:"priority"`
	Error       *Problem `json:"error,omitempty"`
}

// The outcomes of a submit.
const (
	outcomeCreated   = "created"
	outcomeDuplicate = "duplicate"
)

// Outcome is the word of the HTTP API for what a submit did: created or duplicate.
func (r *SubmitResult) Outcome() string {
	if r.Duplicate {
		return outcomeDuplicate
	}
	return outcomeCreated
}

// MarshalJSON writes the answer as a bulk submit of the HTTP API shows it, without index and ok (U33).
func (r SubmitResult) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

// AppendJSON adds what MarshalJSON writes to a text.
func (r SubmitResult) AppendJSON(text []byte) ([]byte, error) {
	if r.Err != nil {
		return jsonx.Append(text, &refusedItem{ProblemOf(r.Err)})
	}
	return jsonx.Append(text, &submitted{Outcome: r.Outcome(), ID: r.ID, PublicState: r.PublicState, Priority: r.Priority})
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write, for a bulk submit and for a single one.
func (r *SubmitResult) UnmarshalJSON(text []byte) error { return readAnswer(text, r) }

// ReadJSON reads the next value of an answer. It serves packages of this module.
func (r *SubmitResult) ReadJSON(d *jsonx.Decoder) {
	read := jsonx.Scratch[submitted](d)
	if d.Into(read) {
		*r = SubmitResult{
			ID: read.ID, Duplicate: read.Outcome == outcomeDuplicate, PublicState: read.PublicState, Priority: read.Priority, Err: read.Error.Refusal(),
		}
	}
}

// refusedItem is an item of a batch that was refused, in JSON.
type refusedItem struct {
	Error *Problem `json:"error,omitempty"`
}
