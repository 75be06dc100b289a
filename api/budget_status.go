package api

import (
	"encoding/json"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// BudgetStatus is a budget with its usage at one point in time.
type BudgetStatus struct {
	ID                string                     `json:"budget_id" doc:"Id of the budget."`
	Namespace         string                     `json:"namespace" doc:"Namespace of the budget."`
	Name              string                     `json:"name" doc:"Its name."`
	Scope             BudgetScope                `json:"scope" doc:"What it covers."`
	Parent            string                     `json:"parent,omitempty" doc:"Id of the parent budget."`
	Dimensions        map[string]BudgetDimension `json:"dimensions" doc:"Limits and usage by dimension."`
	Reset             BudgetReset                `json:"reset" doc:"When it resets."`
	OnHard            HardAction                 `json:"on_hard" doc:"What a breach of a hard limit does."`
	OnLeaseLoss       LossAction                 `json:"on_lease_loss" doc:"What happens to the reservation of a lost lease."`
	Approval          BudgetApproval             `json:"approval" doc:"How suspend_for_approval asks."`
	State             string                     `json:"state" enum:"active,closed" doc:"A closed budget admits no new work."`
	Revision          int64                      `json:"revision" doc:"Counts the changes of the definition."`
	Exhausted         []string                   `json:"exhausted" doc:"Dimensions that have no capacity left."` // by name
	Epoch             int64                      `json:"epoch" doc:"Counts the resets."`
	EpochStartedAt    time.Time                  `json:"epoch_started_at,omitzero" doc:"When the current epoch began."`
	NextResetAt       time.Time                  `json:"next_reset_at,omitzero" doc:"When the next epoch begins."` // zero: none
	Breaches          int64                      `json:"breach_count" doc:"Breaches of hard limits, in all epochs."`
	SoftBreaches      int64                      `json:"soft_breach_count" doc:"How often a soft limit was exceeded, in all epochs."`
	LastBreach        *BudgetBreach              `json:"last_breach,omitempty" doc:"The last breach of a hard limit in this epoch."` // nil: none
	LiveHolds         int64                      `json:"live_holds" doc:"Leases and grants that hold a reservation."`
	Holders           []BudgetHolder             `json:"holders,omitempty" doc:"The first ten of these."`
	BlockedExecutions int                        `json:"blocked_executions" doc:"Executions that wait for capacity."`
	CreatedAt         time.Time                  `json:"created_at,omitzero" doc:"When it was created."`
	UpdatedAt         time.Time                  `json:"updated_at,omitzero" doc:"When its definition changed."`
}

// BudgetDimension is a dimension with its limits and its usage.
type BudgetDimension struct {
	Hard           int64 `json:"hard,omitempty" minimum:"1" maximum:"9007199254740991" doc:"Hard limit, at least 1; no limit if absent."`             // 0: no limit
	Soft           int64 `json:"soft,omitempty" minimum:"1" maximum:"9007199254740991" doc:"Soft limit, at least 1; exceeding it is reported."`       // 0: none
	DefaultReserve int64 `json:"default_reserve,omitempty" minimum:"0" maximum:"9007199254740991" doc:"Reserved for executions without an estimate."` // 0: nothing
	EffectiveHard  int64 `json:"effective_hard,omitempty" doc:"The hard limit plus what approvals have added until the next reset."`                  // 0: no limit
	Used           int64 `json:"used" doc:"Used in this epoch."`
	Reserved       int64 `json:"reserved" doc:"Reserved by active leases and grants."`
	// Overrun was spent before it was reported.
	Overrun   int64  `json:"overrun" doc:"Used beyond the hard limit."`
	Available *int64 `json:"available,omitempty" doc:"Remaining amount of the effective limit."` // nil: there is no limit
}

// BudgetBreach is a hard limit that was reached.
type BudgetBreach struct {
	At          time.Time `json:"at,omitzero" doc:"When."`
	Dimension   string    `json:"dimension" doc:"The dimension."`
	ExecutionID ID        `json:"execution_id,omitempty" doc:"The execution; absent for a charge."`
}

// BudgetHolder is a lease or grant that holds a reservation.
type BudgetHolder struct {
	ExecutionID ID        `json:"execution_id" doc:"The execution."`
	LeaseEpoch  int64     `json:"lease_epoch" doc:"Epoch of the lease; for a grant, the epoch that its claim will have."`
	Since       time.Time `json:"since,omitzero" doc:"Since when."`
}

// Outcomes of creating a budget.
const (
	BudgetCreated = "created"
	BudgetExists  = "already_exists" // a budget with this definition existed
)

// CreatedBudget is a budget, and whether this call created it.
type CreatedBudget struct {
	Outcome string `json:"outcome" enum:"created,already_exists" doc:"Whether this call created it."` // BudgetCreated or BudgetExists
	BudgetStatus
}

// BudgetEpoch is a past epoch of a budget.
type BudgetEpoch struct {
	Epoch        int64               `json:"epoch" doc:"Its number."`
	StartedAt    time.Time           `json:"started_at,omitzero" doc:"When it began."`
	EndedAt      time.Time           `json:"ended_at,omitzero" doc:"When it ended."`
	Dimensions   map[string]EpochUse `json:"dimensions" doc:"Usage by dimension."`
	Breaches     int64               `json:"breach_count" doc:"Breaches of hard limits in it."`
	SoftBreaches int64               `json:"soft_breach_count" doc:"How often a soft limit was exceeded in it."`
}

// EpochUse is the usage of a dimension in an epoch.
type EpochUse struct {
	Used    int64 `json:"used" doc:"Within the limit."`
	Overrun int64 `json:"overrun" doc:"Beyond it."`
}

// BudgetSpend is what an execution has used of a budget in an epoch.
type BudgetSpend struct {
	Epoch       int64            `json:"epoch" doc:"The epoch."`
	ExecutionID ID               `json:"execution_id" doc:"The execution."`
	Used        map[string]int64 `json:"used" doc:"Usage by dimension."`
	Total       int64            `json:"total" doc:"Sum of the usage; lists are ordered by it."`
}

// ReleasedSpend is the usage that was refunded.
type ReleasedSpend struct {
	Released map[string]int64 `json:"released" doc:"By dimension; empty if there was nothing."`
}

// ApplicableBudgets are the budgets that decide whether an execution may start.
type ApplicableBudgets struct {
	Budgets  []*BudgetStatus `json:"budgets" doc:"Explicit budgets first, then from the innermost to the outermost."`
	Admitted bool            `json:"admitted" doc:"Whether they would admit it now."`
	Refusal  *BudgetRefusal  `json:"refusal,omitempty" doc:"Why not."` // nil: it is admitted
}

// BudgetRefusal is the budget that has no capacity.
type BudgetRefusal struct {
	BlockedOn string          `json:"blocked_on" doc:"budget:<id>."`
	Detail    json.RawMessage `json:"blocking_detail,omitempty" doc:"dimension, need, available and next_reset_at."`
}

// ExecutionBudget is a budget that an execution uses.
type ExecutionBudget struct {
	ID       string           `json:"budget_id" doc:"Id of the budget."`
	Reserved map[string]int64 `json:"reserved,omitempty" doc:"Remaining reservation of its lease or grant, by dimension."`
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
