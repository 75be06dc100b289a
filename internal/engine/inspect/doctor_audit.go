package inspect

import (
	"fmt"
	"strconv"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// chainsLooked is how many heads of audit chains the doctor looks at: their rows are for a verification.
const chainsLooked = 1000

// auditSeals checks whether the heads of audit chains and the lists of them are as the engine left them (U131).
func (x *examination) auditSeals() Check {
	key, err := x.e.AuditKey(x.ctx)
	switch code := base.CodeOf(err); {
	case code == base.CodeMasterKeyRequired || code == base.CodeMasterKeyMismatch:
		return Check{} // the check master_key reports it
	case err != nil:
		return unknown(err)
	}
	seen, problem, err := x.lookAtHeads(key)
	if err == nil && problem == "" && !key.IsZero() {
		problem, err = x.lookAtRolls(key, seen)
	}
	switch {
	case err != nil:
		return unknown(err)
	case problem != "":
		return failing("flowfabric audit verify tells more; compare with a backup from before", "%s", problem)
	case key.IsZero():
		return fine("audit chains have no seals without a master key")
	default:
		return fine("the seals of the audit chains fit, chains: %s", atMost(len(seen), chainsLooked))
	}
}

// atMost is a number up to which things were counted.
func atMost(n, most int) string {
	if n == most {
		return fmt.Sprintf("%d or more", n)
	}
	return strconv.Itoa(n)
}

// lookAtHeads judges the heads of chains for themselves. seen are the namespaces of those that there are.
func (x *examination) lookAtHeads(key keyring.AuditKey) (seen map[string]bool, problem string, err error) {
	loaded, err := x.e.Store.Read(x.ctx, store.Want{Scans: []store.Scan{{Kind: admin.DocAuditChain, Limit: chainsLooked}}})
	if err != nil {
		return nil, "", txn.PublicFault(err)
	}
	seen = map[string]bool{}
	for i := range loaded.Scanned[0] {
		doc := &loaded.Scanned[0][i]
		seen[doc.Key] = true
		head, err := admin.DecodeChain(doc)
		if err != nil {
			return seen, fmt.Sprintf("the head of the audit chain of %q cannot be read", doc.Key), nil
		}
		if broken, problem := admin.JudgeHead(key, doc.Key, &head); broken != 0 {
			return seen, fmt.Sprintf("audit chain of %q, row %d: %s", doc.Key, broken, problem), nil
		} else if problem != "" {
			return seen, fmt.Sprintf("audit chain of %q: %s", doc.Key, problem), nil
		}
	}
	return seen, "", nil
}

// lookAtRolls judges the lists of chains, which are read after the heads: what has a head is listed. What is listed and had none is looked for
// again, as its chain may have begun in between.
func (x *examination) lookAtRolls(key keyring.AuditKey, seen map[string]bool) (problem string, err error) {
	loaded, err := x.e.Store.Read(x.ctx, store.Want{Docs: admin.RollRefs()})
	if err != nil {
		return "", txn.PublicFault(err)
	}
	listed, without := map[string]bool{}, store.Want{}
	for no := range core.AuditRolls {
		names, fits := admin.ListedIn(loaded, no, key)
		if !fits {
			return "the list of audit chains was altered by somebody without the key of the audit log: a chain may have been removed", nil
		}
		for _, name := range names {
			if listed[name] = true; !seen[name] && len(without.Docs) < chainsLooked {
				without.Docs = append(without.Docs, admin.ChainRef(name))
			}
		}
	}
	for name := range seen {
		if !listed[name] {
			return fmt.Sprintf("audit chain of %q: it is not on the list of chains, which was set back", name), nil
		}
	}
	found, err := x.e.ReadIf(x.ctx, without)
	if err != nil {
		return "", txn.PublicFault(err)
	}
	for _, ref := range without.Docs {
		if _, there := found.Docs[ref]; !there {
			return fmt.Sprintf("audit chain of %q: it was removed", ref.Key), nil
		}
	}
	return "", nil
}
