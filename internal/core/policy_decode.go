package core

import (
	"bytes"
	"encoding/json"
	"math"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/stream"
)

// MaxPolicySize is the longest policy text, in bytes (L6).
const MaxPolicySize = 64 << 10

// maxAmount is the largest amount of a budget dimension (B1).
const maxAmount = 1<<53 - 1

// ParsePolicy reads a caller's policy (L11). The whole text is checked: an unknown field at any depth, a duplicate key, a wrong type or a value out
// of range is invalid_policy with the path in Field; bad capabilities are invalid_capabilities; a text over MaxPolicySize is invalid_argument. An
// empty text is the default policy.
func ParsePolicy(text []byte) (*Policy, error) {
	if len(text) == 0 {
		return defaultPolicy, nil
	}
	if len(text) > MaxPolicySize {
		return nil, base.Invalid("policy", "the policy has %d bytes, at most %d are allowed", len(text), MaxPolicySize)
	}
	return readPolicy(text)
}

// DecodePolicy reads the output of Encode; nil is the default policy. Anything else is corruption.
func DecodePolicy(text []byte) (*Policy, error) {
	switch {
	case len(text) == 0:
		return defaultPolicy, nil
	case bytes.Equal(text, defaultRetriedText):
		return defaultRetried, nil
	}
	p, err := readPolicy(text)
	if err != nil {
		return nil, base.Errorf(base.CodeCorruption, "a stored policy cannot be read: %w", err).WithField("policy")
	}
	return p, nil
}

func readPolicy(text []byte) (*Policy, error) {
	if !utf8.Valid(text) || !json.Valid(text) {
		return nil, base.Errorf(base.CodeInvalidPolicy, "the policy is not valid JSON").WithField("policy")
	}
	p := newPolicy()
	r := policyReader{base.ValueReader{Text: text}}
	if err := r.policy(p); err != nil {
		return nil, err
	}
	// Capabilities come last (L80): any other fault of the policy is reported first.
	required, err := ParseCapabilities(SideRequired, p.Capabilities)
	if err != nil {
		return nil, err
	}
	p.Capabilities = required
	return p, nil
}

// policyReader reads a policy.
type policyReader struct{ base.ValueReader }

func (r *policyReader) unknown() error { return r.Refuse("is not a field of the policy") }

func (r *policyReader) policy(p *Policy) error {
	return r.Object(func(key string) error {
		switch key {
		case "retry_policy":
			return r.retry(&p.Retry)
		case "timeout_policy":
			return r.timeouts(p)
		case "lease_grace_ms":
			return r.Integer(&p.LeaseGraceMS, 0, 10*base.Minute)
		case "max_reclaim_count":
			return r.Count(&p.MaxReclaims, 0, 10_000)
		case "max_replay_count":
			return r.Count(&p.MaxReplays, 0, 1000)
		case "routing_requirements":
			return r.routing(p)
		case "fairness_key":
			return r.Checked(&p.FairnessKey, base.CheckKeyText)
		case "quotas":
			return r.quotas(&p.Quotas)
		case "slots_while_waiting":
			return r.Word(&p.SlotsWhileWaiting, SlotsRelease, SlotsHold)
		case "budget_ids":
			return r.Texts(&p.BudgetIDs, 16, base.CheckKeyText)
		case "budgets":
			return r.budgets(&p.Budgets)
		case "dedup_window_ms":
			return r.Integer(&p.DedupWindowMS, base.Second, 90*base.Day)
		case "retention_ms":
			return r.retention(&p.Retention)
		case "estimate":
			return r.estimate(&p.Estimate)
		case "suspension_policy":
			return r.suspension(&p.Suspension)
		case "max_signals_per_execution":
			return r.Count(&p.MaxSignals, 1, 100_000)
		case "stream_policy":
			return r.stream(&p.Stream)
		default:
			return r.unknown()
		}
	})
}

func (r *policyReader) timeouts(p *Policy) error {
	return r.Object(func(key string) error {
		switch key {
		case "attempt_timeout_ms":
			return r.Integer(&p.AttemptTimeoutMS, 1, base.Year)
		case "execution_deadline_ms":
			return r.Integer(&p.ExecutionDeadlineMS, 1, 10*base.Year)
		default:
			return r.unknown()
		}
	})
}

// routing only collects the tokens: their grammar is checked after everything else.
func (r *policyReader) routing(p *Policy) error {
	return r.Object(func(key string) error {
		if key != "required_capabilities" {
			return r.unknown()
		}
		return r.Texts(&p.Capabilities, math.MaxInt, func(string) string { return "" })
	})
}

func (r *policyReader) quotas(into *[]QuotaUse) error {
	return r.Array(maxPolicyQuotas, func() error {
		var use QuotaUse
		err := r.Object(func(key string) error {
			switch key {
			case "quota":
				return r.Checked(&use.Quota, base.CheckNameText)
			case "key":
				return r.Checked(&use.Key, base.CheckKeyText)
			default:
				return r.unknown()
			}
		})
		if err != nil {
			return err
		}
		if use.Quota == "" {
			return r.RefuseMember("quota", "is required")
		}
		*into = append(*into, use)
		return nil
	})
}

func (r *policyReader) retention(into *RetentionByStatus) error {
	parts := into.parts()
	if r.Peek() != '{' {
		var all base.Millis
		if err := r.Integer(&all, -1, 10*base.Year); err != nil {
			return err
		}
		for _, part := range parts {
			*part.value = &all
		}
		return nil
	}
	return r.Object(func(key string) error {
		for _, part := range parts {
			if part.status == key {
				*part.value = new(base.Millis)
				return r.Integer(*part.value, -1, 10*base.Year)
			}
		}
		return r.unknown()
	})
}

func (r *policyReader) estimate(into *map[string]int64) error {
	amounts := map[string]int64{}
	err := r.Object(func(dimension string) error {
		if why := base.CheckDimensionText(dimension); why != "" {
			return r.Refuse("the dimension %s", why)
		}
		if len(amounts) == 32 {
			return r.Refuse("is one dimension too many: at most 32 are allowed")
		}
		var amount int64
		if err := r.Integer(&amount, 0, maxAmount); err != nil {
			return err
		}
		amounts[dimension] = amount
		return nil
	})
	if len(amounts) > 0 {
		*into = amounts
	}
	return err
}

func (r *policyReader) suspension(into *SuspensionPolicy) error {
	return r.Object(func(key string) error {
		switch key {
		case "default_timeout_ms":
			return r.Integer(&into.DefaultTimeoutMS, 1, base.Year)
		case "timeout_behavior":
			return r.Word(&into.TimeoutBehavior, "fail", "cancel", "expire", "auto_resume_with_timeout_signal", "escalate")
		default:
			return r.unknown()
		}
	})
}

func (r *policyReader) stream(into *stream.Policy) error {
	return r.Object(func(key string) error {
		switch key {
		case "max_frames":
			return r.Count(&into.MaxFrames, 1, 1_000_000)
		case "max_bytes":
			return r.Integer(&into.MaxBytes, 65_536, 1<<30)
		case "on_full":
			return r.Word(&into.OnFull, stream.DropOldest, stream.Refuse)
		case "best_effort":
			return r.bestEffort(&into.BestEffort)
		default:
			return r.unknown()
		}
	})
}

func (r *policyReader) bestEffort(into *stream.BestEffortPolicy) error {
	err := r.Object(func(key string) error {
		switch key {
		case "ttl_ms":
			return r.Integer(&into.TTLMS, base.Second, 10*base.Minute)
		case "floor":
			return r.Count(&into.Floor, 1, 16_384)
		case "ceiling":
			return r.Count(&into.Ceiling, 1, 65_536)
		case "alpha":
			return r.alpha(&into.Alpha)
		default:
			return r.unknown()
		}
	})
	if err == nil && into.Ceiling < into.Floor {
		return r.RefuseMember("ceiling", "must not be below floor")
	}
	return err
}

// alpha is the only open bound: with 0 no rate would ever be learned.
func (r *policyReader) alpha(into *float64) error {
	if err := r.Number(into, 0, 1); err != nil || *into > 0 {
		return err
	}
	return r.Refuse("must be above 0 and at most 1")
}
