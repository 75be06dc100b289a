package admin

import (
	"errors"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// Rows of the audit log are kept for months, and no route removes them: one tenant must not fill the store with them. Callers that are not for all
// namespaces write as many in a minute into a chain as its namespace may (U101). They are counted in the head of the chain, which is locked for each
// row anyway, so that all processes count together. Callers for all namespaces are neither counted nor refused: operators must be able to act while
// a tenant writes too much.

// fullChain refuses a command of a bounded caller whose row would be one too many. It does so before the command is decided: a refusal afterwards
// would have the batch tried again, and a caller that sends too much would slow down all others.
func fullChain(u *txn.Tx, cmd txn.Command) error {
	parts := txn.Known[chainPart](u, adminSlot)
	if parts == nil || len(parts.chains) == 0 {
		return nil
	}
	a, ok := cmd.(audited)
	if !ok || !a.By().Bounded {
		return nil
	}
	for _, namespace := range a.Chains(u) {
		chain := parts.chains[namespace]
		if chain == nil {
			continue
		}
		others := u.Engine.Dict.Now().Table.Others(namespace)
		space := Of(u).Spaces.last(namespace)
		rows, refusals := chain.RowsIn(u.Now)
		err := space.CheckAudit(u.Now, rows, others)
		if _, ok := cmd.(*refused); ok {
			err = space.CheckRefused(u.Now, rows, refusals, others)
		}
		if err != nil {
			return sharedHint(namespace, err)
		}
	}
	return nil
}

// sharedHint says for the chain of what all namespaces share, which has no settings, what helps there.
func sharedHint(namespace string, err error) error {
	var refusal *base.Error
	if namespace == keyring.Everywhere && errors.As(err, &refusal) {
		return refusal.WithHint("try again in a minute, or use a key for all namespaces")
	}
	return err
}
