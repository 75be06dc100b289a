package streams

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/stream"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// Summary is the summary document of an attempt (E11).
type Summary struct {
	Attempt int
	stream.Document
}

// ReadSummary returns the summary document of an attempt, of the newest if index is Newest, waiting until its version is above a number if asked to.
//
// A reader of the newest attempt that has the version of an older one is not left waiting for a version that the newer one may never reach: it is answered
// as soon as the newer attempt has a document. That the number is of an older attempt shows if it is above the version, which never goes back, or if the
// newest attempt changes while the reader waits. A reader that has the same version of an older attempt is answered when its wait is over.
//
// Codes: execution_not_found, attempt_not_found, summary_not_found, overloaded.
func (e *Streams) ReadSummary(ctx context.Context, c txn.Caller, id base.GivenID, index int, above int64, wait time.Duration) (Summary, error) {
	if above < 0 {
		return Summary{}, base.Invalid("wait_version", "must not be negative")
	}
	if wait < 0 || wait > txn.MaxWait {
		return Summary{}, base.Invalid("wait_ms", "%s, want 0..%s", wait, txn.MaxWait)
	}
	first := Newest // the attempt of the first look
	found, err := tailed(ctx, e, id.UUID, wait, func(ctx context.Context, one *tail) (*Summary, bool, error) {
		v, a, err := e.seeAttempt(ctx, c, id, index)
		if err != nil {
			return nil, false, err
		}
		if one != nil {
			e.tails.knows(one, headRef(id.UUID, a.ID), a.head.LastSeq)
		}
		if first == Newest {
			first = a.Index
		}
		over := a.head.IsClosed() && (index != Newest || v.x.Status.Terminal()) // else another attempt may follow
		if a.head.SummaryVersion() == 0 {
			return nil, over, nil
		}
		ref := summaryRef(id.UUID, a.ID)
		docs, err := e.ReadDocs(ctx, ref) // it may be newer than the head
		if err != nil {
			return nil, false, err
		}
		doc, ok := docs[ref]
		if !ok {
			return nil, false, txn.NotFound(id)
		}
		document, err := decodeSummary(&doc)
		if err != nil {
			return nil, false, err
		}
		newer := index == Newest && (a.Index != first || document.Version < above)
		return &Summary{Attempt: a.Index, Document: *document}, document.Version > above || newer || over, nil
	})
	switch {
	case err != nil:
		return Summary{}, err
	case found == nil:
		return Summary{}, base.Errorf(base.CodeSummaryNotFound, "the attempt has no summary document")
	}
	return *found, nil
}
