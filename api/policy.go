package api

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Policy says how one execution is run. It is fixed when the execution is submitted. The zero value means the default retries (see
// RetryPolicy), no timeout, up to ten reclaims after crashes, and engine defaults for the rest. A value out of range is invalid_policy with the path in
// Field.
//
// A policy read from JSON keeps fields unknown to this version until a field is changed.
type Policy struct {
	// Retry says how failed attempts are retried; nil: as the worker that runs it says, else the lane, else as &RetryPolicy{}. NoRetry()
	// disables retries.
	Retry *RetryPolicy
	// AttemptTimeout limits the running time of one attempt, without waiting time; 0: none, at most 365 days.
	AttemptTimeout time.Duration
	// Deadline limits the whole execution, counted from submit or replay; 0: none, at most 10 years.
	Deadline time.Duration
	// LeaseGrace extends a lease whose renewal is late before other workers can take over; at most 10 minutes.
	LeaseGrace time.Duration
	// MaxReclaims is how often the work can be taken over from a lost worker; 0: 10, negative: never.
	MaxReclaims int
	// MaxReplays is how often an operator can replay it; 0: 10, negative: never.
	MaxReplays int
	// Capabilities that a worker must have. SubmitOptions.Requires is short for it; giving both is invalid_argument.
	Capabilities []string
	// FairnessKey shares a lane fairly among keys if the lane's fairness is "key"; "": the namespace. SubmitOptions.FairnessKey
	// is short for it.
	FairnessKey string
	// Quotas limit when the execution starts; up to 8. SubmitOptions.Quotas is short for it.
	Quotas []QuotaUse
	// SlotsWhileWaiting is "release" (default) or "hold": whether quota slots are kept while the execution waits.
	SlotsWhileWaiting string
	// BudgetIDs are the budgets that the execution uses in addition to those that cover it, by id or name; up to 16.
	// SubmitOptions.BudgetIDs is short for it.
	BudgetIDs []string
	// Estimate is reserved in its budgets when it starts, by dimension. SubmitOptions.Estimate is short for it.
	Estimate map[string]int64
	// Budgets are created with the execution, and cover it and what it spawns; up to 4. SubmitOptions.Budgets is short for it.
	Budgets []BudgetDefinition
	// DedupWindow is how long the idempotency key is remembered; 0: 24 hours, 1 second to 90 days.
	DedupWindow time.Duration
	// Retention is how long the execution is kept after its end; zero fields: the lane's, then the engine's.
	Retention Retention
	// Suspension has defaults for suspensions.
	Suspension SuspensionPolicy
	// MaxSignals is how many signals the execution accepts; 0: 1000, at most 100,000.
	MaxSignals int
	// Stream says which frames of an attempt are kept.
	Stream StreamPolicy

	text   []byte // the JSON it was read from, nil when it was not
	unread bool   // the fields are not filled in from text
}

// SuspensionPolicy has defaults for suspensions without a timeout of their own.
type SuspensionPolicy struct {
	DefaultTimeout time.Duration   // 0: none, at most 365 days
	OnTimeout      TimeoutBehavior // "": FailOnTimeout
}

// Defaults of RetryPolicy and Backoff, and with them of every execution about which nothing else is said. Together they last about
// three days: work that fails on a Friday evening is still retried on Monday.
const (
	DefaultMaxRetries      = base.DefaultMaxRetries                                  // RetryPolicy.MaxRetries
	DefaultInitialBackoff  = time.Duration(base.DefaultInitialMS) * time.Millisecond // Backoff.Initial
	DefaultMaxBackoff      = time.Duration(base.DefaultMaxMS) * time.Millisecond     // Backoff.Max
	DefaultBackoffMultiple = base.DefaultMultiplier                                  // Backoff.Multiplier
)

// RetrySummary describes these defaults for readers, such as "25 retries, after 1s, 2s, 4s and so on, at most 6h apart".
func RetrySummary() string { return base.RetrySummary() }

// RetryPolicy says whether and when a failed attempt is followed by another. The zero value retries DefaultMaxRetries times, after
// delays that grow from DefaultInitialBackoff to DefaultMaxBackoff. Failures of class permanent or cancelled are never retried.
type RetryPolicy struct {
	MaxRetries int // after the first attempt; 0: DefaultMaxRetries, negative: none, at most 10 000
	Backoff    Backoff
	Categories []string      // failure classes or categories to retry; empty: all
	MaxElapsed time.Duration // no retry starts later than this after the run's start; 0: no limit
	// ByCategory counts and delays the retries after failures of single categories or classes, which then do not count for the
	// others; an entry for the category precedes one for the class. Up to 32.
	ByCategory map[string]CategoryRetry
}

// Check refuses what the rules would refuse in every call that uses the policy. It is for packages of this module.
func (r *RetryPolicy) Check() error {
	refuse := func(field, format string, args ...any) error {
		return Errorf(string(base.CodeInvalidPolicy), format, args...).At("retry_policy."+field, "")
	}
	names := slices.Concat(r.Categories, slices.Sorted(maps.Keys(r.ByCategory)))
	backoffs := []Backoff{r.Backoff}
	for _, rule := range r.ByCategory {
		backoffs = append(backoffs, rule.Backoff)
	}
	for _, name := range names {
		if why := base.CheckCategoryText(name); why != "" {
			return refuse("retryable_categories", "the category %q %s", name, why)
		}
	}
	for _, b := range backoffs {
		switch {
		case b.Strategy != "" && b.Strategy != base.BackoffFixed && b.Strategy != base.BackoffExponential:
			return refuse("backoff.strategy", "%q is not exponential or fixed", b.Strategy)
		case b.Strategy == base.BackoffFixed && (b.Initial != 0 || b.Max != 0 || b.Multiplier != 0), b.Strategy != base.BackoffFixed && b.Delay != 0:
			return refuse("backoff", "it sets fields of the other strategy")
		case b.Max != 0 && b.Max < b.Initial, b.Initial < 0, b.Max < 0, b.Delay < 0, b.Multiplier != 0 && b.Multiplier < 1, b.Jitter < 0, b.Jitter > 1:
			return refuse("backoff", "a value is out of its range")
		}
	}
	return nil
}

// NoRetry returns the policy without retries: a failed attempt ends the execution.
func NoRetry() *RetryPolicy { return &RetryPolicy{MaxRetries: -1} }

// CategoryRetry says how failures of one category or class are retried.
type CategoryRetry struct {
	MaxRetries int     // 0: that of the policy, negative: none
	Backoff    Backoff // the zero value: that of the policy
}

// Failure classes: what an attempt failed with. A worker names the class when it fails an attempt; the default is ClassTransient.
const (
	ClassTransient  = "transient"   // it may succeed if it is tried again; an error that a handler returns
	ClassTimeout    = "timeout"     // the attempt or the call of the handler ran out of time
	ClassInfraCrash = "infra_crash" // the process or machine that ran it died
	ClassPermanent  = "permanent"   // it will never succeed; never retried
	ClassCancelled  = "cancelled"   // the worker gave up on purpose; never retried
)

// Backoff is the delay before a retry. The zero value doubles from DefaultInitialBackoff to DefaultMaxBackoff.
type Backoff struct {
	Strategy   string        // "exponential" (default) or "fixed"
	Initial    time.Duration // exponential: the first delay; 0: DefaultInitialBackoff
	Max        time.Duration // exponential: the longest delay; 0: DefaultMaxBackoff, or Initial if that is longer
	Multiplier float64       // exponential: growth factor; 0: DefaultBackoffMultiple
	Delay      time.Duration // fixed: every delay
	Jitter     float64       // 0..1: the random share of the delay
}

// policyJSON is the policy in JSON as the rules read it (L11).
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
	Stream      streamJSON         `json:"stream_policy,omitzero"`
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
	MaxRetries *int                         `json:"max_retries,omitempty"`
	Backoff    backoffJSON                  `json:"backoff,omitzero"`
	Categories []string                     `json:"retryable_categories,omitempty"`
	MaxElapsed time.Duration                `json:"max_elapsed_ms,omitempty"`
	ByCategory map[string]categoryRetryJSON `json:"by_category,omitempty"`
}

type categoryRetryJSON struct {
	MaxRetries *int         `json:"max_retries,omitempty"`
	Backoff    *backoffJSON `json:"backoff,omitempty"`
}

type backoffJSON struct {
	Strategy   string         `json:"strategy,omitempty"`
	Initial    time.Duration  `json:"initial_ms,omitempty"`
	Max        time.Duration  `json:"max_ms,omitempty"`
	Multiplier float64        `json:"multiplier,omitempty"`
	Delay      *time.Duration `json:"delay_ms,omitempty"`
	Jitter     float64        `json:"jitter,omitempty"`
}

// MarshalJSON writes the policy as the HTTP API accepts it.
func (p Policy) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil) }

// AppendJSON adds what MarshalJSON writes to a text.
func (p Policy) AppendJSON(text []byte) ([]byte, error) {
	if given := p.given(); given != nil {
		return jsonx.AppendRaw(text, given)
	}
	return jsonx.Append(text, p.json())
}

// UnmarshalJSON reads a policy. Invalid values are refused by the call that uses it.
func (p *Policy) UnmarshalJSON(text []byte) error {
	*p = *policyFrom(bytes.Clone(text))
	return nil
}

// ReadJSON keeps the text of the policy of a request and leaves the fields zero, because most requests only pass the text on to
// the rules. It is for packages of this module, like Read, which fills in the fields.
func (p *Policy) ReadJSON(d *jsonx.Decoder) {
	*p = Policy{text: bytes.Clone(d.Bytes()), unread: true}
}

// Read returns the policy with its fields filled in. It is for packages of this module.
func (p *Policy) Read() *Policy {
	if p == nil || !p.unread {
		return p
	}
	return policyFrom(p.text)
}

// Text returns the JSON of the policy for the rules to check; nil for no policy. Contradictory budgets are invalid_budget,
// because the rules would ignore some of their fields.
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

// check refuses values that cannot be written. A policy that has not been read is not checked.
func (p *Policy) check() error {
	if p == nil {
		return nil
	}
	if r := p.Retry; r != nil && !r.finite() || !finite(p.Stream.BestEffort.Alpha) {
		return Errorf(string(base.CodeInvalidPolicy), "the policy does not encode").At("policy", "a number must not be infinite or NaN")
	}
	return Within("policy", CheckResets(p.Budgets))
}

// finite reports whether all its numbers can be written.
func (r *RetryPolicy) finite() bool {
	for _, rule := range r.ByCategory {
		if !rule.Backoff.finite() {
			return false
		}
	}
	return r.Backoff.finite()
}

func (b Backoff) finite() bool { return finite(b.Multiplier) && finite(b.Jitter) }

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// CheckResets refuses budgets whose reset is contradictory, and names the budget. It is for packages of this module.
func CheckResets(all []BudgetDefinition) error {
	for i := range all {
		if err := all[i].Reset.Check(); err != nil {
			return Within(fmt.Sprintf("budgets[%d]", i), err)
		}
	}
	return nil
}

// given is the text that the policy was read from; nil if it was not, or if its fields were changed since.
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

// policyFrom reads the fields of a policy, and keeps the text for the rules, which may have more fields.
func policyFrom(text []byte) *Policy {
	p := fieldsOf(text)
	p.text = text
	return p
}

// fieldsOf returns the fields of a policy's text. Invalid ones stay zero, because the rules refuse the text.
func fieldsOf(text []byte) *Policy {
	var w policyJSON
	_ = jsonx.Decode(text, &w)
	p := &Policy{
		AttemptTimeout: w.Timeouts.Attempt, Deadline: w.Timeouts.Execution, LeaseGrace: w.LeaseGrace, MaxReclaims: countGiven(w.MaxReclaims),
		MaxReplays: countGiven(w.MaxReplays), FairnessKey: w.FairnessKey, Quotas: w.Quotas, SlotsWhileWaiting: w.Slots, BudgetIDs: w.BudgetIDs,
		Estimate: w.Estimate, Budgets: w.Budgets, DedupWindow: w.DedupWindow, Retention: w.Retention.Normalized(), Suspension: SuspensionPolicy(w.Suspension), MaxSignals: w.MaxSignals,
		Stream: w.Stream.policy(),
	}
	if w.Routing != nil {
		p.Capabilities = w.Routing.Capabilities
	}
	if r := w.Retry; r != nil {
		p.Retry = &RetryPolicy{MaxRetries: countGiven(r.MaxRetries), Categories: r.Categories, MaxElapsed: r.MaxElapsed, Backoff: r.Backoff.backoff()}
		for name, rule := range r.ByCategory {
			own := CategoryRetry{MaxRetries: countGiven(rule.MaxRetries)}
			if rule.Backoff != nil {
				own.Backoff = rule.Backoff.backoff()
			}
			if p.Retry.ByCategory == nil {
				p.Retry.ByCategory = map[string]CategoryRetry{}
			}
			p.Retry.ByCategory[name] = own
		}
	}
	return p
}

// backoff converts the JSON of a backoff.
func (b *backoffJSON) backoff() Backoff {
	read := Backoff{Strategy: b.Strategy, Initial: b.Initial, Max: b.Max, Multiplier: b.Multiplier, Jitter: b.Jitter}
	if b.Delay != nil {
		read.Delay = *b.Delay
	}
	return read
}

// json converts the policy to the form of its text.
func (p *Policy) json() *policyJSON {
	w := &policyJSON{
		Retry: p.Retry.json(), Timeouts: timeoutsJSON{p.AttemptTimeout, p.Deadline}, LeaseGrace: p.LeaseGrace, MaxReclaims: countOrDefault(p.MaxReclaims),
		MaxReplays: countOrDefault(p.MaxReplays), FairnessKey: p.FairnessKey, Quotas: p.Quotas, Slots: p.SlotsWhileWaiting, BudgetIDs: p.BudgetIDs,
		Estimate: p.Estimate, Budgets: p.Budgets, DedupWindow: p.DedupWindow, Retention: p.Retention.Normalized(), Suspension: suspensionJSON(p.Suspension), MaxSignals: p.MaxSignals,
		Stream: p.Stream.json(),
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
	w := &retryJSON{MaxRetries: countOrDefault(r.MaxRetries), Categories: r.Categories, MaxElapsed: r.MaxElapsed, Backoff: r.Backoff.json()}
	for name, rule := range r.ByCategory {
		own := categoryRetryJSON{MaxRetries: countOrDefault(rule.MaxRetries)}
		if rule.Backoff != (Backoff{}) {
			backoff := rule.Backoff.json()
			own.Backoff = &backoff
		}
		if w.ByCategory == nil {
			w.ByCategory = map[string]categoryRetryJSON{}
		}
		w.ByCategory[name] = own
	}
	return w
}

func (b Backoff) json() backoffJSON {
	w := backoffJSON{Strategy: b.Strategy, Initial: b.Initial, Max: b.Max, Multiplier: b.Multiplier, Jitter: b.Jitter}
	if b.Delay != 0 || b.Strategy == base.BackoffFixed {
		w.Delay = &b.Delay
	}
	return w
}

// countOrDefault keeps 0 for the default and turns a negative count into 0.
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
