package txn

import (
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// What an execution owns goes with it. What its waitpoints and links are found by has no owner: the keys of the records in its dossier
// name it. Marks of what is open follow the record (markWaits), and work that is over has none.

// WantRemovable adds the rows that the removal of an execution needs. One that never waited needs none.
func (u *Tx) WantRemovable(w *store.Want, id base.UUID) {
	ent := u.Entries[id]
	if ent != nil && ent.Exec.Waits != nil {
		w.Owned = append(w.Owned, DossierKey(id))
	}
	if ent != nil {
		for _, flow := range ent.Exec.FlowsBelow() {
			w.Docs = append(w.Docs, FlowRef(flow.UUID))
		}
	}
}

// removeWhereabouts removes the locators of the execution's waitpoints and links. It needs only the keys, so that records which cannot be read do
// not prevent it.
func (u *Tx) removeWhereabouts(id base.UUID) {
	file := u.waits[id]
	if file == nil {
		return
	}
	for i := range file.docs {
		u.dropWhereabouts(file.docs[i].Key)
	}
	for _, write := range file.wrote {
		u.dropWhereabouts(waitKey(write.Record))
	}
}

func (u *Tx) dropWhereabouts(key string) {
	var ref store.DocRef
	switch {
	case key == "":
		return
	case key[0] == WaitpointLetter:
		ref = store.DocRef{Kind: DocWaitpointAt, Key: key[1:]}
	case key[0] == LinkLetter:
		ref = store.DocRef{Kind: DocLinkAt, Key: key[1:]}
	default:
		return
	}
	u.dropDoc(ref)
}
