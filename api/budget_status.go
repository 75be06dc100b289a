package api

import (
	"encoding/json"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// BudgetStatus is a budget with its numbers, all of one moment.
type BudgetStatus struct {
	ID                string                     `json:"budget_id" doc:"Id of the budget."`
	Namespace         string                     `json:"namespace" doc:"Namespace that it belongs to."`
	Name              string                     `json:"name" doc:"Its name."`
	Scope             BudgetScope                `json:"scope" doc:"What it covers."`
	Parent            string                     `json:"parent,omitempty" doc:"Id of the budget above it."`
	Dimensions        map[string]BudgetDimension `json:"dimensions" doc:"Limits and numbers by dimension."`
	Reset             BudgetReset                `json:"reset" doc:"When it begins anew."`
	OnHard            HardAction                 `json:"on_hard" doc:"What a breach of a hard limit does."`
	OnLeaseLoss       LossAction                 `json:"on_lease_loss" doc:"What becomes of what a lost lease has reserved."`
	Approval          BudgetApproval             `json:"approval" doc:"How suspend_for_approval asks."`
	State             string                     `json:"state" enum:"active,closed" doc:"A closed one admits nobody."`
	Revision          int64                      `json:"revision" doc:"Counts the changes of the definition."`
	Exhausted         []string                   `json:"exhausted" doc:"Dimensions that admit nobody."` // by name
	Epoch             int64                      `json:"epoch" doc:"Counts the resets."`
	EpochStartedAt    time.Time                  `json:"epoch_started_at,omitzero" doc:"When the present epoch began."`
	NextResetAt       time.Time                  `json:"next_reset_at,omitzero" doc:"When the next one begins."` // zero: none
	Breaches          int64                      `json:"breach_count" doc:"Breaches of hard limits, in all epochs."`
	SoftBreaches      int64                      `json:"soft_breach_count" doc:"Times that a soft limit was passed, in all epochs."`
	LastBreach        *BudgetBreach              `json:"last_breach,omitempty" doc:"The last breach of a hard limit in this epoch."` // nil: none
	LiveHolds         int64                      `json:"live_holds" doc:"Leases and grants that are charged to it."`
	Holders           []BudgetHolder             `json:"holders,omitempty" doc:"The first ten of them."`
	BlockedExecutions int                        `json:"blocked_executions" doc:"Executions that wait for room in it."`
	CreatedAt         time.Time                  `json:"created_at,omitzero" doc:"When it was made."`
	UpdatedAt         time.Time                  `json:"updated_at,omitzero" doc:"When its definition changed."`
}

// BudgetDimension is a dimension with its limits and its numbers.
type BudgetDimension struct {
	Hard           int64 `json:"hard,omitempty" minimum:"1" maximum:"9007199254740991" doc:"Never passed; at least 1. No limit if absent."`             // 0: no limit
	Soft           int64 `json:"soft,omitempty" minimum:"1" maximum:"9007199254740991" doc:"Told of when it is passed; at least 1."`                    // 0: none
	DefaultReserve int64 `json:"default_reserve,omitempty" minimum:"0" maximum:"9007199254740991" doc:"Reserved for executions that give no estimate."` // 0: nothing
	EffectiveHard  int64 `json:"effective_hard,omitempty" doc:"The hard limit with what approvals have added until the next reset."`                    // 0: no limit
	Used           int64 `json:"used" doc:"Used in this epoch."`
	Reserved       int64 `json:"reserved" doc:"Reserved for leases and grants that are out."`
	// Overrun was spent before it was reported.
	Overrun   int64  `json:"overrun" doc:"Used beyond the hard limit."`
	Available *int64 `json:"available,omitempty" doc:"What is left of the effective limit."` // nil: there is no limit
}

// BudgetBreach is a hard limit that was reached.
type BudgetBreach struct {
	At          time.Time `json:"at,omitzero" doc:"When."`
	Dimension   string    `json:"dimension" doc:"Of what."`
	ExecutionID ID        `json:"execution_id,omitempty" doc:"By whom; absent: by a charge."`
}

// BudgetHolder is a lease or grant that is charged to a budget.
type BudgetHolder struct {
	ExecutionID ID        `json:"execution_id" doc:"Whose it is."`
	LeaseEpoch  int64     `json:"lease_epoch" doc:"Its epoch; of a grant that which its claim will have."`
	Since       time.Time `json:"since,omitzero" doc:"Since when."`
}

// The outcomes of making a budget.
const (
	BudgetCreated = "created"
	BudgetExists  = "already_exists" // there was one with this definition
)

// CreatedBudget is a budget, and whether this call made it.
type CreatedBudget struct {
	Outcome string `json:"outcome" enum:"created,already_exists" doc:"Whether this call made it."` // BudgetCreated or BudgetExists
	BudgetStatus
}

// BudgetEpoch is an epoch of a budget that is over.
type BudgetEpoch struct {
	Epoch        int64               `json:"epoch" doc:"Its number."`
	StartedAt    time.Time           `json:"started_at,omitzero" doc:"When it began."`
	EndedAt      time.Time           `json:"ended_at,omitzero" doc:"When it ended."`
	Dimensions   map[string]EpochUse `json:"dimensions" doc:"What was used, by dimension."`
	Breaches     int64               `json:"breach_count" doc:"Breaches of hard limits in it."`
	SoftBreaches int64               `json:"soft_breach_count" doc:"Times that a soft limit was passed in it."`
}

// EpochUse is what an epoch has used of a dimension.
type EpochUse struct {
	Used    int64 `json:"used" doc:"Within the limit."`
	Overrun int64 `json:"overrun" doc:"Beyond it."`
}

// BudgetSpend is what an execution has used of a budget in an epoch.
type BudgetSpend struct {
	Epoch       int64            `json:"epoch" doc:"The epoch."`
	ExecutionID ID               `json:"execution_id" doc:"The execution."`
	Used        map[string]int64 `json:"used" doc:"What it used, by dimension."`
	Total       int64            `json:"total" doc:"The sum of that: what the list is ordered by."`
}

// ReleasedSpend is what was given back of what an execution had used.
type ReleasedSpend struct {
	Released map[string]int64 `json:"released" doc:"By dimension; empty: there was nothing."`
}

// ApplicableBudgets are the budgets that decide whether an execution may start.
type ApplicableBudgets struct {
	Budgets  []*BudgetStatus `json:"budgets" doc:"The budgets: explicit ones first, then from the innermost to the outermost."`
	Admitted bool            `json:"admitted" doc:"They would let it start now."`
	Refusal  *BudgetRefusal  `json:"refusal,omitempty" doc:"Why not."` // nil: it is admitted
}

// BudgetRefusal says which budget has no room.
type BudgetRefusal struct {
	BlockedOn string          `json:"blocked_on" doc:"budget:<id>."`
	Detail    json.RawMessage `json:"blocking_detail,omitempty" doc:"dimension, need, available and next_reset_at."`
}

// ExecutionBudget is a budget that an execution is charged to.
type ExecutionBudget struct {
	ID       string           `json:"budget_id" doc:"Id of the budget."`
	Reserved map[string]int64 `json:"reserved,omitempty" doc:"What its lease or grant still has of it, by dimension."`
}

// MarshalJSON writes the budget as the HTTP API shows it.
func (b BudgetStatus) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&b) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (b *BudgetStatus) UnmarshalJSON(text []byte) error { return readAnswer(text, b) }

// MarshalJSON writes the budget as the HTTP API shows it.
func (c CreatedBudget) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&c) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (c *CreatedBudget) UnmarshalJSON(text []byte) error { return readAnswer(text, c) }

// MarshalJSON writes the breach as the HTTP API shows it.
func (b BudgetBreach) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&b) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (b *BudgetBreach) UnmarshalJSON(text []byte) error { return readAnswer(text, b) }

// MarshalJSON writes the holder as the HTTP API shows it.
func (h BudgetHolder) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&h) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (h *BudgetHolder) UnmarshalJSON(text []byte) error { return readAnswer(text, h) }

// MarshalJSON writes the epoch as the HTTP API shows it.
func (e BudgetEpoch) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&e) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (e *BudgetEpoch) UnmarshalJSON(text []byte) error { return readAnswer(text, e) }
