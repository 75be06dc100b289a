package work

import (
	"cmp"
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// StepsRequest asks for steps that a run sees (L150).
type StepsRequest struct {
	Run   *int // nil: the current one
	From  int  // how many come before them, in order of writing
	Limit int  // 0: all
	Above int  // results that are larger are left out; 0: none
	Bytes int  // the page ends before the results exceed it, but has one step at least; 0: no bound
}

// StepsPage is a part of the steps of a run, in order of writing.
type StepsPage struct {
	Records []core.StepRecord
	More    bool
}

const (
	stepsInMemory = 8 << 20 // bytes of results that a read has in memory beside its answer, about
	fewSteps      = 8       // are loaded whatever their size: a result has 1 MiB at most
	manySteps     = 1000
)

// stepsReader reads the steps of an execution some at a time: all of them together may have 10 GiB.
type stepsReader struct {
	e           *Work
	id          base.UUID
	first, last int // runs

	records       []core.StepRecord // that the run sees
	results       bool              // the records have them; otherwise they are read when they are needed
	loaded, bytes int               // documents so far, and their size
}

// Steps returns steps that a run sees.
func (e *Work) Steps(ctx context.Context, c txn.Caller, id base.GivenID, r StepsRequest) (StepsPage, error) {
	scan := store.Scan{Kind: docStep, Owner: txn.Owner(id.UUID), Limit: fewSteps}
	loaded, x, err := e.ReadOne(ctx, c, id, store.Want{
		Executions: []base.UUID{id.UUID}, Docs: []store.DocRef{StepsRef(id.UUID)}, Scans: []store.Scan{scan},
	})
	if err != nil {
		return StepsPage{}, err
	}
	var doc *store.Doc
	if found, ok := loaded.Docs[StepsRef(id.UUID)]; ok {
		doc = &found
	}
	index, err := decodeStepIndex(doc)
	if err != nil {
		return StepsPage{}, err
	}
	reader := &stepsReader{e: e, id: id.UUID, last: x.RunIndex(), results: true}
	if r.Run != nil {
		reader.last = *r.Run
	}
	reader.first = index.first(reader.last)
	if err := reader.list(ctx, scan, loaded.Scanned[0]); err != nil {
		return StepsPage{}, err
	}
	return reader.page(ctx, r)
}

// list lists the steps, of which the first are found already.
func (s *stepsReader) list(ctx context.Context, scan store.Scan, found []store.Doc) error {
	for {
		for i := range found {
			record, err := decodeStep(&found[i])
			if err != nil {
				return err
			}
			s.count(&found[i])
			if record.RunIndex >= s.first && record.RunIndex <= s.last {
				s.records = append(s.records, record)
			}
		}
		if s.results = s.bytes <= stepsInMemory; !s.results {
			for i := range s.records {
				s.records[i].Result = nil
			}
		}
		if len(found) < scan.Limit {
			slices.SortFunc(s.records, func(a, b core.StepRecord) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
			return nil
		}
		scan.After, scan.Limit = found[len(found)-1].Key, s.next()
		loaded, err := s.e.Store.Read(ctx, store.Want{Scans: []store.Scan{scan}})
		if err != nil {
			return txn.PublicFault(err)
		}
		found = loaded.Scanned[0]
	}
}

func (s *stepsReader) count(doc *store.Doc) {
	s.loaded++
	s.bytes += len(doc.Data)
}

// next is how many steps are loaded next, by the size of those so far.
func (s *stepsReader) next() int {
	return min(max(stepsInMemory/max(s.bytes/max(s.loaded, 1), 1), fewSteps), manySteps)
}

// page returns the part that is asked for.
func (s *stepsReader) page(ctx context.Context, r StepsRequest) (StepsPage, error) {
	rest := s.records[min(r.From, len(s.records)):]
	page := StepsPage{Records: []core.StepRecord{}}
	for bytes := 0; len(rest) > 0; {
		if r.Limit > 0 && len(page.Records) == r.Limit {
			break
		}
		part := rest
		if !s.results {
			part = rest[:min(s.next(), len(rest))]
			if err := s.load(ctx, part); err != nil {
				return StepsPage{}, err
			}
		}
		for i := range part {
			record := part[i]
			if size := len(record.Result); r.Above > 0 && size > r.Above {
				record.Result, record.Size = nil, size
			}
			bytes += len(record.Result)
			if r.Limit > 0 && len(page.Records) == r.Limit || r.Bytes > 0 && bytes > r.Bytes && len(page.Records) > 0 {
				page.More = true
				return page, nil
			}
			page.Records = append(page.Records, record)
			part[i].Result = nil
		}
		rest = rest[len(part):]
	}
	page.More = len(rest) > 0
	return page, nil
}

// load reads the results of steps. Of one that was removed meanwhile there is none.
func (s *stepsReader) load(ctx context.Context, records []core.StepRecord) error {
	var want store.Want
	for i := range records {
		want.Docs = append(want.Docs, stepRef(s.id, records[i].RunIndex, records[i].Name))
	}
	loaded, err := s.e.Store.Read(ctx, want)
	if err != nil {
		return txn.PublicFault(err)
	}
	for i := range records {
		doc := loaded.Docs[want.Docs[i]]
		s.count(&doc)
		records[i].Result = doc.Data
	}
	return nil
}
