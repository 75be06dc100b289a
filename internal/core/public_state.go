package core

import "slices"

// StateCondition is a set of (status, reason, next): this status, one of these reasons, one of these nexts; nil means any.
type StateCondition struct {
	Status  Status
	Reasons []Reason
	Nexts   []Next
}

func (c *StateCondition) holds(status Status, reason Reason, next Next) bool {
	return c.Status == status && (c.Reasons == nil || slices.Contains(c.Reasons, reason)) && (c.Nexts == nil || slices.Contains(c.Nexts, next))
}

// publicStateRow is a row of the table of L20.
type publicStateRow struct {
	public string
	StateCondition
}

var (
	resuming    = []Next{NextResume}
	notResuming = []Next{NextNone, NextInitial, NextRetry, NextReclaim, NextReplay}
)

// publicStateTable is the table of L20. Its rows are disjoint and cover every status and reason of L13.
var publicStateTable = []publicStateRow{
	{"waiting", StateCondition{Ready, nil, notResuming}},
	{"waiting", StateCondition{Granted, nil, notResuming}},
	{"waiting", StateCondition{Blocked, []Reason{PausedByOperator}, nil}},
	{"resumable", StateCondition{Ready, nil, resuming}},
	{"resumable", StateCondition{Granted, nil, resuming}},
	{"delayed", StateCondition{Delayed, nil, nil}},
	{"waiting_children", StateCondition{Blocked, []Reason{WaitingForChildren, WaitingForSubflow}, nil}},
	{"rate_limited", StateCondition{Blocked, []Reason{WaitingForBudget, WaitingForQuota}, nil}},
	{"active", StateCondition{Running, nil, nil}},
	{"suspended", StateCondition{Suspended, nil, nil}},
	{"completed", StateCondition{Succeeded, nil, nil}},
	{"failed", StateCondition{Failed, nil, nil}},
	{"cancelled", StateCondition{Cancelled, nil, nil}},
	{"expired", StateCondition{Expired, nil, nil}},
	{"skipped", StateCondition{Skipped, nil, nil}},
}

// PublicStates lists the words of L20, each once, in the order of the table.
func PublicStates() []string {
	var words []string
	for _, row := range publicStateTable {
		if !slices.Contains(words, row.public) {
			words = append(words, row.public)
		}
	}
	return words
}

// publicState returns the public state (L20); "" for a combination that L13 does not allow.
func publicState(status Status, reason Reason, next Next) string {
	for i := range publicStateTable {
		if row := &publicStateTable[i]; row.holds(status, reason, next) {
			return row.public
		}
	}
	return ""
}

// States translates what f requires of status, public state, reason and next into conditions of which one must hold (L132): exactly the rows that
// Matches accepts. bounded is false if f does not restrict them; if bounded is true and there is no condition, nothing matches. The filter must be
// valid.
func (f *Filter) States() (conditions []StateCondition, bounded bool) {
	if len(f.Status)+len(f.PublicState)+len(f.Reason)+len(f.Next) == 0 {
		return nil, false
	}
	for _, row := range publicStateTable {
		if !among(f.Status, row.Status.String()) || !among(f.PublicState, row.public) {
			continue
		}
		c := row.StateCondition
		if len(f.Reason) > 0 {
			c.Reasons = keep(c.Reasons, ReasonsOf(c.Status), f.Reason)
		}
		if len(f.Next) > 0 {
			c.Nexts = keep(c.Nexts, allNexts(), f.Next)
		}
		impossible := c.Reasons != nil && len(c.Reasons) == 0 || c.Nexts != nil && len(c.Nexts) == 0
		if !impossible {
			conditions = append(conditions, c)
		}
	}
	return conditions, true
}

func allNexts() []Next { return append(slices.Clone(notResuming), resuming...) }

// keep returns those of the values (nil: of all) whose word is requested; never nil.
func keep[T interface {
	comparable
	String() string
}](values, all []T, words []string) []T {
	if values == nil {
		values = all
	}
	kept := []T{}
	for _, value := range values {
		if slices.Contains(words, value.String()) {
			kept = append(kept, value)
		}
	}
	return kept
}
