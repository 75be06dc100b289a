package flows

import (
	"encoding/hex"
	"encoding/json"
	"math"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// flowMarkRef is where a flow stands in the list of its namespace: newest first (F60).
func flowMarkRef(f *core.Flow) store.DocRef {
	return store.DocRef{Kind: txn.DocFlowMark, Key: flowMarkKey(f.Namespace, f.CreatedAt) + f.ID.UUID.String()}
}

// flowMarkKey is what the keys of marks of that namespace and moment begin with. No namespace has the byte behind its name.
func flowMarkKey(namespace string, at core.Time) string {
	var inverted [8]byte
	for i, rest := 7, uint64(math.MaxInt64)-uint64(max(at, 0)); i >= 0; i, rest = i-1, rest>>8 {
		inverted[i] = byte(rest)
	}
	return namespace + "\x01" + hex.EncodeToString(inverted[:])
}

func memberRef(flow core.UUID, name string) store.DocRef {
	return store.DocRef{Kind: txn.DocMember, Owner: txn.Owner(flow), Key: name}
}

// EdgeRef names the record of an edge.
func EdgeRef(from, to core.UUID) store.DocRef {
	return store.DocRef{Kind: txn.DocEdge, Owner: txn.Owner(from), Key: to.String()}
}

// EdgesOf names the records of the edges that leave a member.
func EdgesOf(from core.UUID) store.Owned {
	return store.Owned{Kind: txn.DocEdge, Owner: txn.Owner(from)}
}

func upstreamsRef(to core.UUID) store.DocRef {
	return store.DocRef{Kind: txn.DocUpstreams, Owner: txn.Owner(to)}
}

func inputsRef(of core.UUID) store.DocRef {
	return store.DocRef{Kind: txn.DocInputs, Owner: txn.Owner(of)}
}

func subflowRef(node core.UUID) store.DocRef {
	return store.DocRef{Kind: txn.DocSubflow, Owner: txn.Owner(node)}
}

func edgeIDRef(flow, edge core.UUID) store.DocRef {
	return store.DocRef{Kind: txn.DocEdgeID, Owner: txn.Owner(flow), Key: edge.String()}
}

// docOf writes a record as a doc.
func docOf(ref store.DocRef, record any) store.Doc {
	switch r := record.(type) {
	case *core.Edge:
		return store.Doc{DocRef: ref, Data: store.EncodeEdge(r)}
	case *core.Flow:
		return store.Doc{DocRef: ref, Data: store.EncodeFlow(r)}
	}
	body, _ := json.Marshal(record)
	return store.Doc{DocRef: ref, Body: body}
}

// memberDoc names the execution that has a name in a flow.
func memberDoc(flow core.UUID, name string, id core.ID) store.Doc {
	return docOf(memberRef(flow, name), id)
}

// upstreamsDoc lists executions, 16 bytes each.
func upstreamsDoc(to core.UUID, from []core.UUID) store.Doc {
	doc := store.Doc{DocRef: upstreamsRef(to), Data: make([]byte, 0, len(core.UUID{})*len(from))}
	for _, id := range from {
		doc.Data = append(doc.Data, id[:]...)
	}
	return doc
}

// UpstreamsOf reads upstreamsDoc back; nil: there are none. Codes: corruption.
func UpstreamsOf(doc *store.Doc) (from []core.UUID, err error) {
	if doc == nil {
		return nil, nil
	}
	if err := doc.Whole(); err != nil {
		return nil, err
	}
	for rest := doc.Data; len(rest) >= len(core.UUID{}); rest = rest[len(core.UUID{}):] {
		from = append(from, core.UUID(rest[:len(core.UUID{})]))
	}
	return from, nil
}
