package flows

import (
	"encoding/hex"
	"encoding/json"
	"math"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// flowMarkRef is where a flow stands in the list of its namespace: newest first (F60).
func flowMarkRef(f *core.Flow) store.DocRef {
	return store.DocRef{Kind: docFlowMark, Key: flowMarkKey(f.Namespace, f.CreatedAt) + f.ID.UUID.String()}
}

// flowMarkKey is what the keys of marks of that namespace and moment begin with. No namespace has the byte behind its name.
func flowMarkKey(namespace string, at base.Time) string {
	var inverted [8]byte
	for i, rest := 7, uint64(math.MaxInt64)-uint64(max(at, 0)); i >= 0; i, rest = i-1, rest>>8 {
		inverted[i] = byte(rest)
	}
	return namespace + "\x01" + hex.EncodeToString(inverted[:])
}

func memberRef(flow base.UUID, name string) store.DocRef {
	return store.DocRef{Kind: DocMember, Owner: txn.Owner(flow), Key: name}
}

// EdgeRef names the record of an edge.
func EdgeRef(from, to base.UUID) store.DocRef {
	return store.DocRef{Kind: docEdge, Owner: txn.Owner(from), Key: to.String()}
}

// EdgesOf names the records of the edges that leave a member.
func EdgesOf(from base.UUID) store.Owned {
	return store.Owned{Kind: docEdge, Owner: txn.Owner(from)}
}

func upstreamsRef(to base.UUID) store.DocRef {
	return store.DocRef{Kind: docUpstreams, Owner: txn.Owner(to)}
}

func inputsRef(of base.UUID) store.DocRef {
	return store.DocRef{Kind: docInputs, Owner: txn.Owner(of)}
}

func subflowRef(node base.UUID) store.DocRef {
	return store.DocRef{Kind: docSubflow, Owner: txn.Owner(node)}
}

func edgeIDRef(flow, edge base.UUID) store.DocRef {
	return store.DocRef{Kind: docEdgeID, Owner: txn.Owner(flow), Key: edge.String()}
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
func memberDoc(flow base.UUID, name string, id base.ID) store.Doc {
	return docOf(memberRef(flow, name), id)
}

// upstreamsDoc lists executions, 16 bytes each.
func upstreamsDoc(to base.UUID, from []base.UUID) store.Doc {
	doc := store.Doc{DocRef: upstreamsRef(to), Data: make([]byte, 0, len(base.UUID{})*len(from))}
	for _, id := range from {
		doc.Data = append(doc.Data, id[:]...)
	}
	return doc
}

// UpstreamsOf reads upstreamsDoc back; nil: there are none. Codes: corruption.
func UpstreamsOf(doc *store.Doc) (from []base.UUID, err error) {
	if doc == nil {
		return nil, nil
	}
	if err := doc.Whole(); err != nil {
		return nil, err
	}
	for rest := doc.Data; len(rest) >= len(base.UUID{}); rest = rest[len(base.UUID{}):] {
		from = append(from, base.UUID(rest[:len(base.UUID{})]))
	}
	return from, nil
}

// FlowRef names the record of a flow.
func FlowRef(id base.UUID) store.DocRef { return store.DocRef{Kind: DocFlow, Key: id.String()} }

// ReadDoc reads a record back; flows and edges were JSON once, like the others. Codes: corruption.
func ReadDoc(doc *store.Doc, record any) (err error) {
	edge, isEdge := record.(*core.Edge)
	flow, isFlow := record.(*core.Flow)
	switch {
	case isEdge && len(doc.Data) > 0:
		err = store.DecodeEdge(doc.Data, edge)
	case isFlow && len(doc.Data) > 0:
		err = store.DecodeFlow(doc.Data, flow)
	default:
		err = json.Unmarshal(doc.Body, record)
	}
	if err != nil {
		return base.Errorf(base.CodeCorruption, "the stored record %d %q of %q cannot be read: %w", doc.Kind, doc.Key, doc.Owner, err)
	}
	return nil
}
