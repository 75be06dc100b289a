package streams

import (
	"cmp"
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/stream"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// view is what there is of the streams of an execution at one moment.
type view struct {
	x        *core.Execution
	now      base.Time
	attempts []attempt // by index; without those before the newest unless they were asked for
	runFrom  int       // stream.History.RunFrom, if those were asked for
}

// attempt is an attempt with the head of its stream, whose close follows from the attempt.
type attempt struct {
	core.Attempt
	head stream.Head
}

// newest is the newest attempt; nil: none has begun.
func (v *view) newest() *attempt {
	if len(v.attempts) == 0 {
		return nil
	}
	return &v.attempts[len(v.attempts)-1]
}

// find returns an attempt; nil: there is none, or it is older than what was read.
func (v *view) find(index int) *attempt {
	at, ok := slices.BinarySearchFunc(v.attempts, index, func(a attempt, index int) int { return cmp.Compare(a.Index, index) })
	if !ok {
		return nil
	}
	return &v.attempts[at]
}

// see reads the streams of an execution, in one snapshot. older is set to read the attempts before the newest, too. Codes: execution_not_found.
func (e *Streams) see(ctx context.Context, c txn.Caller, id base.GivenID, older bool) (*view, error) {
	owner := txn.Owner(id.UUID)
	want := store.Want{
		Executions: []base.UUID{id.UUID},
		Owned:      []store.Owned{{Kind: docHead, Owner: owner}, {Kind: docTimedOut, Owner: owner}},
	}
	if older {
		want.History = []store.HistoryRef{{ID: id.UUID, All: true}}
	}
	loaded, x, err := e.ReadOne(ctx, c, id, want)
	if err != nil {
		return nil, err
	}
	v := &view{x: x, now: loaded.Now}
	timedOut := map[string]bool{}
	for _, doc := range loaded.Owned[want.Owned[1]] {
		timedOut[doc.Key] = true
	}
	v.addAttempts(loaded.History, timedOut)
	heads := map[string]*store.Doc{}
	docs := loaded.Owned[want.Owned[0]]
	for i := range docs {
		heads[docs[i].Key] = &docs[i]
	}
	for i := range v.attempts {
		if err := v.attempts[i].addHead(heads[v.attempts[i].ID.String()]); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// AttemptStream is an attempt with what there is of its stream.
type AttemptStream struct {
	core.Attempt
	FrameCount int64 // frames that were appended, whether they are retained or not
	Bytes      int64 // of their payloads
	Closed     stream.Closing
}

// AttemptStreams lists the attempts of an execution by index (L126), each with its stream. Codes: execution_not_found.
func (e *Streams) AttemptStreams(ctx context.Context, c txn.Caller, id base.GivenID) ([]AttemptStream, error) {
	v, err := e.see(ctx, c, id, true)
	if err != nil {
		return nil, err
	}
	all := make([]AttemptStream, len(v.attempts))
	for i := range v.attempts {
		all[i] = v.attempts[i].shown()
	}
	return all, nil
}

// AttemptStream returns one attempt with its stream: that of an index, or the newest one. Codes: execution_not_found, attempt_not_found.
func (e *Streams) AttemptStream(ctx context.Context, c txn.Caller, id base.GivenID, index int) (AttemptStream, error) {
	_, a, err := e.seeAttempt(ctx, c, id, index)
	if err != nil {
		return AttemptStream{}, err
	}
	return a.shown(), nil
}

func (a *attempt) shown() AttemptStream {
	return AttemptStream{Attempt: a.Attempt, FrameCount: a.head.LastSeq, Bytes: a.head.Bytes(), Closed: a.head.Closed}
}

// addHead adds the head of the attempt's stream; nil: it has no frames. Whether it is closed is known.
func (a *attempt) addHead(doc *store.Doc) error {
	if doc == nil {
		return nil
	}
	head, err := decodeHead(doc)
	if err != nil {
		return err
	}
	head.Attempt, head.Closed = a.Index, a.head.Closed
	a.head = head
	return nil
}

// addAttempts lists the attempts of the records, the newest one of the execution itself included.
func (v *view) addAttempts(records []core.LeaseRecord, timedOut map[string]bool) {
	last := map[int]*core.LeaseRecord{}
	for i := range records {
		record := &records[i]
		if known := last[record.Attempt.Index]; known == nil || known.Epoch <= record.Epoch {
			last[record.Attempt.Index] = record
		}
	}
	v.runFrom = v.x.TotalAttempts
	add := func(a core.Attempt, run int, end leaseEnd) {
		closed := closing(&a, end, timedOut[a.ID.String()])
		v.attempts = append(v.attempts, attempt{Attempt: a, head: stream.Head{Attempt: a.Index, Closed: closed}})
		if run == v.x.RunIndex() {
			v.runFrom = min(v.runFrom, a.Index)
		}
	}
	newest := v.x.Attempt
	for index, record := range last {
		if newest == nil || index != newest.Index {
			add(record.Attempt, record.RunIndex, leaseEnd{record.End, record.EndedAt})
		}
	}
	if newest != nil {
		run, end := v.x.RunIndex(), leaseEnd{}
		if v.x.Lease == nil { // the execution may have been replayed since the lease of this attempt ended
			run = -1
			if record := last[newest.Index]; record != nil {
				run = record.RunIndex
			}
			if lease := v.x.LastLease; lease != nil && lease.AttemptID == newest.ID {
				end = leaseEnd{lease.End, lease.EndedAt}
			}
		}
		add(*newest, run, end)
	}
	slices.SortFunc(v.attempts, func(a, b attempt) int { return cmp.Compare(a.Index, b.Index) })
}

// history is what a follower needs to know.
func (v *view) history() *stream.History {
	h := &stream.History{Attempts: make([]stream.Attempt, len(v.attempts))}
	for i := range v.attempts {
		a := &v.attempts[i]
		h.Attempts[i] = stream.Attempt{
			Index: a.Index, Type: a.Type.String(), StartedAt: a.StartedAt, LastSeq: a.head.LastSeq, Closed: a.head.Closed,
		}
	}
	if v.x.ReplayCount > 0 {
		h.RunFrom = v.runFrom
	}
	if v.x.Status.Terminal() {
		h.End = stream.Ending{Outcome: v.x.Status.Outcome(), At: v.x.CompletedAt}
	}
	return h
}
