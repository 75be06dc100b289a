package waits

import (
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// What an execution owns goes with it. What its waitpoints and links are found by has no owner: the keys of the records in its wait state
// name it. Marks of what is open follow the record (markWaits), and work that is over has none.

// removeLocators removes the locators of the execution's waitpoints and links. It needs only the keys, so that records which cannot be read do
// not prevent it.
func removeLocators(u *txn.Tx, id base.UUID) {
	file := knownRows(u, id)
	if file == nil {
		return
	}
	for i := range file.docs {
		dropLocators(u, file.docs[i].Key)
	}
	for _, write := range file.wrote {
		dropLocators(u, waitKey(write.Record))
	}
}

func dropLocators(u *txn.Tx, key string) {
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
	u.DropDoc(ref)
}
