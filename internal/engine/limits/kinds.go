package limits

import (
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The kinds of small records. Values are stored: never renumber them. The tests of the tree find a number that is given twice.
const (
	docAllowance   store.DocKind = 13 // key: name of a limit; what all processes have used of it
	DocBudget      store.DocKind = 21 // key: budget id; its definition and its numbers
	DocBudgetName  store.DocKind = 22 // key: namespace and name; which budget has it
	DocBudgetHold  store.DocKind = 23 // key: budget and execution; there while that lease or grant is charged to it
	DocLedger      store.DocKind = 24 // key: budget, epoch and execution; what that has used
	docEpoch       store.DocKind = 25 // key: budget and epoch; how a past one ended
	docUsageDedup  store.DocKind = 26 // owner: execution, or none for a charge; key: dedup key, of a charge behind its budget
	DocRate        store.DocKind = 27 // key: rate key; the admissions that may still count
	docBudgetChild store.DocKind = 28 // key: budget and another below it
	docBudgetGone  store.DocKind = 37 // key: id of a budget that was deleted; there until what it left is gone
)

// The kinds of rules: they are part of the dictionary. Values are stored: never renumber them.
const (
	docQuota       store.DocKind = store.FirstRule     // key: quota id
	docBudgetEntry store.DocKind = store.FirstRule + 1 // key: budget id; to which executions it applies, if that is not said by their records
	docRemoval     store.DocKind = store.FirstRule + 2 // key: reference to a quota or budget; exists while it is checked whether it may be removed
)

// The kinds of timers. Values are stored: never renumber them.
const (
	timerAllowances store.TimerKind = 10 // Texts: limits that may be out of use
	TimerRates      store.TimerKind = 12 // Texts: rate keys that have room again
	timerBudgets    store.TimerKind = 13 // Texts: budgets whose epoch ends
	timerUsageDedup store.TimerKind = 14 // Texts: keys of recorded charges
)

// The kinds of follow-up work. Names and timers are stored: never change them.
var (
	// a quota was removed: what it blocked continues (S47)
	taskFreeQuota = txn.TaskKind{Name: "free_quota", Timer: 36}
	// a budget was breached: leases charged to it end (B27)
	taskCancelHolders = txn.TaskKind{Name: "cancel_holders", Timer: 37}
	// a budget was deleted: what it blocked continues (B33)
	taskFreeBudget = txn.TaskKind{Name: "free_budget", Timer: 38}
	// a budget below this one was deleted: what this one no longer applies to continues (B33)
	taskFreeUnreached = txn.TaskKind{Name: "free_unreached", Timer: 39}
	// a past epoch of a budget is to be removed
	taskDropEpoch = txn.TaskKind{Name: "drop_epoch", Timer: 40, Later: true}
	// what a deleted budget left is to be removed (B5)
	taskDropBudget = txn.TaskKind{Name: "drop_budget", Timer: 41, Later: true}
	// the execution that a budget is for was removed
	TaskLeaveBudget = txn.TaskKind{Name: "leave_budget", Timer: 42, Later: true}
	// a process may have ended while it checked whether a quota or budget may be removed (S38, B5)
	taskUnmark = txn.TaskKind{Name: "unmark_rule", Timer: 43, Later: true}
	// a budget applies to the members of a flow, or was deleted and no longer does (B6)
	TaskSpreadBudget = txn.TaskKind{Name: "spread_budget", Timer: 50}
)
