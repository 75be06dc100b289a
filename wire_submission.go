package flowfabric

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// MarshalJSON writes the submission as the HTTP API takes it (U32). An input that could not be encoded is its error.
func (s Submission) MarshalJSON() ([]byte, error) {
	w, err := s.wire()
	if err != nil {
		return nil, err
	}
	return wire.Marshal(&w)
}

// UnmarshalJSON reads a submission as strictly as the HTTP API does: its errors have codes, and the path of the field at fault.
// Of the policy nothing is lost, also what has no field in Policy; it is checked by the call that uses it.
//
// Codes: invalid_json, unknown_field, missing_field, invalid_argument.
func (s *Submission) UnmarshalJSON(text []byte) error {
	var w wire.Submission
	if err := wire.DecodeJSON(text, &w); err != nil {
		return api.FaultsError(err)
	}
	read, err := submissionFrom(&w, policyFrom)
	if err != nil {
		return err
	}
	*s = read
	return nil
}

// SubmissionOf is the submission of a request, whose policy must not be changed: its fields stay zero, unless they are needed here, and the
// rules read the text, once. Programs read a Submission by its UnmarshalJSON.
func SubmissionOf(w *wire.Submission) (Submission, error) { return submissionFrom(w, policyUnread) }

func (s *Submission) wire() (wire.Submission, error) {
	if err := s.Input.Problem("input"); err != nil {
		return wire.Submission{}, err
	}
	var policy []byte
	var err error
	if s.Policy != nil {
		policy, err = encodePolicy(s.Policy, Policy{})
	}
	if err := cmp.Or(err, checkOwnBudgets(s.Budgets)); err != nil {
		return wire.Submission{}, err
	}
	return wire.Submission{
		Kind: s.Kind, ExecutionID: string(s.ID), Lane: s.Lane, Priority: s.Priority, DelayMS: millis(s.Delay), DelayUntil: wireTime(s.StartAt),
		DeadlineAt: wireTime(s.Deadline), IdempotencyKey: s.IdempotencyKey, Tags: s.Tags, Policy: policy, Requires: s.Requires,
		Quotas: s.Quotas, BudgetIDs: s.BudgetIDs, Estimate: s.Estimate, Budgets: s.Budgets, InputFields: wire.InputOf(wirePayload(s.Input)),
	}, nil
}

func submissionFrom(w *wire.Submission, read func(text []byte) *Policy) (Submission, error) {
	s := Submission{Kind: w.Kind, Input: payloadFrom(w.InputFields.Payload()), SubmitOptions: SubmitOptions{
		ID: ID(w.ExecutionID), Lane: w.Lane, IdempotencyKey: w.IdempotencyKey, Priority: w.Priority, Delay: duration(w.DelayMS),
		StartAt: w.DelayUntil.Time, Deadline: w.DeadlineAt.Time, Tags: w.Tags, Requires: w.Requires,
		Quotas: w.Quotas, BudgetIDs: w.BudgetIDs, Estimate: w.Estimate, Budgets: w.Budgets,
	}}
	if err := checkLimits(w.Budgets); err != nil {
		return Submission{}, err
	}
	switch {
	case w.Policy != nil && w.FairnessKey == "":
		s.Policy = read(w.Policy)
	case w.Policy != nil:
		if policyShown(w.Policy).FairnessKey != "" {
			return Submission{}, newError(core.CodeInvalidArgument, "fairness_key stands in the submission and in its policy").
				At("/fairness_key", "give one of them")
		}
		key, err := json.Marshal(w.FairnessKey)
		if err != nil {
			return Submission{}, err
		}
		s.Policy = read(service.WithMember(w.Policy, "fairness_key", key))
		s.Policy.keyAside = true
	case w.FairnessKey != "":
		s.Policy = &Policy{FairnessKey: w.FairnessKey, keyAside: true}
	}
	return s, nil
}

// policyFrom reads the fields of a policy, and keeps the text: the rules look at that, and see also what has no field here.
func policyFrom(text []byte) *Policy {
	p := policyShown(text)
	p.text = text
	return p
}

// policyUnread keeps the text alone. Budgets are read: what is wrong with them is refused before the rules see the text.
func policyUnread(text []byte) *Policy {
	if bytes.Contains(text, []byte(`"budgets"`)) {
		return policyFrom(text)
	}
	return &Policy{text: text, unread: true}
}

// policyShown are the fields that a policy's text gives. What cannot be read stays zero: the rules refuse the text.
func policyShown(text []byte) *Policy {
	var w policyJSON
	_ = json.Unmarshal(text, &w)
	p := &Policy{
		Retry: w.Retry.policy(), LeaseGrace: duration(w.LeaseGrace), MaxReclaims: countGiven(w.MaxReclaims), MaxReplays: countGiven(w.MaxReplays),
		FairnessKey: w.FairnessKey, DedupWindow: duration(w.DedupWindow), Retention: service.RetentionOf(w.Retention),
		Budgets: w.Budgets, Quotas: quotaUsesOf(w.Quotas), SlotsWhileWaiting: w.Slots, BudgetIDs: w.BudgetIDs, Estimate: w.Estimate,
		Suspension: SuspensionPolicy{duration(w.Suspension.DefaultTimeout), w.Suspension.OnTimeout}, MaxSignals: w.MaxSignals,
	}
	if w.Timeouts != nil {
		p.AttemptTimeout, p.Deadline = duration(w.Timeouts.Attempt), duration(w.Timeouts.Execution)
	}
	if w.Routing != nil {
		p.Capabilities = w.Routing.Capabilities
	}
	return p
}

func (r *retryJSON) policy() *RetryPolicy {
	if r == nil {
		return nil
	}
	b := r.Backoff
	retry := &RetryPolicy{
		MaxRetries: countGiven(r.MaxRetries), Categories: r.Categories, MaxElapsed: duration(r.MaxElapsed),
		Backoff: Backoff{Strategy: b.Strategy, Initial: duration(b.Initial), Max: duration(b.Max), Multiplier: b.Multiplier, Jitter: b.Jitter},
	}
	if b.Delay != nil {
		retry.Backoff.Delay = duration(*b.Delay)
	}
	return retry
}

// countGiven is the reverse of countOrDefault.
func countGiven(n *int) int {
	switch {
	case n == nil:
		return 0
	case *n == 0:
		return -1
	default:
		return *n
	}
}

// given is the text that the policy was read from, nil when it was not, or when its fields were changed since.
func (p *Policy) given() []byte {
	if p.text == nil {
		return nil
	}
	fields := *p
	fields.text, fields.unread, fields.keyAside = nil, false, false
	if p.unread && reflect.ValueOf(fields).IsZero() || reflect.DeepEqual(&fields, policyShown(p.text)) {
		return p.text
	}
	return nil
}

// MarshalJSON writes the answer as a bulk submit of the HTTP API shows it, without index and ok (U33).
func (r SubmitResult) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

// AppendJSON adds what MarshalJSON writes to a text.
func (r SubmitResult) AppendJSON(text []byte) ([]byte, error) {
	w := r.wire()
	return appendItem(text, &w, r.Err)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write, for a bulk submit and for a single one.
func (r *SubmitResult) UnmarshalJSON(text []byte) error {
	w, refusal, err := readItem[wire.SubmitItem](text)
	*r = submitResultFrom(w)
	r.Err = refusal
	return err
}

// The outcomes of a submit.
const (
	outcomeCreated   = "created"
	outcomeDuplicate = "duplicate"
)

func (r SubmitResult) wire() wire.SubmitItem {
	w := wire.SubmitItem{Outcome: outcomeCreated, ExecutionID: string(r.ID), PublicState: r.PublicState, Priority: r.Priority}
	if r.Duplicate {
		w.Outcome = outcomeDuplicate
	}
	return w
}

func submitResultFrom(w wire.SubmitItem) SubmitResult {
	return SubmitResult{ID: ID(w.ExecutionID), Duplicate: w.Outcome == outcomeDuplicate, PublicState: w.PublicState, Priority: w.Priority}
}
