package core

import (
	"maps"
	"slices"
	"strconv"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/stream"
)

// Policy is the frozen policy of an execution (L11, L12). ParsePolicy reads it from a caller's JSON, DecodePolicy from the output of Encode; both
// ensure that every value is within its bounds and every default filled in. A Policy is shared and never changed.
type Policy struct {
	Retry               *RetryPolicy // nil: in a submission, that of the lane or the default (DefaultRetry); in a record, no retry
	AttemptTimeoutMS    base.Millis  // 0: none
	ExecutionDeadlineMS base.Millis  // 0: none
	LeaseGraceMS        base.Millis
	MaxReclaims         int
	MaxReplays          int
	Capabilities        []string // required of the worker, sorted and unique (S10)
	FairnessKey         string   // "": the namespace is used (S24)
	Quotas              []QuotaUse
	SlotsWhileWaiting   string // SlotsRelease or SlotsHold
	BudgetIDs           []string
	Budgets             []BudgetDefinition // made with the execution, with that scope (B3)
	DedupWindowMS       base.Millis
	Retention           RetentionByStatus // absent by status: the lane's setting applies (L139)
	Estimate            map[string]int64  // amounts to reserve by budget dimension (B9)
	Suspension          SuspensionPolicy
	MaxSignals          int
	Stream              stream.Policy // the frames that are kept of each attempt (E6, E8)
}

// What happens to slots while the execution waits (S41).
const (
	SlotsRelease = "release"
	SlotsHold    = "hold"
)

// QuotaUse attaches a quota (S37).
type QuotaUse struct {
	Quota string `json:"quota"`
	Key   string `json:"key,omitempty"` // "" when absent
}

// SuspensionPolicy is used if a suspend gives no value of its own (W87).
type SuspensionPolicy struct {
	DefaultTimeoutMS base.Millis // 0: none
	TimeoutBehavior  string
}

// defaultPolicy is the meaning of `{}`. The defaults are part of the stored form: Encode omits them, so changing one here would change existing
// executions, which L12 forbids.
var defaultPolicy = newPolicy()

// DefaultPolicy returns the policy of a submission without one, which says nothing about retries: see DefaultRetriedPolicy. It is shared and must not be changed.
func DefaultPolicy() *Policy { return defaultPolicy }

// DefaultRetriedPolicy returns the policy of an execution whose submission had none. It is shared and must not be changed.
func DefaultRetriedPolicy() *Policy { return defaultRetried }

func newPolicy() *Policy {
	return &Policy{
		MaxReclaims:       10,
		MaxReplays:        10,
		SlotsWhileWaiting: SlotsRelease,
		DedupWindowMS:     24 * base.Hour,
		Suspension:        SuspensionPolicy{TimeoutBehavior: "fail"},
		MaxSignals:        1000,
		Stream: stream.Policy{
			MaxFrames: 10_000,
			MaxBytes:  64 << 20,
			OnFull:    stream.DropOldest,
			BestEffort: stream.BestEffortPolicy{
				TTLMS: 30 * base.Second, Floor: 64, Ceiling: 16_384, Alpha: 0.2,
			},
		},
	}
}

// ofWorkers returns the first field of p that is about workers, their leases and attempts, and differs from the default; "": there is none.
func (p *Policy) ofWorkers() string {
	d := defaultPolicy
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"retry_policy", p.Retry != nil},
		{"timeout_policy.attempt_timeout_ms", p.AttemptTimeoutMS != d.AttemptTimeoutMS},
		{"lease_grace_ms", p.LeaseGraceMS != d.LeaseGraceMS},
		{"max_reclaim_count", p.MaxReclaims != d.MaxReclaims},
		{"routing_requirements.required_capabilities", len(p.Capabilities) > 0},
		{"fairness_key", p.FairnessKey != d.FairnessKey},
		{"quotas", len(p.Quotas) > 0},
		{"slots_while_waiting", p.SlotsWhileWaiting != d.SlotsWhileWaiting},
		{"budget_ids", len(p.BudgetIDs) > 0},
		{"estimate", len(p.Estimate) > 0},
		{"suspension_policy", p.Suspension != d.Suspension},
		{"max_signals_per_execution", p.MaxSignals != d.MaxSignals},
		{"stream_policy", p.Stream != d.Stream},
	} {
		if f.given {
			return f.name
		}
	}
	return ""
}

// Canonical returns the canonical JSON text of p: sorted keys, defaults filled in, no white space. Equal policies have equal texts (L83).
func (p *Policy) Canonical() []byte { return p.write(true) }

// Encode returns the stored form of p: the canonical text without values that equal the default, nil for the default policy. It must not be changed.
func (p *Policy) Encode() []byte {
	switch p { // by far the most frequent ones
	case defaultPolicy:
		return nil
	case defaultRetried:
		return defaultRetriedText
	}
	text := p.write(false)
	if string(text) == "{}" {
		return nil
	}
	return text
}

// write appends every member in order of its key. A test of L83 checks the order.
func (p *Policy) write(full bool) []byte {
	d := defaultPolicy
	w := policyWriter{JSONObject: base.NewObject(256), full: full}
	w.list("budget_ids", p.BudgetIDs)
	w.budgets("budgets", p.Budgets)
	w.integer("dedup_window_ms", p.DedupWindowMS, d.DedupWindowMS)
	w.amounts("estimate", p.Estimate)
	w.StrIf("fairness_key", p.FairnessKey)
	w.integer("lease_grace_ms", p.LeaseGraceMS, d.LeaseGraceMS)
	w.integer("max_reclaim_count", int64(p.MaxReclaims), int64(d.MaxReclaims))
	w.integer("max_replay_count", int64(p.MaxReplays), int64(d.MaxReplays))
	w.integer("max_signals_per_execution", int64(p.MaxSignals), int64(d.MaxSignals))
	w.quotas("quotas", p.Quotas)
	w.retention("retention_ms", p.Retention)
	w.retry("retry_policy", p.Retry)
	w.object("routing_requirements", func() { w.list("required_capabilities", p.Capabilities) })
	w.word("slots_while_waiting", p.SlotsWhileWaiting, d.SlotsWhileWaiting)
	w.stream("stream_policy", &p.Stream, &d.Stream)
	w.object("suspension_policy", func() {
		w.optional("default_timeout_ms", p.Suspension.DefaultTimeoutMS)
		w.word("timeout_behavior", p.Suspension.TimeoutBehavior, d.Suspension.TimeoutBehavior)
	})
	w.object("timeout_policy", func() {
		w.optional("attempt_timeout_ms", p.AttemptTimeoutMS)
		w.optional("execution_deadline_ms", p.ExecutionDeadlineMS)
	})
	return w.Done()
}

// policyWriter appends the members of a policy. Unless full is set, members that equal their default are omitted, and so are objects that would be
// empty.
type policyWriter struct {
	*base.JSONObject
	full bool
}

func (w *policyWriter) integer(name string, value, byDefault int64) {
	if w.full || value != byDefault {
		w.Num(name, value)
	}
}

func (w *policyWriter) number(name string, value, byDefault float64) {
	if w.full || value != byDefault {
		w.Name(name)
		w.Text = strconv.AppendFloat(w.Text, value, 'g', -1, 64)
	}
}

func (w *policyWriter) word(name, value, byDefault string) {
	if w.full || value != byDefault {
		w.Str(name, value)
	}
}

// optional writes a value whose default is absent.
func (w *policyWriter) optional(name string, value int64) {
	if value != 0 {
		w.Num(name, value)
	}
}

func (w *policyWriter) list(name string, values []string) {
	if w.full || len(values) > 0 {
		w.Strs(name, values)
	}
}

// object writes an object with the output of members, and removes it again if it is empty.
func (w *policyWriter) object(name string, members func()) {
	before := len(w.Text)
	w.Open(name)
	begin := len(w.Text)
	members()
	if len(w.Text) == begin && !w.full {
		w.Text = w.Text[:before]
		return
	}
	w.Shut()
}

func (w *policyWriter) amounts(name string, amounts map[string]int64) {
	w.object(name, func() {
		for _, dimension := range slices.Sorted(maps.Keys(amounts)) {
			w.Num(dimension, amounts[dimension])
		}
	})
}

func (w *policyWriter) quotas(name string, uses []QuotaUse) {
	if !w.full && len(uses) == 0 {
		return
	}
	w.Name(name)
	w.Text = append(w.Text, '[')
	for i, use := range uses {
		if i > 0 {
			w.Text = append(w.Text, ',')
		}
		w.Text = append(w.Text, '{')
		w.StrIf("key", use.Key)
		w.Str("quota", use.Quota)
		w.Shut()
	}
	w.Text = append(w.Text, ']')
}

func (w *policyWriter) retention(name string, r RetentionByStatus) {
	w.object(name, func() {
		for _, part := range r.parts() {
			if *part.value != nil {
				w.Num(part.status, **part.value)
			}
		}
	})
}

func (w *policyWriter) stream(name string, s, d *stream.Policy) {
	w.object(name, func() {
		w.object("best_effort", func() {
			w.number("alpha", s.BestEffort.Alpha, d.BestEffort.Alpha)
			w.integer("ceiling", int64(s.BestEffort.Ceiling), int64(d.BestEffort.Ceiling))
			w.integer("floor", int64(s.BestEffort.Floor), int64(d.BestEffort.Floor))
			w.integer("ttl_ms", s.BestEffort.TTLMS, d.BestEffort.TTLMS)
		})
		w.integer("max_bytes", s.MaxBytes, d.MaxBytes)
		w.integer("max_frames", int64(s.MaxFrames), int64(d.MaxFrames))
		w.word("on_full", s.OnFull, d.OnFull)
	})
}

// retentionPart is one member of a RetentionByStatus under its word.
type retentionPart struct {
	status string
	value  **base.Millis
}

// parts lists the members in order of their words.
func (r *RetentionByStatus) parts() []retentionPart {
	return []retentionPart{
		{"cancelled", &r.Cancelled}, {"expired", &r.Expired}, {"failed", &r.Failed}, {"skipped", &r.Skipped}, {"succeeded", &r.Succeeded},
	}
}

// maxPolicyQuotas is the maximum number of quotas in a policy (L11).
const maxPolicyQuotas = 8

// WithQuotas returns p with these quotas in place of its own. Errors: invalid_policy if there are too many.
func (p *Policy) WithQuotas(quotas []QuotaUse) (*Policy, error) {
	if len(quotas) > maxPolicyQuotas {
		return nil, base.Errorf(base.CodeInvalidPolicy, "%d quotas with those that the namespace adds, at most %d", len(quotas), maxPolicyQuotas).WithField("quotas")
	}
	if len(quotas) == len(p.Quotas) {
		return p, nil
	}
	changed := *p
	changed.Quotas = quotas
	return &changed, nil
}
