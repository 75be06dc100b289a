package core

import "github.com/flowfabric/flowfabric/internal/core/base"

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
