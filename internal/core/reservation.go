package core

// Reservation is what admission has taken for the present grant or lease, beside the slots in Holds. It lasts as long as that (B14).
type Reservation struct {
	Holds []BudgetHold    `json:"holds,omitempty"` // in the order of B8: the set is fixed for the lease (B7)
	Rates []RateAdmission `json:"rates,omitempty"` // while granted: to be given back if the grant is not used (S40)
}

// BudgetHold is what one budget has reserved for the lease (B10).
type BudgetHold struct {
	Budget UUID `json:"budget"`
	// Remaining is by dimension what is left of the amount reserved; dimensions without any are absent.
	Remaining map[string]int64 `json:"remaining,omitempty"`
}

// RateAdmission is one admission of a rate key.
type RateAdmission struct {
	Key string `json:"key"`
	At  Time   `json:"at"`
}
