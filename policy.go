package flowfabric

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Policy says how one execution is run. It is fixed when the execution is submitted. The zero value means: no retry, no timeout,
// up to ten takeovers after crashes, engine defaults for the rest. A value out of its range is invalid_policy with the path in
// Field.
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
	// FairnessKey shares a lane fairly among its keys when the lane's fairness is "key"; "": the namespace.
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

	text     []byte // the JSON it was read from, nil when it was not
	unread   bool   // the fields were not filled in from text
	keyAside bool   // FairnessKey was given beside the policy
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

// KeepForever as a retention keeps finished executions until they are deleted.
const KeepForever = api.KeepForever

// Retention is how long finished executions are kept, by the status they ended in. A zero field leaves that status to the next
// rule: the policy's, then the lane's, then the engine's (succeeded and skipped 3 days, cancelled 7, failed and expired 14).
type Retention = api.Retention

// policyJSON is the policy as the rules read it (L11).
type policyJSON struct {
	Retry       *retryJSON             `json:"retry_policy,omitempty"`
	Timeouts    *timeoutsJSON          `json:"timeout_policy,omitempty"`
	LeaseGrace  int64                  `json:"lease_grace_ms,omitempty"`
	MaxReclaims *int                   `json:"max_reclaim_count,omitempty"`
	MaxReplays  *int                   `json:"max_replay_count,omitempty"`
	Routing     *routingJSON           `json:"routing_requirements,omitempty"`
	FairnessKey string                 `json:"fairness_key,omitempty"`
	Quotas      []core.QuotaUse        `json:"quotas,omitempty"`
	Slots       string                 `json:"slots_while_waiting,omitempty"`
	BudgetIDs   []string               `json:"budget_ids,omitempty"`
	Estimate    map[string]int64       `json:"estimate,omitempty"`
	Budgets     ownBudgets             `json:"budgets,omitempty"`
	DedupWindow int64                  `json:"dedup_window_ms,omitempty"`
	Retention   core.RetentionByStatus `json:"retention_ms,omitzero"`
	Suspension  suspensionJSON         `json:"suspension_policy,omitzero"`
	MaxSignals  int                    `json:"max_signals_per_execution,omitempty"`
}

type suspensionJSON struct {
	DefaultTimeout int64           `json:"default_timeout_ms,omitempty"`
	OnTimeout      TimeoutBehavior `json:"timeout_behavior,omitempty"`
}

type timeoutsJSON struct {
	Attempt   int64 `json:"attempt_timeout_ms,omitempty"`
	Execution int64 `json:"execution_deadline_ms,omitempty"`
}

type routingJSON struct {
	Capabilities []string `json:"required_capabilities"`
}

type retryJSON struct {
	MaxRetries *int        `json:"max_retries,omitempty"`
	Backoff    backoffJSON `json:"backoff,omitzero"`
	Categories []string    `json:"retryable_categories,omitempty"`
	MaxElapsed int64       `json:"max_elapsed_ms,omitempty"`
}

type backoffJSON struct {
	Strategy   string  `json:"strategy,omitempty"`
	Initial    int64   `json:"initial_ms,omitempty"`
	Max        int64   `json:"max_ms,omitempty"`
	Multiplier float64 `json:"multiplier,omitempty"`
	Delay      *int64  `json:"delay_ms,omitempty"`
	Jitter     float64 `json:"jitter,omitempty"`
}

// shortForms are the fields of a policy that a submission may give beside it (U32).
var shortForms = []struct {
	field  string // of the submission
	name   string // in Go
	member string // of the policy
	path   string // of the value in the policy
	given  func(p *Policy) bool
	take   func(p, short *Policy)
	value  func(p *Policy) any
}{
	{
		"requires", "Requires", "routing_requirements", "routing_requirements.required_capabilities", func(p *Policy) bool { return len(p.Capabilities) > 0 },
		func(p, short *Policy) { p.Capabilities = short.Capabilities }, func(p *Policy) any { return routingJSON{p.Capabilities} },
	},
	{
		"budget_ids", "BudgetIDs", "budget_ids", "budget_ids", func(p *Policy) bool { return len(p.BudgetIDs) > 0 },
		func(p, short *Policy) { p.BudgetIDs = short.BudgetIDs }, func(p *Policy) any { return p.BudgetIDs },
	},
	{
		"estimate", "Estimate", "estimate", "estimate", func(p *Policy) bool { return len(p.Estimate) > 0 },
		func(p, short *Policy) { p.Estimate = short.Estimate }, func(p *Policy) any { return p.Estimate },
	},
	{
		"budgets", "Budgets", "budgets", "budgets", func(p *Policy) bool { return len(p.Budgets) > 0 },
		func(p, short *Policy) { p.Budgets = short.Budgets }, func(p *Policy) any { return p.Budgets },
	},
	{
		"quotas", "Quotas", "quotas", "quotas", func(p *Policy) bool { return len(p.Quotas) > 0 },
		func(p, short *Policy) { p.Quotas = short.Quotas }, func(p *Policy) any { return quotaUses(p.Quotas) },
	},
}

// anyShort reports whether one of them is given.
func (p *Policy) anyShort() bool {
	for _, form := range shortForms {
		if form.given(p) {
			return true
		}
	}
	return false
}

// withShort adds what a submission gives beside its policy: to its fields, and to the text that it was read from.
func withShort(p *Policy, short Policy) (*Policy, error) {
	if p.unread {
		p = policyFrom(p.text)
	}
	whole := *p
	text := p.given()
	for _, form := range shortForms {
		if !form.given(&short) {
			continue
		}
		if form.given(p) {
			return nil, newError(core.CodeInvalidArgument, "%s is given twice: beside the policy and in it", form.name).At(form.field, "give one of them")
		}
		form.take(&whole, &short)
		if text != nil {
			value, err := json.Marshal(form.value(&short))
			if err != nil {
				return nil, err
			}
			text = service.WithMember(text, form.member, value)
		}
	}
	whole.text = text
	return &whole, nil
}

// encodePolicy writes the policy of a submission for the rules to check, with what is given beside it; nil when everything is default.
func encodePolicy(p *Policy, short Policy) ([]byte, error) {
	if err := cmp.Or(checkOwnBudgets(short.Budgets), p.checkBudgets()); err != nil {
		return nil, err
	}
	beside := short.anyShort()
	switch {
	case p == nil && !beside:
		return nil, nil
	case p == nil:
		p = &short
	case beside:
		whole, err := withShort(p, short)
		if err != nil {
			return nil, err
		}
		p = whole
	}
	if given := p.given(); given != nil {
		return given, nil
	}
	text := policyJSON{
		Retry:       p.Retry.json(),
		LeaseGrace:  millis(p.LeaseGrace),
		MaxReclaims: countOrDefault(p.MaxReclaims),
		MaxReplays:  countOrDefault(p.MaxReplays),
		FairnessKey: p.FairnessKey,
		Quotas:      quotaUses(p.Quotas),
		Slots:       p.SlotsWhileWaiting,
		BudgetIDs:   p.BudgetIDs,
		Estimate:    p.Estimate,
		Budgets:     p.Budgets,
		DedupWindow: millis(p.DedupWindow),
		Retention:   service.CoreRetention(p.Retention),
		Suspension:  suspensionJSON{millis(p.Suspension.DefaultTimeout), p.Suspension.OnTimeout},
		MaxSignals:  p.MaxSignals,
	}
	if p.AttemptTimeout != 0 || p.Deadline != 0 {
		text.Timeouts = &timeoutsJSON{Attempt: millis(p.AttemptTimeout), Execution: millis(p.Deadline)}
	}
	if len(p.Capabilities) > 0 {
		text.Routing = &routingJSON{p.Capabilities}
	}
	encoded, err := json.Marshal(text)
	if err != nil {
		return nil, newError(core.CodeInvalidPolicy, "the policy does not encode: %w", err).At("policy", "a number may not be infinite or NaN")
	}
	return encoded, nil
}

func (p *Policy) checkBudgets() error {
	if p == nil {
		return nil
	}
	return within("policy", checkOwnBudgets(p.Budgets))
}

// checkOwnBudgets refuses budgets that could not be made with an execution as they are written.
func checkOwnBudgets(all []BudgetDefinition) error {
	return eachBudget(all, func(b *BudgetDefinition) error { return b.Reset.Check() })
}

// checkLimits refuses a limit of 0 in budgets that were read from JSON: in Go it would be none.
func checkLimits(all []BudgetDefinition) error {
	return eachBudget(all, (*BudgetDefinition).CheckLimits)
}

// eachBudget checks budgets that are made with an execution or a flow, and says which of them is at fault.
func eachBudget(all []BudgetDefinition, check func(*BudgetDefinition) error) error {
	for i := range all {
		if err := check(&all[i]); err != nil {
			return within(fmt.Sprintf("budgets[%d]", i), err)
		}
	}
	return nil
}

// ownBudgets are the budgets that the text of a policy gives.
type ownBudgets []BudgetDefinition

// UnmarshalJSON reads what can be read. What cannot stays zero: the rules refuse the text of the policy.
func (b *ownBudgets) UnmarshalJSON(text []byte) error {
	_ = wire.DecodeJSON(text, (*[]BudgetDefinition)(b))
	return nil
}

func (r *RetryPolicy) json() *retryJSON {
	if r == nil {
		return nil
	}
	b := r.Backoff
	text := &retryJSON{
		MaxRetries: countOrDefault(r.MaxRetries),
		Backoff: backoffJSON{
			Strategy: b.Strategy, Initial: millis(b.Initial), Max: millis(b.Max), Multiplier: b.Multiplier, Jitter: b.Jitter,
		},
		Categories: r.Categories,
		MaxElapsed: millis(r.MaxElapsed),
	}
	if delay := millis(b.Delay); delay != 0 || b.Strategy == core.BackoffFixed {
		text.Backoff.Delay = &delay
	}
	return text
}

// countOrDefault leaves 0 to the default and turns a negative count into none.
func countOrDefault(n int) *int {
	if n == 0 {
		return nil
	}
	n = max(n, 0)
	return &n
}

// millis rounds up, so that a short wait never becomes none.
func millis(d time.Duration) core.Millis {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}

// duration is the longest span if there are too many milliseconds.
func duration(ms core.Millis) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(max(min(ms, most), -most)) * time.Millisecond
}

// quotaUses are the quotas that executions are attached to, for the engine; quotaUsesOf those of the engine.
func quotaUses(uses []QuotaUse) []core.QuotaUse {
	return some(uses, func(u QuotaUse) core.QuotaUse { return core.QuotaUse(u) })
}

func quotaUsesOf(uses []core.QuotaUse) []QuotaUse {
	return some(uses, func(u core.QuotaUse) QuotaUse { return QuotaUse(u) })
}
