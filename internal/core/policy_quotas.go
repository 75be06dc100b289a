package core

// maxPolicyQuotas is how many quotas a policy may have (L11).
const maxPolicyQuotas = 8

// WithQuotas is p with these quotas in place of its own. Errors: invalid_policy when they are too many.
func (p *Policy) WithQuotas(quotas []QuotaUse) (*Policy, error) {
	if len(quotas) > maxPolicyQuotas {
		return nil, Errorf(CodeInvalidPolicy, "%d quotas with those that the namespace adds, at most %d", len(quotas), maxPolicyQuotas).WithField("quotas")
	}
	if len(quotas) == len(p.Quotas) {
		return p, nil
	}
	changed := *p
	changed.Quotas = quotas
	return &changed, nil
}
