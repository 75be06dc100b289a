package core

import (
	"slices"
	"strconv"
)

// Namespace is a namespace that somebody set up (U101). Others exist by being used, with default settings.
type Namespace struct {
	Name string `json:"namespace"`
	NamespaceSettings
	Revision  int64 `json:"revision"`
	CreatedAt Time  `json:"created_at"`
}

// NamespaceSettings are all settings of a namespace; zero is the default.
type NamespaceSettings struct {
	Description        string `json:"description,omitempty"`
	MaxSubmitPerSecond int    `json:"max_submit_per_second,omitempty"` // over all servers, which enforce it; 0: no limit
	MaxPayloadBytes    int    `json:"max_payload_bytes,omitempty"`     // of an input; 0: the server's limit alone
	// DefaultQuotas are added to the policy of every submit that does not name them.
	DefaultQuotas []QuotaUse `json:"default_quotas,omitempty"`
}

func (s *NamespaceSettings) equal(o *NamespaceSettings) bool {
	return s.Description == o.Description && s.MaxSubmitPerSecond == o.MaxSubmitPerSecond && s.MaxPayloadBytes == o.MaxPayloadBytes &&
		slices.Equal(s.DefaultQuotas, o.DefaultQuotas)
}

// Check refuses settings that are out of bounds: invalid_argument.
func (s *NamespaceSettings) Check() error {
	switch {
	case s.MaxPayloadBytes < 0 || s.MaxPayloadBytes > MaxPayloadSetting:
		return Invalid("max_payload_bytes", "must be in 0..%d", MaxPayloadSetting)
	default:
		if err := refuseText("description", checkText(s.Description, 0, 1024)); err != nil {
			return err
		}
		if err := checkRange("max_submit_per_second", s.MaxSubmitPerSecond); err != nil {
			return err
		}
		return checkQuotaUses("default_quotas", s.DefaultQuotas)
	}
}

// checkQuotaUses wants at most as many as a policy may have, each once and well formed: invalid_argument.
func checkQuotaUses(field string, uses []QuotaUse) error {
	if len(uses) > maxPolicyQuotas {
		return Invalid(field, "%d quotas, at most %d", len(uses), maxPolicyQuotas)
	}
	for i, use := range uses {
		at := field + "[" + strconv.Itoa(i) + "]."
		if err := refuseText(at+"quota", checkNameText(use.Quota)); err != nil {
			return err
		}
		if use.Key != "" {
			if err := refuseText(at+"key", checkKeyText(use.Key)); err != nil {
				return err
			}
		}
		if slices.ContainsFunc(uses[:i], func(o QuotaUse) bool { return o.Quota == use.Quota }) {
			return Invalid(at+"quota", "%q is there twice", use.Quota)
		}
	}
	return nil
}

// PutNamespace states all settings of a namespace, nil when it has none yet. The same settings again change nothing.
func PutNamespace(now Time, existing *Namespace, name string, s NamespaceSettings) (n Namespace, changed bool) {
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

// CheckInput holds an input to the namespace's own limit: payload_too_large.
func (s NamespaceSettings) CheckInput(size int) error {
	if s.MaxPayloadBytes == 0 {
		return nil
	}
	return checkSize("input", size, s.MaxPayloadBytes)
}
