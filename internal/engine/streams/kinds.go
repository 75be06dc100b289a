package streams

import (
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The kinds of small records. Values are stored: never renumber them. The tests of the tree find a number that is given twice.
const (
	docHead     store.DocKind = 45 // owner: execution; key: attempt id; the head of its stream, there once it has frames
	docChunk    store.DocKind = 46 // owner: execution; key: stream.Key; what one append stored of a mode
	docSummary  store.DocKind = 47 // owner: execution; key: attempt id; its summary document
	docTimedOut store.DocKind = 48 // owner: execution; key: attempt id; there if the attempt ended because its suspension timed out
)

// The kinds of timers. Values are stored: never renumber them.
const (
	timerFrames store.TimerKind = 15 // Texts: executions and attempts whose best-effort frames may be out of retention
)

// empty is the body of records whose content is bytes.
var empty = []byte("{}")

func headRef(id, attempt base.UUID) store.DocRef {
	return store.DocRef{Kind: docHead, Owner: txn.Owner(id), Key: attempt.String()}
}

func summaryRef(id, attempt base.UUID) store.DocRef {
	return store.DocRef{Kind: docSummary, Owner: txn.Owner(id), Key: attempt.String()}
}

func timedOutRef(id, attempt base.UUID) store.DocRef {
	return store.DocRef{Kind: docTimedOut, Owner: txn.Owner(id), Key: attempt.String()}
}
