package waits

import (
	"cmp"
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// OpenLink shows the holder of a link what it asks. It changes nothing (W70). A token that is not valid is link_not_found for every cause, which
// only the metric distinguishes (W33, W34, W69).
func (e *Waits) OpenLink(ctx context.Context, _ txn.Caller, link base.UUID, token keyring.Token) (LinkPage, error) {
	rows, err := e.readBorne(ctx, linkAtRef(link))
	if err != nil {
		return LinkPage{}, err
	}
	err = e.judge(rows, &tokenCommand{
		token:   token,
		fields:  func(d *core.WaitState) keyring.TokenFields { return linkFields(d, d.Link(link)) },
		refusal: func(error) error { return noLink() },
	})
	if err != nil {
		return LinkPage{}, err
	}
	x := rows.Executions[rows.at.ExecutionID.UUID]
	if x == nil {
		return LinkPage{}, cmp.Or(rows.Unreadable[rows.at.ExecutionID.UUID], noLink())
	}
	w, err := waitingOf(rows.Loaded, x)
	if err != nil {
		return LinkPage{}, err
	}
	return w.linkPage(w.d.Link(link))
}

func loadedKeySet(loaded *store.Loaded) []byte {
	if doc, ok := loaded.Docs[admin.KeySetRef]; ok {
		return doc.Body
	}
	return nil
}

// linkFields are what the token of a link vouches for; nil when there is no such link.
func linkFields(d *core.WaitState, link *core.Link) keyring.TokenFields {
	if link == nil {
		return nil
	}
	waitpoint := d.Waitpoint(link.WaitpointID)
	if waitpoint == nil {
		return nil
	}
	return link.TokenFields(waitpoint.MintedAt)
}

// linkPage shows a link whose token was verified. Codes: corruption.
func (w *waiting) linkPage(link *core.Link) (LinkPage, error) {
	waitpoint, err := w.x.WaitpointView(w.d, w.d.Waitpoint(link.WaitpointID))
	if err != nil {
		return LinkPage{}, err
	}
	page := LinkPage{
		LinkView: w.d.LinkView(w.now, link), Waitpoint: waitpoint, Kind: w.x.Class.Kind, Tags: w.x.Tags, Asker: w.x.Creator, Now: w.now,
	}
	if page.State != core.LinkDecided {
		page.Undecided = w.d.CheckDecidable(w.now, link.ID)
	}
	if waits := w.x.Waits; waits != nil && waits.Suspension != nil && waits.Suspension.ID == waitpoint.SuspensionID {
		page.TimeoutAt = waits.Suspension.TimeoutAt
	}
	return page, w.tally(&page)
}

// tally adds the progress of the node that counts the decisions at the link's waitpoint, both while the wait is open and after it.
func (w *waiting) tally(page *LinkPage) error {
	shown, err := w.x.ObserveOne(w.d, page.Waitpoint.SuspensionID)
	if err != nil || shown == nil { // nothing waits at it yet
		return err
	}
	resume, err := condition.Decode(shown.Condition)
	if err != nil {
		return err
	}
	progress := resume.Evaluate(evidenceOf(shown.Signals)).Progress()
	for i, node := range resume.Leaves() {
		if node.Kind == condition.Count && slices.Contains(node.Waitpoints, page.Waitpoint.Key) {
			page.Needed, page.Progress, page.Counted = node.N, progress[i], node.Matcher.Name
			return nil
		}
	}
	return nil
}

// evidenceOf is what a condition looks at in signals.
func evidenceOf(signals []core.Signal) []condition.Evidence {
	evidence := make([]condition.Evidence, len(signals))
	for i := range signals {
		s := &signals[i]
		evidence[i] = condition.Evidence{
			WaitpointKey: s.WaitpointKey, SignalID: s.ID, Name: s.Name, SourceType: s.SourceType, SourceIdentity: s.SourceIdentity,
		}
	}
	return evidence
}
