package admin

import (
	"context"
	crand "crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Hashes alone do not stop someone with write access to the database from recomputing a whole chain. Therefore the head of each chain has a seal
// under the audit key, which the database holds only encrypted under the master key: a chain that was rewritten, or shortened at either end, has no
// valid seal. Lists of all chains, also sealed, show that a whole chain was removed. Without a master key there is no audit key and no seal.
//
// A head is sealed again with each change, after its old seal is checked. If that does not fit, the head is marked as altered for ever, and
// operators can continue to work.
//
// A list is locked only when a chain is new, after the heads (S73).

// auditKeys caches the audit key once it was opened: it never changes. The zero value is ready for use.
type auditKeys struct {
	known atomic.Pointer[keyring.AuditKey]
}

func (a *auditKeys) get() keyring.AuditKey {
	if key := a.known.Load(); key != nil {
		return *key
	}
	return keyring.AuditKey{}
}

// learnAuditKey opens the audit key of a key set. That there is none is not cached: another process may create it.
func (e *Admin) learnAuditKey(set *keyring.KeySet) (keyring.AuditKey, error) {
	key, err := set.AuditKey(e.Signing.MasterKey())
	if err == nil && !key.IsZero() {
		e.auditing.known.Store(&key)
	}
	return key, err
}

// AuditKey returns the key that the log is sealed with; zero if there is none.
func (e *Admin) AuditKey(ctx context.Context) (keyring.AuditKey, error) {
	if key := e.auditing.get(); !key.IsZero() {
		return key, nil
	}
	_, set, err := e.ReadKeySet(ctx)
	if err != nil {
		return keyring.AuditKey{}, err
	}
	return e.learnAuditKey(&set)
}

// auditKey returns the key that seals the heads of chains. If it is not cached it is read only if there may be one: if this process has a master
// key, if a head says so (sealed), or if a chain is new. Codes: master_key_required, master_key_mismatch.
func auditKey(ctx context.Context, u *txn.Tx, sealed bool) (keyring.AuditKey, error) {
	key := Of(u).auditing.get()
	if !key.IsZero() || !sealed && Of(u).Signing.MasterKey().IsZero() {
		return key, nil
	}
	if _, loaded := u.Docs[KeySetRef]; !loaded {
		if err := u.Load(ctx, store.Want{Docs: []store.DocRef{KeySetRef}}); err != nil {
			return key, err
		}
	}
	set, err := keyring.DecodeKeySet(keySetText(u.Doc(KeySetRef)))
	if err != nil {
		return key, err
	}
	return Of(u).learnAuditKey(&set)
}

// auditRoll is a list of chains inside a transaction.
type auditRoll struct {
	core.AuditRoll
	changed bool
}

func rollRef(no int) store.DocRef {
	return store.DocRef{Kind: docAuditRoll, Key: fmt.Sprintf("%02d", no)}
}

// RollRefs names the records of all rolls.
func RollRefs() []store.DocRef {
	refs := make([]store.DocRef, core.AuditRolls)
	for no := range refs {
		refs[no] = rollRef(no)
	}
	return refs
}

func decodeRoll(doc *store.Doc) (roll core.AuditRoll, err error) {
	if doc == nil {
		return roll, nil
	}
	if err := json.Unmarshal(doc.Body, &roll); err != nil {
		return roll, txn.Corrupt("list of audit chains", err)
	}
	return roll, nil
}

// trustChains checks whether the heads that the transaction has locked are as the engine left them, and locks the lists that new ones go into.
func trustChains(ctx context.Context, u *txn.Tx, refs []store.DocRef) error {
	if len(refs) == 0 {
		return nil
	}
	sealed := slices.ContainsFunc(refs, func(ref store.DocRef) bool {
		chain := partsOf(u).chains[ref.Key]
		return chain.created || chain.Seal != nil
	})
	key, err := auditKey(ctx, u, sealed)
	switch code := base.CodeOf(err); {
	case code == base.CodeMasterKeyRequired || code == base.CodeMasterKeyMismatch:
		for _, ref := range refs {
			partsOf(u).chains[ref.Key].closed = err
		}
		return nil
	case err != nil || key.IsZero():
		return err
	}
	want := store.Want{LockDocs: true}
	for _, ref := range refs {
		chain := partsOf(u).chains[ref.Key]
		chain.key = key
		switch {
		case chain.created:
			chain.Keyed = 1
			want.Docs = append(want.Docs, rollRef(core.AuditRollOf(ref.Key)))
		case !chain.SealedUnder(key, ref.Key):
			chain.altered = true
		}
	}
	return u.Load(ctx, want)
}

// closedChain returns why the audit rows of the commands cannot be written: this process lacks the master key. It returns nil if the commands left
// no rows, as repeats do.
func closedChain(u *txn.Tx) error {
	parts := txn.Known[chainPart](u, adminSlot)
	if parts == nil {
		return nil
	}
	for _, namespace := range slices.Sorted(maps.Keys(parts.chains)) {
		if chain := parts.chains[namespace]; chain.grown && chain.closed != nil {
			return chain.closed
		}
	}
	return nil
}

// needsRoll reports whether the chain of a namespace is new and goes into the list that is locked.
func needsRoll(u *txn.Tx, namespace string, lock store.Lock) bool {
	doc, known := u.Docs[ChainRef(namespace)]
	return known && doc == nil && rollRef(core.AuditRollOf(namespace)) == lock.Doc
}

// enroll puts a new chain on its list. One that exists already was removed since, and counts as altered.
func enroll(u *txn.Tx, namespace string, chain *auditChain) {
	if !chain.created {
		return
	}
	no := core.AuditRollOf(namespace)
	roll := roll(u, namespace, chain.key)
	if roll.Has(namespace) {
		onceSure(u, func() { u.Engine.QuietLog.Error("an audit chain was removed", "namespace", namespace) })
		chain.Altered = 1
		return
	}
	roll.Add(namespace)
	roll.changed = true
	roll.SealUnder(chain.key, no)
}

// onceSure logs a foreign change of the audit log after the transaction has committed. Before that it may be wrong: a chain that seemed new, and is
// on its list, may have been started by another process while the transaction waited for the list. In that case the commit fails with Conflict.
func onceSure(u *txn.Tx, log func()) { u.After = append(u.After, log) }

// roll returns the list for the chain of a namespace as the transaction has it. A list that is not as the engine left it is still used, and marked as
// altered.
func roll(u *txn.Tx, namespace string, key keyring.AuditKey) *auditRoll {
	no := core.AuditRollOf(namespace)
	if roll := partsOf(u).rolls[no]; roll != nil {
		return roll
	}
	stored, err := decodeRoll(u.Doc(rollRef(no)))
	roll := &auditRoll{AuditRoll: stored}
	if err != nil || !roll.SealedUnder(key, no) {
		onceSure(u, func() {
			u.Engine.QuietLog.Error("the list of audit chains was altered by somebody without its key", "namespace", namespace)
		})
		roll.AlteredAt = u.Now
	}
	txn.SetIn(&partsOf(u).rolls, no, roll)
	return roll
}

func writeRolls(u *txn.Tx) {
	for no, roll := range partsOf(u).rolls {
		if roll.changed {
			body, _ := json.Marshal(roll.AuditRoll)
			u.PutOrAdd(store.Doc{DocRef: rollRef(no), Body: body})
		}
	}
}

// startAudit creates the audit key when an engine starts with a master key for the first time, and puts all chains under it.
func (e *Admin) startAudit(ctx context.Context) error {
	if e.Cfg.MasterKey.IsZero() {
		return nil
	}
	for try := 0; ; try++ {
		key, err := e.AuditKey(ctx)
		if err != nil || !key.IsZero() {
			return err
		}
		switch err := e.makeAuditKey(txn.OwnWork(ctx)); {
		case err == nil:
			return nil
		case try == 8 || !slices.Contains([]store.FaultKind{store.Busy, store.Retry, store.Conflict, store.Stale}, store.FaultOf(err)):
			return txn.PublicFault(err)
		}
		e.Pause(try)
	}
}

// makeAuditKey creates the key, seals the head of every chain and writes the lists, in one transaction. The lock of the key set serializes it with
// other processes. A chain that a process without the master key starts at the same time is missed: verification finds it without a seal.
func (e *Admin) makeAuditKey(ctx context.Context) error {
	u, err := e.Begin(ctx, store.Want{LockDocs: true, Docs: []store.DocRef{KeySetRef}, Patient: true})
	if err != nil {
		return err
	}
	defer u.StoreTx.Rollback(ctx)
	set, err := keyring.DecodeKeySet(keySetText(u.Doc(KeySetRef)))
	if err != nil || !set.Audit.IsZero() {
		return err
	}
	if _, err := set.Open(e.Cfg.MasterKey); err != nil { // under a wrong master key no secret may join those of the right one
		return err
	}
	var random [32]byte
	crand.Read(random[:]) // never fails
	key := set.MakeAuditKey(e.sealing(), random)
	if err := sealChains(ctx, u, key); err != nil {
		return err
	}
	u.PutDoc(store.Doc{DocRef: KeySetRef, Body: set.Encode()})
	if err := u.Commit(ctx, []string{"make_audit_key"}); err != nil {
		return err
	}
	e.auditing.known.Store(&key)
	e.Cfg.Logger.Info("audit chains are sealed under a key from now on")
	return nil
}

// sealChains puts every chain under a new key, and creates the lists. Lists that exist already belong to a key that was lost: they count as
// altered, and so do chains with a seal.
func sealChains(ctx context.Context, u *txn.Tx, key keyring.AuditKey) error {
	if err := u.Load(ctx, store.Want{Scans: []store.Scan{{Kind: DocAuditChain}}}); err != nil {
		return err
	}
	want := store.Want{LockDocs: true, Docs: RollRefs()}
	for _, doc := range u.Scanned[len(u.Scanned)-1] {
		want.Docs = append(want.Docs, doc.DocRef)
	}
	if err := u.Load(ctx, want); err != nil {
		return err
	}
	rolls := make([]core.AuditRoll, core.AuditRolls)
	for _, ref := range want.Docs[core.AuditRolls:] {
		head, err := DecodeChain(u.Doc(ref))
		if err != nil {
			return err
		}
		head.StartSeal()
		head.SealUnder(key, ref.Key)
		rolls[core.AuditRollOf(ref.Key)].Add(ref.Key)
		body, _ := json.Marshal(head)
		u.PutDoc(store.Doc{DocRef: ref, Body: body})
	}
	for no := range rolls {
		if u.Doc(rollRef(no)) != nil {
			rolls[no].AlteredAt = u.Now
		}
		rolls[no].SealUnder(key, no)
		body, _ := json.Marshal(rolls[no])
		u.PutOrAdd(store.Doc{DocRef: rollRef(no), Body: body})
	}
	return nil
}
