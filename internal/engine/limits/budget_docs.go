package limits

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The record of a budget is the row that serializes everything that touches it (S47, B34). Its name, the holds charged to it, the ledger and the
// records of past epochs are written only under the lock of that row.

// HoldRef names the record of what an execution holds of a budget.
func HoldRef(budget, execution base.UUID) store.DocRef {
	return store.DocRef{Kind: DocBudgetHold, Key: BudgetPrefix(budget) + execution.String()}
}

func ledgerRef(budget base.UUID, epoch int64, execution base.UUID) store.DocRef {
	return store.DocRef{Kind: DocLedger, Key: ledgerPrefix(budget, epoch) + execution.String()}
}

func epochRef(budget base.UUID, epoch int64) store.DocRef {
	return store.DocRef{Kind: docEpoch, Key: BudgetPrefix(budget) + epochText(epoch)}
}

// usageDedupRef names the receipt of a report (B26).
func usageDedupRef(execution base.UUID, key string) store.DocRef {
	return store.DocRef{Kind: docUsageDedup, Owner: txn.Owner(execution), Key: key}
}

// chargeDedupRef names the receipt of a charge.
func chargeDedupRef(budget base.UUID, key string) store.DocRef {
	return store.DocRef{Kind: docUsageDedup, Key: BudgetPrefix(budget) + key}
}

// BudgetPrefix is the prefix of the keys of everything that is kept for a budget.
func BudgetPrefix(budget base.UUID) string { return budget.String() + "/" }

func ledgerPrefix(budget base.UUID, epoch int64) string {
	return BudgetPrefix(budget) + epochText(epoch) + "/"
}

// epochText is a number whose byte order is that of the epochs.
func epochText(epoch int64) string { return fmt.Sprintf("%016d", epoch) }

func budgetDoc(b *core.Budget) store.Doc {
	return store.Doc{DocRef: BudgetDocRef(b.ID), Body: b.Encode()}
}

// DecodeBudget reads the record of a budget. Codes: corruption.
func DecodeBudget(doc *store.Doc) (*core.Budget, error) {
	b, err := core.DecodeBudget(doc.Body)
	if err != nil {
		return nil, err
	}
	if b.ID.String() != doc.Key {
		return nil, base.Errorf(base.CodeCorruption, "the record of budget %s is that of %s", doc.Key, b.ID).With("record", "budget")
	}
	return b, nil
}

// childRef marks that a budget has another above it.
func childRef(parent, child base.UUID) store.DocRef {
	return store.DocRef{Kind: docBudgetChild, Key: BudgetPrefix(parent) + child.String()}
}

// budgetName names the budget that has a name: the body of docBudgetName. Neither ever changes.
type budgetName struct {
	ID        base.UUID   `json:"id"`
	Ancestors []base.UUID `json:"ancestors,omitempty"`
}

func budgetNameDoc(b *core.Budget) store.Doc {
	body, _ := json.Marshal(budgetName{b.ID, b.Ancestors})
	return store.Doc{DocRef: budgetNameRef(b.Namespace, b.Name), Body: body}
}

func decodeBudgetName(doc *store.Doc) (base.UUID, error) {
	var named budgetName
	if err := json.Unmarshal(doc.Body, &named); err != nil {
		return base.UUID{}, txn.Corrupt("name of a budget", err)
	}
	return named.ID, nil
}

// ruled reports whether the registry names the budget: the others are named by the records of executions.
func ruled(b *core.Budget) bool {
	return b.Scope.Type != core.ScopeExecution && b.Scope.Type != core.ScopeFlow
}

// ruleDoc is what the registry keeps of a budget.
func ruleDoc(b *core.Budget) store.Doc {
	body, _ := json.Marshal(b.Entry())
	return store.Doc{DocRef: budgetEntryRef(b.ID), Body: body}
}

// hold is the record of a lease or grant that is charged to a budget: the body of docBudgetHold.
type hold struct {
	ExecutionID base.ID   `json:"execution_id"`
	Epoch       int64     `json:"lease_epoch"`
	Since       base.Time `json:"since"`
}

func (h hold) doc(budget base.UUID) store.Doc {
	body, _ := json.Marshal(h)
	return store.Doc{DocRef: HoldRef(budget, h.ExecutionID.UUID), Body: body}
}

// DecodeHold reads such a record. Codes: corruption.
func DecodeHold(doc *store.Doc) (h hold, err error) {
	if err := json.Unmarshal(doc.Body, &h); err != nil {
		return h, txn.Corrupt("hold of a budget", err)
	}
	return h, nil
}

// ledgerRow is what an execution has used of a budget in an epoch: the body of DocLedger.
type ledgerRow struct {
	ExecutionID base.ID          `json:"execution_id"`
	Used        map[string]int64 `json:"used"`
}

func (r ledgerRow) doc(ref store.DocRef) store.Doc {
	body, _ := json.Marshal(r)
	return store.Doc{DocRef: ref, Body: body}
}

func decodeLedgerRow(doc *store.Doc) (r ledgerRow, err error) {
	if err := json.Unmarshal(doc.Body, &r); err != nil {
		return r, txn.Corrupt("ledger", err)
	}
	return r, nil
}

// splitBudgetKey splits the key of something that is kept for a budget. Codes: corruption.
func splitBudgetKey(key string) (budget base.UUID, rest string, err error) {
	first, rest, found := strings.Cut(key, "/")
	budget, ok := base.ParseUUID(first)
	if !found || !ok {
		return base.UUID{}, "", base.Errorf(base.CodeCorruption, "the key %q names no budget", key).With("record", "budget")
	}
	return budget, rest, nil
}

// splitLedgerKey returns the budget, epoch and execution of a ledger row. Codes: corruption.
func splitLedgerKey(key string) (budget base.UUID, epoch int64, execution base.UUID, err error) {
	budget, rest, err := splitBudgetKey(key)
	if err != nil {
		return budget, 0, execution, err
	}
	first, last, _ := strings.Cut(rest, "/")
	epoch, wrong := strconv.ParseInt(first, 10, 64)
	execution, ok := base.ParseUUID(last)
	if wrong != nil || !ok {
		return budget, 0, execution, base.Errorf(base.CodeCorruption, "the key %q names no row of a ledger", key).With("record", "ledger")
	}
	return budget, epoch, execution, nil
}
