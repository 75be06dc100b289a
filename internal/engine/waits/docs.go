package waits

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The records of an execution's waits are docs that it owns, all of one kind, so that one read loads its wait state. The first byte of a key says what
// is kept under it. The values are stored: never change them.
const (
	WaitpointLetter     = 'w' // waitpoint id
	waitpointEndLetter  = 'W'
	suspensionLetter    = 's' // number
	suspensionEndLetter = 'S'
	signalLetter        = 'g' // ordinal
	LinkLetter          = 'l' // link id
	linkEndLetter       = 'L'
)

// waitRef names the doc of a record.
func waitRef(id base.UUID, record core.WaitRecord) store.DocRef {
	return store.DocRef{Kind: DocWait, Owner: txn.Owner(id), Key: waitKey(record)}
}

func waitKey(record core.WaitRecord) string {
	switch r := record.(type) {
	case *core.Waitpoint:
		return string(WaitpointLetter) + r.ID.String()
	case *core.WaitpointEnd:
		return string(waitpointEndLetter) + r.WaitpointID.String()
	case *core.Suspension:
		return numbered(suspensionLetter, r.Seq)
	case *core.SuspensionEnd:
		return numbered(suspensionEndLetter, r.Seq)
	case *core.Signal:
		return numbered(signalLetter, r.Ordinal)
	case *core.Link:
		return string(LinkLetter) + r.ID.String()
	case *core.LinkEnd:
		return string(linkEndLetter) + r.LinkID.String()
	default:
		panic(fmt.Sprintf("no key for a %T", record)) // every kind of record is above
	}
}

// numbered is a key whose byte order is that of the numbers.
func numbered(letter rune, n int) string { return fmt.Sprintf("%c%08d", letter, n) }

// signalDataRef names the bytes of a signal.
func signalDataRef(id base.UUID, ordinal int) store.DocRef {
	return store.DocRef{Kind: docWaitData, Owner: txn.Owner(id), Key: numbered(signalLetter, ordinal)}
}

// continuationRef names the bytes that a suspension keeps for the worker that continues.
func continuationRef(id base.UUID, seq int) store.DocRef {
	return store.DocRef{Kind: docWaitData, Owner: txn.Owner(id), Key: numbered(suspensionLetter, seq)}
}

func waitpointAtRef(waitpoint base.UUID) store.DocRef {
	return store.DocRef{Kind: DocWaitpointAt, Key: waitpoint.String()}
}

func waitpointOpenRef(waitpoint base.UUID) store.DocRef {
	return store.DocRef{Kind: DocWaitpointOpen, Key: waitpoint.String()}
}

func linkAtRef(link base.UUID) store.DocRef {
	return store.DocRef{Kind: DocLinkAt, Key: link.String()}
}

// suspendedRef names the mark of an execution that is suspended: in order of the moment within a namespace.
func suspendedRef(namespace string, at base.Time, id base.UUID) store.DocRef {
	return store.DocRef{Kind: DocSuspended, Key: fmt.Sprintf("%s%016x\x01%s", suspendedPrefix(namespace), int64(at), id)}
}

func suspendedPrefix(namespace string) string { return namespace + "\x01" }

// SuspendedID is the execution that such a mark stands for.
func SuspendedID(key string) (base.UUID, error) {
	id, ok := base.ParseUUID(key[strings.LastIndexByte(key, 1)+1:])
	if !ok {
		return base.UUID{}, base.Errorf(base.CodeCorruption, "the mark of a suspended execution cannot be read").With("record", "suspended")
	}
	return id, nil
}

// waitLocator names the execution that has a waitpoint or a link: the body of docWaitpointAt, docWaitpointOpen and docLinkAt. It never changes.
type waitLocator struct {
	ExecutionID base.ID `json:"execution_id"`
	Namespace   string  `json:"namespace"`
	Key         string  `json:"waitpoint_key,omitempty"` // of a waitpoint
}

func (p waitLocator) doc(ref store.DocRef) store.Doc {
	body, _ := json.Marshal(p)
	return store.Doc{DocRef: ref, Body: body}
}

// DecodeLocator reads where the waitpoint or link of a record lies. Codes: corruption.
func DecodeLocator(doc *store.Doc) (p waitLocator, err error) {
	if err := json.Unmarshal(doc.Body, &p); err != nil {
		return p, txn.Corrupt("the locator of a waitpoint", err)
	}
	return p, nil
}

// suspendedMark is what lists of suspended executions look at before they load one: the body of docSuspended.
type suspendedMark struct {
	Lane       string  `json:"lane"`
	ReasonCode string  `json:"reason_code"`
	FlowID     base.ID `json:"flow_id,omitzero"`
}

func (m suspendedMark) doc(ref store.DocRef) store.Doc {
	body, _ := json.Marshal(m)
	return store.Doc{DocRef: ref, Body: body}
}

func decodeSuspendedMark(doc *store.Doc) (m suspendedMark, err error) {
	if err := json.Unmarshal(doc.Body, &m); err != nil {
		return m, txn.Corrupt("suspended", err)
	}
	return m, nil
}

// waitStateOf reads the records of one execution, in whichever order they come. Codes: corruption.
func waitStateOf(docs []store.Doc) (*core.WaitState, error) {
	d := &core.WaitState{}
	for i := range docs {
		if err := readWait(d, &docs[i]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func readWait(d *core.WaitState, doc *store.Doc) error {
	if doc.Key == "" {
		return txn.Corrupt("wait", fmt.Errorf("a record has no key"))
	}
	switch doc.Key[0] {
	case WaitpointLetter:
		return readInto(&d.Waitpoints, doc.Body, core.DecodeWaitpoint)
	case waitpointEndLetter:
		return readInto(&d.WaitpointEnds, doc.Body, core.DecodeWaitpointEnd)
	case suspensionLetter:
		return readInto(&d.Suspensions, doc.Body, core.DecodeSuspension)
	case suspensionEndLetter:
		return readInto(&d.SuspensionEnds, doc.Body, core.DecodeSuspensionEnd)
	case signalLetter:
		return readInto(&d.Signals, doc.Body, core.DecodeSignal)
	case LinkLetter:
		return readInto(&d.Links, doc.Body, core.DecodeLink)
	case linkEndLetter:
		return readInto(&d.LinkEnds, doc.Body, core.DecodeLinkEnd)
	default:
		return nil // of a later version
	}
}

func readInto[T any](list *[]T, body []byte, decode func([]byte) (T, error)) error {
	record, err := decode(body)
	if err != nil {
		return err
	}
	*list = append(*list, record)
	return nil
}

// wantWaitState adds everything that is stored of an execution's waits. It is read under the lock of the execution, where that is taken.
func wantWaitState(w *store.Want, id base.UUID) {
	owned := WaitStateKey(id)
	if !slices.Contains(w.Owned, owned) {
		w.Owned = append(w.Owned, owned)
	}
}

// wantWaits adds what a command on waits looks at: the wait state and the signing keys.
func wantWaits(w *store.Want, id base.UUID) {
	wantWaitState(w, id)
	admin.WantKeys(w)
}

// WaitStateKey names the records of what an execution waits for.
func WaitStateKey(id base.UUID) store.Owned {
	return store.Owned{Kind: DocWait, Owner: txn.Owner(id)}
}

// ReadState returns the wait state of an execution for which wantWaitState asked. Codes: corruption.
func ReadState(loaded *store.Loaded, id base.UUID) (*core.WaitState, error) {
	return waitStateOf(loaded.Owned[WaitStateKey(id)])
}
