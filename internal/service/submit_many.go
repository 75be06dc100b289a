package service

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// submitBatch is a batch of submissions for the engine.
type submitBatch struct {
	given   []api.Submission
	results wire.SubmitResults
	subs    []core.Submission // for the engine: all but those that were refused before
	ids     []workID          // of those
	places  []int             // their indexes in given
	derived bool              // at least one of the ids is
}

// submitMany submits many executions, each on its own or all or none (U33).
func (s *Service) submitMany(ctx context.Context, c Caller, r *wire.SubmitManyRequest) (wire.SubmitResults, error) {
	home, err := c.home()
	if err != nil {
		return nil, err
	}
	b, err := s.batchOf(ctx, &c, home, r)
	if err != nil || len(b.subs) == 0 {
		return b.results, err
	}
	items, err := s.submitOnce(ctx, c.submitter(b.derived), b.subs, r.Body.Atomic)
	if err != nil {
		return nil, b.refusal(err)
	}
	if again := b.take(items, c.first()); again && c.first() {
		who := c.client()
		who.Again()
	}
	return b.results, nil
}

// batchOf converts the submissions. One that cannot be converted is refused at its index, or refuses all of an atomic batch.
func (s *Service) batchOf(ctx context.Context, c *Caller, home string, r *wire.SubmitManyRequest) (*submitBatch, error) {
	given := r.Body.Items
	b := &submitBatch{
		given: given, results: make(wire.SubmitResults, len(given)), subs: make([]core.Submission, 0, len(given)), ids: make([]workID, 0, len(given)),
		places: make([]int, 0, len(given)),
	}
	trace := s.cfg.trace(ctx)
	for i := range given {
		id, err := s.idOfWork(ctx, c, home, &given[i], i, func() base.UUID { return c.minted.at(i, len(given), s.clock) })
		if err != nil && given[i].ID == "" {
			return b, err // not an error of the submission
		}
		var sub core.Submission
		if err == nil {
			sub, err = coreSubmission(&given[i], id.GivenID, home)
		}
		switch {
		case err != nil && r.Body.Atomic:
			return b, api.AtIndex(err, i)
		case err != nil:
			b.results[i] = api.SubmitResult{ID: given[i].ID, Err: api.AsError(err)}
			continue
		}
		sub.Trace = trace
		b.subs, b.ids, b.places = append(b.subs, sub), append(b.ids, id), append(b.places, i)
		b.derived = b.derived || id.derived
	}
	return b, nil
}

// submitOnce reports an item of unknown outcome as the outcome of the whole call, so that all of it is sent again: executions
// created before are then duplicates (L86).
func (s *Service) submitOnce(ctx context.Context, who engine.Caller, subs []core.Submission, atomic bool) ([]engine.SubmitItem, error) {
	items, err := s.engine.SubmitMany(ctx, who, subs, atomic)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if base.CodeOf(item.Err) == base.CodeTimeout {
			return nil, item.Err
		}
	}
	return items, nil
}

// take takes over the answers of the engine. It reports whether everything in the call had been done before.
func (b *submitBatch) take(items []engine.SubmitItem, first bool) (again bool) {
	again = true
	for n, item := range items {
		id, given := b.ids[n], &b.given[b.places[n]]
		if item.Err != nil {
			err := sameRequest(SubmissionAsGiven(item.Err, given), id.derived)
			b.results[b.places[n]] = api.SubmitResult{ID: given.ID, Err: api.AsError(err)}
			again = false
			continue
		}
		result := submitResultOf(item.SubmitAnswer)
		own := id.minted && item.ID.UUID == id.UUID
		again = again && result.Duplicate && id.derived && own
		if own && (id.derived || !first) {
			result.Duplicate = false // a try whose answer was lost had created it
		}
		b.results[b.places[n]] = result
	}
	return again
}

// detailIndex is the detail with the index of the refused item of an atomic batch (U22).
const detailIndex = "index"

// refusal adds the place of the submission to the field of a refusal of the whole batch.
func (b *submitBatch) refusal(err error) error {
	var refused *base.Error
	if !errors.As(err, &refused) {
		return err
	}
	n, ok := refused.Details[detailIndex].(int)
	if !ok || n < 0 || n >= len(b.places) {
		return err
	}
	return sameRequest(SubmissionAsGiven(err, &b.given[b.places[n]]), b.ids[n].derived)
}
