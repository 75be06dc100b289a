package claims

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// Serve hands over what the transaction creates or resumes, and else, on a store where transactions take turns, serves the calls that may find work
// in it.
func (p *picker) Serve(ctx context.Context, u *txn.Tx) (txn.Served, error) {
	if k := p.handOver(ctx, u); k != nil {
		return handedOver{k}, nil
	}
	k, err := p.serveInCommit(ctx, u)
	if k == nil {
		return nil, err
	}
	return withCommit{k}, err
}

// handedOver are the calls of a hand-over.
type handedOver struct{ *pick }

// Committed answers them.
func (h handedOver) Committed(u *txn.Tx) { h.p.handed(u, h.pick) }

// Undo lets them keep waiting.
func (h handedOver) Undo(why error) { h.p.handedBack(h.pick, why) }

// withCommit are the calls that a commit serves as a pick would.
type withCommit struct{ *pick }

// Committed answers them.
func (i withCommit) Committed(u *txn.Tx) { i.p.served(u, i.pick) }

// Undo lets them keep waiting.
func (i withCommit) Undo(why error) { i.p.rolledBack(i.pick, why) }

// Spans returns the spans of the calls.
func (k *pick) Spans() []txn.Span {
	spans := make([]txn.Span, 0, len(k.calls))
	for _, call := range k.calls {
		if call.span != nil {
			spans = append(spans, call.span)
		}
	}
	return spans
}

// Lost answers the calls: it is unknown what they got.
func (k *pick) Lost(err error) { k.p.lost(k.calls, err) }
