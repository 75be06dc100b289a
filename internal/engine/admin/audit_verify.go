package admin

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// verifySeal checks whether a chain whose rows fit is the one that the engine wrote: by the seal of its head, which is nil when there is
// none, and by the list of chains. The list is read behind the head: what has a head is on it.
func (e *Admin) verifySeal(ctx context.Context, key keyring.AuditKey, check AuditCheck, head *core.AuditChain) (AuditCheck, error) {
	if head == nil && !key.IsZero() {
		check.Keyed = 1
	}
	if head != nil {
		check.Broken, check.Problem = JudgeHead(key, check.Namespace, head)
	}
	if check.Problem != "" || key.IsZero() { // without a key nothing more can be checked
		return check, nil
	}
	return e.verifyRolls(ctx, key, check, head != nil)
}

// JudgeHead returns what the head of a chain and its seal show about a foreign change; "": nothing. broken is the row that shows it, or 0.
func JudgeHead(key keyring.AuditKey, namespace string, head *core.AuditChain) (broken int64, problem string) {
	switch {
	case key.IsZero() && head.Seal != nil:
		return 0, "the chain has a seal, and the key of the audit log is gone"
	case key.IsZero() && head.Altered != 0:
		return head.Altered, "row was written after somebody else had altered the head of the chain"
	case key.IsZero():
		return 0, ""
	case !head.SealedUnder(key, namespace):
		return 0, "the chain was rewritten, shortened or replaced by somebody without the key of the audit log"
	case head.Altered == 1 && head.Keyed == 1:
		return 0, "the chain was removed, and begun anew"
	case head.Altered != 0:
		return head.Altered, "row was written after somebody without the key of the audit log had altered the chain"
	default:
		return 0, ""
	}
}

// verifyRolls checks whether a chain is there, and only if it is listed. With the chain of what belongs to no namespace all chains are
// looked for.
func (e *Admin) verifyRolls(ctx context.Context, key keyring.AuditKey, check AuditCheck, found bool) (AuditCheck, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: RollRefs()})
	if err != nil {
		return check, txn.PublicFault(err)
	}
	own := core.AuditRollOf(check.Namespace)
	var listed []string
	for no := range core.AuditRolls {
		if no != own && check.Namespace != keyring.Everywhere {
			continue
		}
		names, fits := ListedIn(loaded, no, key)
		if !fits {
			check.Problem = "the list of chains was altered by somebody without the key of the audit log: a chain may have been removed"
			return check, nil
		}
		listed = append(listed, names...)
	}
	switch isListed := slices.Contains(listed, check.Namespace); {
	case found && !isListed:
		check.Problem = "the chain is not on the list of chains: the list was set back"
	case isListed && !found:
		check.Problem = "the chain was removed"
	case check.Namespace == keyring.Everywhere:
		return e.verifyAllThere(ctx, check, listed)
	}
	return check, nil
}

// ListedIn returns the chains of one list; fits reports whether it is as the engine left it.
func ListedIn(loaded *store.Loaded, no int, key keyring.AuditKey) (names []string, fits bool) {
	doc, found := loaded.Docs[rollRef(no)]
	if !found {
		return nil, false
	}
	roll, err := decodeRoll(&doc)
	return roll.Names, err == nil && roll.SealedUnder(key, no) && roll.AlteredAt == 0
}

// verifyAllThere looks for chains that are listed and have no head.
func (e *Admin) verifyAllThere(ctx context.Context, check AuditCheck, listed []string) (AuditCheck, error) {
	there, err := e.chainNames(ctx, txn.Caller{}, "")
	if err != nil {
		return check, err
	}
	slices.Sort(there)
	for _, name := range listed {
		if _, found := slices.BinarySearch(there, name); !found {
			check.Removed = append(check.Removed, name)
		}
	}
	if slices.Sort(check.Removed); len(check.Removed) > 0 {
		check.Problem = "chains of other namespaces were removed"
	}
	return check, nil
}
