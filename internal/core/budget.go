package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// Budget is the record of a budget: its definition and its numbers (section 1 of budgets.md).
type Budget struct {
	ID           base.UUID                   `json:"id"`
	Namespace    string                      `json:"namespace"`
	Name         string                      `json:"name"`
	Scope        BudgetScope                 `json:"scope"`
	Depth        int                         `json:"depth,omitempty"` // of the flow in its scope; 0: an outermost flow, or no flow
	Parent       base.UUID                   `json:"parent,omitzero"`
	Ancestors    []base.UUID                 `json:"ancestors,omitempty"` // nearest first, fixed at creation
	Dimensions   map[string]*BudgetDimension `json:"dimensions"`
	Reset        BudgetReset                 `json:"reset,omitzero"`
	OnHard       string                      `json:"on_hard"`
	OnLeaseLoss  string                      `json:"on_lease_loss"`
	Approval     BudgetApproval              `json:"approval,omitzero"`
	Closed       bool                        `json:"closed,omitempty"`
	Revision     int64                       `json:"revision"`
	Epoch        int64                       `json:"epoch"`
	EpochStarted base.Time                   `json:"epoch_started_at"`
	NextResetAt  base.Time                   `json:"next_reset_at,omitzero"`
	Breaches     int64                       `json:"breach_count,omitempty"`
	SoftBreaches int64                       `json:"soft_breach_count,omitempty"`
	EpochHard    int64                       `json:"epoch_breaches,omitempty"` // the part of the two counts that belongs to this epoch
	EpochSoft    int64                       `json:"epoch_soft_breaches,omitempty"`
	LastBreach   *BudgetBreach               `json:"last_breach,omitempty"`
	LiveHolds    int64                       `json:"live_holds,omitempty"` // leases and grants charged to it
	Removed      map[string]int              `json:"removed,omitempty"`    // how often dimensions were removed in this epoch: a dimension that is added again has its own ledger
	CreatedAt    base.Time                   `json:"created_at"`
	UpdatedAt    base.Time                   `json:"updated_at"`
}

// BudgetDimension is one dimension: its limits as defined, nil when absent, and its amounts.
type BudgetDimension struct {
	Hard           *int64 `json:"hard,omitempty"`
	Soft           *int64 `json:"soft,omitempty"`
	DefaultReserve *int64 `json:"default_reserve,omitempty"`
	Used           int64  `json:"used,omitempty"`
	Reserved       int64  `json:"reserved,omitempty"`
	Overrun        int64  `json:"overrun,omitempty"`
	Raised         int64  `json:"raised,omitempty"`  // by approvals, until the next reset (B30)
	Carried        int64  `json:"carried,omitempty"` // of a raise that a reset ended: what live holds still need; it shrinks with them (B36)
}

// BudgetScope states what a budget covers (B6).
type BudgetScope struct {
	Type  string `json:"type"`            // namespace, lane, flow, execution, tag, none
	Value string `json:"value,omitempty"` // lane name, canonical id, or key=value
}

// The types of a scope.
const (
	ScopeNamespace = "namespace"
	ScopeLane      = "lane"
	ScopeFlow      = "flow"
	ScopeExecution = "execution"
	ScopeTag       = "tag"
	ScopeNone      = "none"
)

// BudgetReset states when a new epoch of a budget begins (B35). The zero value means never.
type BudgetReset struct {
	Type     string      `json:"type,omitempty"` // "", interval, calendar
	EveryMS  base.Millis `json:"every_ms,omitempty"`
	AnchorAt base.Time   `json:"anchor_at,omitzero"`
	Unit     string      `json:"unit,omitempty"` // hour, day, week, month
	Timezone string      `json:"timezone,omitempty"`
}

// BudgetApproval holds the settings of suspend_for_approval (B29).
type BudgetApproval struct {
	TimeoutMS       base.Millis      `json:"timeout_ms,omitempty"`
	TimeoutBehavior string           `json:"timeout_behavior,omitempty"`
	DefaultRaise    map[string]int64 `json:"default_raise,omitempty"`
}

// BudgetBreach is a hard breach.
type BudgetBreach struct {
	At          base.Time `json:"at"`
	Dimension   string    `json:"dimension"`
	ExecutionID base.ID   `json:"execution_id,omitzero"`
}

// The actions on a hard breach (B27), and the treatment of the rest of a hold when a lease is lost (B15).
const (
	OnHardBlockNew           = "block_new"
	OnHardFail               = "fail"
	OnHardSuspendForApproval = "suspend_for_approval"
	OnHardCancelRunning      = "cancel_running"

	OnLossRelease = "release"
	OnLossForfeit = "forfeit"
)

// The built-in dimensions (B1). WallMS is measured by the engine alone (B17).
const (
	InputTokens  = "input_tokens"
	OutputTokens = "output_tokens"
	CostMicros   = "cost_micros"
	WallMS       = "wall_ms"
)
