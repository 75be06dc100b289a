package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// Reservation is what admission has taken for the present grant or lease, apart from the slots in Holds. It ends with the grant or lease (B14).
type Reservation struct {
	Holds []BudgetHold    `json:"holds,omitempty"` // in the order of B8: the set is fixed for the lease (B7)
	Rates []RateAdmission `json:"rates,omitempty"` // while granted: returned if the grant is not used (S40)
}

// BudgetHold is the amount that one budget has reserved for the lease (B10).
type BudgetHold struct {
	Budget base.UUID `json:"budget"`
	// Remaining is what is left of the reserved amount, by dimension; dimensions without any are absent.
	Remaining map[string]int64 `json:"remaining,omitempty"`
}

// RateAdmission is one admission of a rate key.
type RateAdmission struct {
	Key string    `json:"key"`
	At  base.Time `json:"at"`
}
