package inspect

import (
	"context"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/waits"
	"github.com/flowfabric/flowfabric/internal/store"
)

// checkWaitMarks looks for marks that no record asks for: among those that lists find open waitpoints and suspended executions by, and
// those that waitpoints and links are found by.
func (e *Inspector) checkWaitMarks(ctx context.Context) (found []Difference, err error) {
	strays := map[store.DocKind]func(context.Context, []store.Doc) ([]Difference, error){
		waits.DocWaitpointOpen: e.strayAmong, waits.DocSuspended: e.strayAmong, waits.DocWaitpointAt: e.strayLocators, waits.DocLinkAt: e.strayLocators,
	}
	for _, kind := range slices.Sorted(maps.Keys(strays)) {
		stray, err := e.strayMarks(ctx, kind, strays[kind])
		if err != nil {
			return nil, txn.PublicFault(err)
		}
		found = append(found, stray...)
	}
	return found, nil
}

// unmarked finds the marks that executions lack. Marks and records are compared in one snapshot.
func (e *Inspector) unmarked(ctx context.Context, seen *store.Loaded) (found []Difference, err error) {
	want := store.Want{SkipUnreadable: true}
	for id, x := range seen.Executions {
		if marks := waits.OpenMarks(x, x.Waits); len(marks) > 0 {
			want.Executions = append(want.Executions, id)
			for ref := range marks {
				want.Docs = append(want.Docs, ref)
			}
		}
	}
	if len(want.Docs) == 0 {
		return nil, nil
	}
	loaded, err := e.Store.Read(ctx, want)
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	asked := map[store.DocRef]bool{}
	for _, ref := range want.Docs {
		asked[ref] = true
	}
	for _, x := range loaded.Executions {
		for ref := range waits.OpenMarks(x, x.Waits) {
			if _, there := loaded.Docs[ref]; asked[ref] && !there {
				found = append(found, Difference{What: checkWaitMarks, Key: x.ID.String(), Found: 1})
			}
		}
	}
	return found, nil
}

// strayMarks finds marks of one kind that no record asks for.
func (e *Inspector) strayMarks(ctx context.Context, kind store.DocKind, among func(context.Context, []store.Doc) ([]Difference, error)) (found []Difference, err error) {
	for scan := (store.Scan{Kind: kind, Limit: integrityBatch}); ; {
		seen, err := e.Store.Read(ctx, store.Want{Scans: []store.Scan{scan}})
		if err != nil {
			return nil, err
		}
		marks := seen.Scanned[0]
		stray, err := among(ctx, marks)
		if err != nil {
			return nil, err
		}
		if found = append(found, stray...); len(marks) < scan.Limit {
			return found, nil
		}
		scan.After = marks[len(marks)-1].Key
	}
}

func (e *Inspector) strayAmong(ctx context.Context, marks []store.Doc) (found []Difference, err error) {
	want := store.Want{SkipUnreadable: true}
	owners := map[store.DocRef]base.UUID{}
	for i := range marks {
		id, err := markedBy(&marks[i])
		if err != nil {
			found = append(found, Difference{What: checkWaitMarks, Key: marks[i].Key, Stored: 1})
			continue
		}
		owners[marks[i].DocRef] = id
		want.Executions, want.Docs = append(want.Executions, id), append(want.Docs, marks[i].DocRef)
	}
	if len(want.Docs) == 0 {
		return found, nil
	}
	loaded, err := e.Store.Read(ctx, want)
	if err != nil {
		return nil, err
	}
	for ref := range loaded.Docs {
		id := owners[ref]
		x := loaded.Executions[id]
		if x != nil {
			if _, due := waits.OpenMarks(x, x.Waits)[ref]; due {
				continue
			}
		}
		if loaded.Unreadable[id] == nil {
			found = append(found, Difference{What: checkWaitMarks, Key: id.String(), Stored: 1})
		}
	}
	return found, nil
}

// strayLocators finds locator records of waitpoints and links that do not exist. The records of an execution are removed with it, and what
// cannot be read exists.
func (e *Inspector) strayLocators(ctx context.Context, marks []store.Doc) (found []Difference, err error) {
	var want store.Want
	records := map[store.DocRef]store.DocRef{}
	for i := range marks {
		at, err := waits.DecodeLocator(&marks[i])
		if err != nil {
			found = append(found, Difference{What: checkWaitMarks, Key: marks[i].Key, Stored: 1})
			continue
		}
		letter := waits.WaitpointLetter
		if marks[i].Kind == waits.DocLinkAt {
			letter = waits.LinkLetter
		}
		record := store.DocRef{Kind: waits.DocWait, Owner: txn.Owner(at.ExecutionID.UUID), Key: string(letter) + marks[i].Key}
		records[marks[i].DocRef] = record
		want.Docs = append(want.Docs, marks[i].DocRef, record)
	}
	if len(want.Docs) == 0 {
		return found, nil
	}
	loaded, err := e.Store.Read(ctx, want)
	if err != nil {
		return nil, err
	}
	for i := range marks {
		_, still := loaded.Docs[marks[i].DocRef]
		if _, there := loaded.Docs[records[marks[i].DocRef]]; still && !there {
			found = append(found, Difference{What: checkWaitMarks, Key: marks[i].Key, Stored: 1})
		}
	}
	return found, nil
}

// markedBy is the execution that a mark stands for. Codes: corruption.
func markedBy(mark *store.Doc) (base.UUID, error) {
	if mark.Kind == waits.DocSuspended {
		return waits.SuspendedID(mark.Key)
	}
	at, err := waits.DecodeLocator(mark)
	return at.ExecutionID.UUID, err
}
