package api

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Policy says how one execution is run. It is fixed when the execution is submitted. The zero value means: no retry, no timeout,
// up to ten takeovers after crashes, engine defaults for the rest. A value out of its range is invalid_policy with the path in
// Field.
//
// One that was read from JSON keeps what has no field here until a field is changed.
type Policy struct {
	// Retry allows retries; nil: a failed attempt ends the execution. &RetryPolicy{} retries three times.
	Retry *RetryPolicy
	// AttemptTimeout bounds the time that one attempt runs, waiting not counted; 0: none, at most 365 days.
	AttemptTimeout time.Duration
	// Deadline bounds the whole execution, counted from submit or replay; 0: none, at most 10 years.
	Deadline time.Duration
	// LeaseGrace keeps a lease whose renewal is late for so long before the work goes to somebody else; at most 10 minutes.
	LeaseGrace time.Duration
	// MaxReclaims is how often the work may be taken over from a worker that vanished; 0: 10, negative: never.
	MaxReclaims int
	// MaxReplays is how often an operator may replay; 0: 10, negative: never.
	MaxReplays int
	// Capabilities that a worker must have. SubmitOptions.Requires is short for it; both given are invalid_argument.
	Capabilities []string
	// FairnessKey shares a lane fairly among its keys when the lane's fairness is "key"; "": the namespace. SubmitOptions.FairnessKey is
	// short for it.
	FairnessKey string
	// Quotas limit when the execution starts; up to 8. SubmitOptions.Quotas is short for it.
	Quotas []QuotaUse
	// SlotsWhileWaiting is "release" (default) or "hold": whether the slots of quotas are kept while the execution waits.
	SlotsWhileWaiting string
	// BudgetIDs are the budgets that the execution uses besides those that cover it, by id or name; up to 16. SubmitOptions.BudgetIDs is
	// short for it.
	BudgetIDs []string
	// Estimate is what is reserved of its budgets when it starts, by dimension. SubmitOptions.Estimate is short for it.
	Estimate map[string]int64
	// Budgets are made with the execution, and cover it and what it spawns; up to 4. SubmitOptions.Budgets is short for it.
	Budgets []BudgetDefinition
	// DedupWindow is how long the idempotency key holds; 0: 24 hours, 1 second to 90 days.
	DedupWindow time.Duration
	// Retention says how long the execution is kept after its end; zero fields: the lane's, then the engine's.
	Retention Retention
	// Suspension is for waits that say nothing of it themselves.
	Suspension SuspensionPolicy
	// MaxSignals is how many signals the execution takes in; 0: 1000, at most 100 000.
	MaxSignals int

	text   []byte // the JSON it was read from, nil when it was not
	unread bool   // the fields are not filled in from text
}

// SuspensionPolicy is what holds for a wait that gives no timeout of its own.
type SuspensionPolicy struct {
	DefaultTimeout time.Duration   // 0: none, at most 365 days
	OnTimeout      TimeoutBehavior // "": FailOnTimeout
}

// RetryPolicy says whether and when a failed attempt is followed by another.
type RetryPolicy struct {
	MaxRetries int // after the first attempt; 0: 3, negative: none, at most 10 000
	Backoff    Backoff
	Categories []string      // failure classes or categories worth a retry; empty: all
	MaxElapsed time.Duration // no retry that would start later than this after the run's start; 0: no bound
}

// Backoff is the wait before a retry. The zero value grows from one second to one minute, doubling.
type Backoff struct {
	Strategy   string        // "exponential" (default) or "fixed"
	Initial    time.Duration // exponential: the first wait; 0: 1 s
	Max        time.Duration // exponential: the longest; 0: 60 s
	Multiplier float64       // exponential: growth; 0: 2
	Delay      time.Duration // fixed: every wait
	Jitter     float64       // 0..1: the share of the wait that chance may take away
}

// policyJSON is the policy as the rules read it (L11).
type policyJSON struct {
	Retry       *retryJSON         `json:"retry_policy,omitempty"`
	Timeouts    timeoutsJSON       `json:"timeout_policy,omitzero"`
	LeaseGrace  time.Duration      `json:"lease_grace_ms,omitempty"`
	MaxReclaims *int               `json:"max_reclaim_count,omitempty"`
	MaxReplays  *int               `json:"max_replay_count,omitempty"`
	Routing     *routingJSON       `json:"routing_requirements,omitempty"`
	FairnessKey string             `json:"fairness_key,omitempty"`
	Quotas      []QuotaUse         `json:"quotas,omitempty"`
	Slots       string             `json:"slots_while_waiting,omitempty"`
	BudgetIDs   []string           `json:"budget_ids,omitempty"`
	Estimate    map[string]int64   `json:"estimate,omitempty"`
	Budgets     []BudgetDefinition `json:"budgets,omitempty"`
	DedupWindow time.Duration      `json:"dedup_window_ms,omitempty"`
	Retention   Retention          `json:"retention_ms,omitzero"`
	Suspension  suspensionJSON     `json:"suspension_policy,omitzero"`
	MaxSignals  int                `json:"max_signals_per_execution,omitempty"`
}

type suspensionJSON struct {
	DefaultTimeout time.Duration   `json:"default_timeout_ms,omitempty"`
	OnTimeout      TimeoutBehavior `json:"timeout_behavior,omitempty"`
}

type timeoutsJSON struct {
	Attempt   time.Duration `json:"attempt_timeout_ms,omitempty"`
	Execution time.Duration `json:"execution_deadline_ms,omitempty"`
}

type routingJSON struct {
	Capabilities []string `json:"required_capabilities"`
}

type retryJSON struct {
	MaxRetries *int          `json:"max_retries,omitempty"`
	Backoff    backoffJSON   `json:"backoff,omitzero"`
	Categories []string      `json:"retryable_categories,omitempty"`
	MaxElapsed time.Duration `json:"max_elapsed_ms,omitempty"`
}

type backoffJSON struct {
	Strategy   string         `json:"strategy,omitempty"`
	Initial    time.Duration  `json:"initial_ms,omitempty"`
	Max        time.Duration  `json:"max_ms,omitempty"`
	Multiplier float64        `json:"multiplier,omitempty"`
	Delay      *time.Duration `json:"delay_ms,omitempty"`
	Jitter     float64        `json:"jitter,omitempty"`
}

// MarshalJSON writes the policy as the HTTP API takes it.
func (p Policy) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil) }

// AppendJSON adds what MarshalJSON writes to a text.
func (p Policy) AppendJSON(text []byte) ([]byte, error) {
	if given := p.given(); given != nil {
		return jsonx.AppendRaw(text, given)
	}
	return jsonx.Append(text, p.json())
}

// UnmarshalJSON reads a policy. What is wrong with it is refused by the call that uses it.
func (p *Policy) UnmarshalJSON(text []byte) error {
	*p = *policyFrom(bytes.Clone(text))
	return nil
}

// ReadJSON takes the text of the policy of a request, whose fields stay zero: most requests are only handed on to the rules, which read the
// text. It serves packages of this module, as Read does, which fills in the fields.
func (p *Policy) ReadJSON(d *jsonx.Decoder) {
	*p = Policy{text: bytes.Clone(d.Bytes()), unread: true}
}

// Read returns the policy with its fields. It serves packages of this module.
func (p *Policy) Read() *Policy {
	if p == nil || !p.unread {
		return p
	}
	return policyFrom(p.text)
}

// Text returns the JSON of the policy for the rules to check; nil of no policy. Budgets that contradict themselves are invalid_budget: the
// rules would ignore half of what they say.
func (p *Policy) Text() ([]byte, error) {
	switch {
	case p == nil:
		return nil, nil
	case p.unread && bytes.Contains(p.text, []byte(`"budgets"`)):
		return p.text, p.Read().check()
	case p.unread:
		return p.text, nil
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if given := p.given(); given != nil {
		return given, nil
	}
	return jsonx.Marshal(p.json())
}

// check refuses what cannot be written. Of a policy that is not read nothing is known.
func (p *Policy) check() error {
	if p == nil {
		return nil
	}
	if r := p.Retry; r != nil && (!finite(r.Backoff.Multiplier) || !finite(r.Backoff.Jitter)) {
		return Errorf(string(base.CodeInvalidPolicy), "the policy does not encode").At("policy", "a number may not be infinite or NaN")
	}
	return Within("policy", CheckResets(p.Budgets))
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// CheckResets refuses budgets whose reset contradicts itself, and says which of them is at fault. It serves packages of this module.
func CheckResets(all []BudgetDefinition) error {
	for i := range all {
		if err := all[i].Reset.Check(); err != nil {
			return Within(fmt.Sprintf("budgets[%d]", i), err)
		}
	}
	return nil
}

// given is the text that the policy was read from, nil when it was not, or when its fields were changed since.
func (p *Policy) given() []byte {
	if p.text == nil || p.unread {
		return p.text
	}
	fields := *p
	fields.text = nil
	if reflect.DeepEqual(&fields, fieldsOf(p.text)) {
		return p.text
	}
	return nil
}

// policyFrom reads the fields of a policy, and keeps the text, which the rules check: it may have more.
func policyFrom(text []byte) *Policy {
	p := fieldsOf(text)
	p.text = text
	return p
}

// fieldsOf are the fields that a policy's text gives. What cannot be read stays zero: the rules refuse the text.
func fieldsOf(text []byte) *Policy {
	var w policyJSON
	_ = jsonx.Decode(text, &w)
	p := &Policy{
		AttemptTimeout: w.Timeouts.Attempt, Deadline: w.Timeouts.Execution, LeaseGrace: w.LeaseGrace, MaxReclaims: countGiven(w.MaxReclaims),
		MaxReplays: countGiven(w.MaxReplays), FairnessKey: w.FairnessKey, Quotas: w.Quotas, SlotsWhileWaiting: w.Slots, BudgetIDs: w.BudgetIDs,
		Estimate: w.Estimate, Budgets: w.Budgets, DedupWindow: w.DedupWindow, Retention: w.Retention.Normalized(), Suspension: SuspensionPolicy(w.Suspension), MaxSignals: w.MaxSignals,
	}
	if w.Routing != nil {
		p.Capabilities = w.Routing.Capabilities
	}
	if r := w.Retry; r != nil {
		b := r.Backoff
		p.Retry = &RetryPolicy{
			MaxRetries: countGiven(r.MaxRetries), Categories: r.Categories, MaxElapsed: r.MaxElapsed,
			Backoff: Backoff{Strategy: b.Strategy, Initial: b.Initial, Max: b.Max, Multiplier: b.Multiplier, Jitter: b.Jitter},
		}
		if b.Delay != nil {
			p.Retry.Backoff.Delay = *b.Delay
		}
	}
	return p
}

// json is the policy in the form of its text.
func (p *Policy) json() *policyJSON {
	w := &policyJSON{
		Retry: p.Retry.json(), Timeouts: timeoutsJSON{p.AttemptTimeout, p.Deadline}, LeaseGrace: p.LeaseGrace, MaxReclaims: countOrDefault(p.MaxReclaims),
		MaxReplays: countOrDefault(p.MaxReplays), FairnessKey: p.FairnessKey, Quotas: p.Quotas, Slots: p.SlotsWhileWaiting, BudgetIDs: p.BudgetIDs,
		Estimate: p.Estimate, Budgets: p.Budgets, DedupWindow: p.DedupWindow, Retention: p.Retention.Normalized(), Suspension: suspensionJSON(p.Suspension), MaxSignals: p.MaxSignals,
	}
	if len(p.Capabilities) > 0 {
		w.Routing = &routingJSON{p.Capabilities}
	}
	return w
}

func (r *RetryPolicy) json() *retryJSON {
	if r == nil {
		return nil
	}
	b := r.Backoff
	w := &retryJSON{
		MaxRetries: countOrDefault(r.MaxRetries), Categories: r.Categories, MaxElapsed: r.MaxElapsed,
		Backoff: backoffJSON{Strategy: b.Strategy, Initial: b.Initial, Max: b.Max, Multiplier: b.Multiplier, Jitter: b.Jitter},
	}
	if b.Delay != 0 || b.Strategy == core.BackoffFixed {
		w.Backoff.Delay = &r.Backoff.Delay
	}
	return w
}

// countOrDefault leaves 0 to the default and turns a negative count into none.
func countOrDefault(n int) *int {
	if n == 0 {
		return nil
	}
	count := max(n, 0)
	return &count
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
