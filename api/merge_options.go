package api

import "maps"

// Merged returns the options with those of more: what more sets replaces what o has, tags and the fields of the policy one by one. What
// more leaves at its zero value stays. It is for packages of this module.
func (o SubmitOptions) Merged(more SubmitOptions) SubmitOptions {
	replace(&o.ID, more.ID)
	replace(&o.Lane, more.Lane)
	replace(&o.Priority, more.Priority)
	if more.Delay != 0 || !more.StartAt.IsZero() { // two ways to say the same
		o.Delay, o.StartAt = more.Delay, more.StartAt
	}
	replace(&o.Deadline, more.Deadline)
	replace(&o.IdempotencyKey, more.IdempotencyKey)
	if len(more.Tags) > 0 {
		tags := maps.Clone(o.Tags)
		if tags == nil {
			tags = map[string]string{}
		}
		maps.Copy(tags, more.Tags)
		o.Tags = tags
	}
	replace(&o.FairnessKey, more.FairnessKey)
	replaceList(&o.Requires, more.Requires)
	replaceList(&o.Quotas, more.Quotas)
	replaceList(&o.BudgetIDs, more.BudgetIDs)
	replaceList(&o.Budgets, more.Budgets)
	if more.Estimate != nil {
		o.Estimate = more.Estimate
	}
	o.Policy = o.Policy.merged(more.Policy)
	return o
}

func replace[T comparable](into *T, by T) {
	var zero T
	if by != zero {
		*into = by
	}
}

func replaceList[T any](into *[]T, by []T) {
	if by != nil {
		*into = by
	}
}

// merged returns the policy with what more sets. A policy that was read from JSON replaces the other as a whole: it may have fields that
// this version does not know.
func (p *Policy) merged(more *Policy) *Policy {
	switch {
	case more == nil:
		return p
	case p == nil || p.text != nil || more.text != nil:
		return more
	}
	all := *p
	if more.Retry != nil {
		all.Retry = more.Retry
	}
	replace(&all.AttemptTimeout, more.AttemptTimeout)
	replace(&all.Deadline, more.Deadline)
	replace(&all.LeaseGrace, more.LeaseGrace)
	replace(&all.MaxReclaims, more.MaxReclaims)
	replace(&all.MaxReplays, more.MaxReplays)
	replaceList(&all.Capabilities, more.Capabilities)
	replace(&all.FairnessKey, more.FairnessKey)
	replaceList(&all.Quotas, more.Quotas)
	replace(&all.SlotsWhileWaiting, more.SlotsWhileWaiting)
	replaceList(&all.BudgetIDs, more.BudgetIDs)
	if more.Estimate != nil {
		all.Estimate = more.Estimate
	}
	replaceList(&all.Budgets, more.Budgets)
	replace(&all.DedupWindow, more.DedupWindow)
	replace(&all.Retention, more.Retention)
	replace(&all.Suspension, more.Suspension)
	replace(&all.MaxSignals, more.MaxSignals)
	replace(&all.Stream, more.Stream)
	return &all
}
