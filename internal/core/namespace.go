package core

import (
	"slices"
	"strconv"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Namespace is a namespace with stored settings (U101). Other namespaces exist by being used, with default settings.
type Namespace struct {
	Name string `json:"namespace"`
	NamespaceSettings
	Revision  int64     `json:"revision"`
	CreatedAt base.Time `json:"created_at"`
}

// NamespaceSettings are all settings of a namespace; zero is the default.
type NamespaceSettings struct {
	Description        string `json:"description,omitempty"`
	MaxSubmitPerSecond int    `json:"max_submit_per_second,omitempty"` // over all servers, which enforce it; 0: no limit
	// MaxRequestsPerSecond bounds the requests of its keys over all servers, which enforce it; 0: each server applies its default.
	MaxRequestsPerSecond int `json:"max_requests_per_second,omitempty"`
	MaxPayloadBytes      int `json:"max_payload_bytes,omitempty"` // of an input; 0: the server's limit alone
	MaxLanes             int `json:"max_lanes,omitempty"`         // that its executions use; 0: DefaultMaxLanes once there are others
	MaxClasses           int `json:"max_classes,omitempty"`       // likewise of DefaultMaxClasses
	MaxReady             int `json:"max_ready,omitempty"`         // executions that wait for a worker; 0: likewise of DefaultMaxReady
	MaxPriority          int `json:"max_priority,omitempty"`      // a submit that asks for more gets this; 0: any
	// MaxReaders bounds the calls of its keys that wait for something to read, in each server; 0: each applies its default.
	MaxReaders int `json:"max_readers,omitempty"`
	// MaxAuditRowsPerMinute bounds the audit rows of callers that are not for all namespaces; 0: DefaultMaxAuditRows once there are others.
	MaxAuditRowsPerMinute int `json:"max_audit_rows_per_minute,omitempty"`
	// MaxWorkers bounds the worker instances that serve it; 0: DefaultMaxWorkers once there are others.
	MaxWorkers int `json:"max_workers,omitempty"`
	// DefaultQuotas are added to the policy of every submit that does not name them.
	DefaultQuotas []QuotaUse `json:"default_quotas,omitempty"`
}

func (s *NamespaceSettings) equal(o *NamespaceSettings) bool {
	return s.Description == o.Description && s.MaxSubmitPerSecond == o.MaxSubmitPerSecond &&
		s.MaxRequestsPerSecond == o.MaxRequestsPerSecond && s.MaxPayloadBytes == o.MaxPayloadBytes &&
		s.MaxLanes == o.MaxLanes && s.MaxClasses == o.MaxClasses && s.MaxReady == o.MaxReady && s.MaxPriority == o.MaxPriority &&
		s.MaxReaders == o.MaxReaders && s.MaxAuditRowsPerMinute == o.MaxAuditRowsPerMinute && s.MaxWorkers == o.MaxWorkers &&
		slices.Equal(s.DefaultQuotas, o.DefaultQuotas)
}

// Check refuses settings that are out of bounds: invalid_argument.
func (s *NamespaceSettings) Check() error {
	switch {
	case s.MaxPayloadBytes < 0 || s.MaxPayloadBytes > base.MaxPayloadSetting:
		return base.Invalid("max_payload_bytes", "must be in 0..%d", base.MaxPayloadSetting)
	case s.MaxReady < 0 || s.MaxReady > mostReady:
		return base.Invalid("max_ready", "must be in 0..%d", mostReady)
	default:
		if err := base.RefuseText("description", base.CheckText(s.Description, 0, 1024)); err != nil {
			return err
		}
		for _, limit := range []struct {
			field string
			n     int
		}{
			{"max_submit_per_second", s.MaxSubmitPerSecond},
			{"max_requests_per_second", s.MaxRequestsPerSecond},
			{"max_lanes", s.MaxLanes},
			{"max_classes", s.MaxClasses},
			{"max_readers", s.MaxReaders},
			{"max_audit_rows_per_minute", s.MaxAuditRowsPerMinute},
			{"max_workers", s.MaxWorkers},
		} {
			if err := base.CheckRange(limit.field, limit.n); err != nil {
				return err
			}
		}
		if s.MaxPriority < 0 || s.MaxPriority > base.MaxPriority {
			return base.Invalid("max_priority", "must be in 0..%d", base.MaxPriority)
		}
		return checkQuotaUses("default_quotas", s.DefaultQuotas)
	}
}

// checkQuotaUses requires at most as many as a policy may have, each once and well formed: invalid_argument.
func checkQuotaUses(field string, uses []QuotaUse) error {
	if len(uses) > maxPolicyQuotas {
		return base.Invalid(field, "%d quotas, at most %d", len(uses), maxPolicyQuotas)
	}
	for i, use := range uses {
		at := field + "[" + strconv.Itoa(i) + "]."
		if err := base.RefuseText(at+"quota", base.CheckNameText(use.Quota)); err != nil {
			return err
		}
		if use.Key != "" {
			if err := base.RefuseText(at+"key", base.CheckKeyText(use.Key)); err != nil {
				return err
			}
		}
		if slices.ContainsFunc(uses[:i], func(o QuotaUse) bool { return o.Quota == use.Quota }) {
			return base.Invalid(at+"quota", "%q is there twice", use.Quota)
		}
	}
	return nil
}

// PutNamespace sets all settings of a namespace; existing is nil if it has none yet. Equal settings change nothing.
func PutNamespace(now base.Time, existing *Namespace, name string, s NamespaceSettings) (n Namespace, changed bool) {
	if existing == nil {
		return Namespace{Name: name, NamespaceSettings: s, Revision: 1, CreatedAt: now}, true
	}
	n = *existing
	if n.NamespaceSettings.equal(&s) {
		return n, false
	}
	n.NamespaceSettings = s
	n.Revision++
	return n, true
}

// mostReady bounds max_ready.
const mostReady = 100_000_000

// The bounds of a namespace that sets none. They apply only while other namespaces have work too: the lanes and classes of one tenant cost the
// others memory and lookup time. A single tenant needs no bounds.
const (
	DefaultMaxLanes   = 10_000
	DefaultMaxClasses = 100_000
	DefaultMaxReady   = 1_000_000
	// DefaultMaxAuditRows is far more than people do in a minute, and little beside what a loop does.
	DefaultMaxAuditRows = 6_000
	DefaultMaxWorkers   = 10_000
)

// NamespaceUse is how many of the shared names the executions of a namespace use.
type NamespaceUse struct {
	Lanes, Classes int
	Others         bool // other namespaces use some too
}

// CheckNew refuses a class that is new to the namespace; newLane reports whether its lane is new too: namespace_limit_exceeded.
func (s NamespaceSettings) CheckNew(use NamespaceUse, newLane bool) error {
	lanes, classes := s.MaxLanes, s.MaxClasses
	if lanes == 0 && use.Others {
		lanes = DefaultMaxLanes
	}
	if classes == 0 && use.Others {
		classes = DefaultMaxClasses
	}
	switch {
	case newLane && lanes > 0 && use.Lanes >= lanes:
		return namespaceFull("max_lanes", "lanes", lanes, use.Lanes).WithField("lane")
	case classes > 0 && use.Classes >= classes:
		return namespaceFull("max_classes", "classes of work (lane, kind, capabilities, fairness key, quotas and budgets)", classes, use.Classes)
	default:
		return nil
	}
}

// WorkersLimit returns how many worker instances may serve the namespace; 0: any number. others reports whether other namespaces are in use too.
func (s NamespaceSettings) WorkersLimit(others bool) int {
	if s.MaxWorkers == 0 && others {
		return DefaultMaxWorkers
	}
	return s.MaxWorkers
}

// WorkersFull is the refusal of another worker instance: namespace_limit_exceeded.
func WorkersFull(limit, current int) error {
	return namespaceFull("max_workers", "worker instances", limit, current).WithField("worker_instance_id").
		WithHint("end worker processes that are not needed, or raise `max_workers` of the namespace")
}

// auditRows is how many rows of the audit log bounded callers may write in a minute; 0: any number.
func (s NamespaceSettings) auditRows(others bool) int {
	if s.MaxAuditRowsPerMinute == 0 && others {
		return DefaultMaxAuditRows
	}
	return s.MaxAuditRowsPerMinute
}

// CheckAudit refuses another row of the audit log in a minute that has rows already: rate_limited. others reports whether other namespaces
// are in use too.
func (s NamespaceSettings) CheckAudit(now base.Time, rows int, others bool) error {
	most := s.auditRows(others)
	if most == 0 || rows < most {
		return nil
	}
	return base.Errorf(base.CodeRateLimited, "the audit log of the namespace has %d rows of this minute, and may have %d", rows, most).
		With("setting", "max_audit_rows_per_minute").With("limit", most).With("in_use", rows).
		WithRetryAfter(base.Millis(minuteOf(now).Add(base.Minute) - now)).
		WithHint("change many things in bulk, or raise max_audit_rows_per_minute of the namespace")
}

// CheckRefused is CheckAudit for a row that tells of a refusal. These use at most half of the rows: a caller that is refused again and again must
// not keep operators from acting.
func (s NamespaceSettings) CheckRefused(now base.Time, rows, refused int, others bool) error {
	if most := s.auditRows(others); most > 0 && refused >= most/2 {
		return base.Errorf(base.CodeRateLimited, "the audit log of the namespace has %d rows of this minute about refusals, and may have %d", refused, most/2)
	}
	return s.CheckAudit(now, rows, others)
}

func namespaceFull(setting, what string, limit, current int) *base.Error {
	return base.Errorf(base.CodeNamespaceLimitExceeded, "the namespace has %d %s, and may have %d", current, what, limit).
		With("setting", setting).With("limit", limit).With("in_use", current).
		WithHint("use what is there already, or raise `%s` of the namespace", setting)
}

// ClampPriority reduces a priority to what the namespace allows: it is never refused (L6).
func (s NamespaceSettings) ClampPriority(priority int) int {
	if s.MaxPriority == 0 {
		return priority
	}
	return min(priority, s.MaxPriority)
}

// CheckReady refuses more executions than there is room for in addition to the waiting ones: rate_limited.
func (s NamespaceSettings) CheckReady(ready, more int) error {
	if s.MaxReady == 0 || more == 0 || ready+more <= s.MaxReady {
		return nil
	}
	err := base.Errorf(base.CodeRateLimited, "%d executions of the namespace wait for a worker, and %d may", ready, s.MaxReady).
		With("setting", "max_ready").With("limit", s.MaxReady).With("in_use", ready).WithRetryAfter(1000)
	if more > s.MaxReady {
		return err.WithHint("%d executions would wait at once: submit them in parts, or raise `max_ready` of the namespace", more)
	}
	return err
}

// CheckInput checks an input against the namespace's own limit: payload_too_large.
func (s NamespaceSettings) CheckInput(size int) error {
	if s.MaxPayloadBytes == 0 {
		return nil
	}
	return base.CheckSize("input", size, s.MaxPayloadBytes)
}
