package store

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
)

// reservation codes what admission has taken for the present grant or lease.
func (c *coder) reservation(v *core.Reservation) {
	list(c, &v.Holds, func(hold *core.BudgetHold) {
		c.uuid(&hold.Budget)
		c.amounts(&hold.Remaining)
	})
	list(c, &v.Rates, func(rate *core.RateAdmission) {
		c.text(&rate.Key)
		c.time(&rate.At)
	})
}

// scopeFlowWithin is the scope of a flow within another: its depth follows.
const scopeFlowWithin = "flow within"

// scopes are those of the budgets listed in an execution record. Indexes are stored: only append.
var scopes = [...]string{"", core.ScopeExecution, core.ScopeFlow, scopeFlowWithin}

func (c *coder) scopedBudgets(v *[]core.ScopedBudget) {
	list(c, v, func(budget *core.ScopedBudget) {
		c.uuid(&budget.ID)
		c.scope(budget)
		list(c, &budget.Ancestors, c.uuid)
	})
}

func (c *coder) scope(v *core.ScopedBudget) {
	scope := v.Scope
	if v.Depth > 0 {
		scope = scopeFlowWithin
	}
	c.frequent(&scope, scopes[:])
	if scope == scopeFlowWithin {
		scope = core.ScopeFlow
		c.int(&v.Depth)
	}
	v.Scope = scope
}

// dimensions lists those that take one byte. Indexes are stored: only append.
var dimensions = [...]string{"", core.InputTokens, core.OutputTokens, core.CostMicros, core.WallMS}

// amounts codes numbers by dimension, sorted, so that equal records have equal bytes; nil if there are none.
func (c *coder) amounts(v *map[string]int64) {
	n := c.length(len(*v))
	if c.reading {
		for i := 0; i < n && !c.bad; i++ {
			var dimension string
			var amount int64
			c.frequent(&dimension, dimensions[:])
			c.int64(&amount)
			if *v == nil {
				*v = make(map[string]int64, min(n, presized))
			}
			(*v)[dimension] = amount
		}
		return
	}
	var room [8]string
	keys := room[:0]
	for dimension := range *v {
		keys = append(keys, dimension)
	}
	slices.Sort(keys)
	for _, dimension := range keys {
		amount := (*v)[dimension]
		c.frequent(&dimension, dimensions[:])
		c.int64(&amount)
	}
}
