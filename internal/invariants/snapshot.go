package invariants

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Snapshot is what a store holds at one moment: all its executions, all its queues, the places taken in its lanes, and its flows.
type Snapshot struct {
	Records  map[base.UUID]Record
	Queue    []store.QueueRow
	Counters map[string]int64
	Graphs   []Graph
}

// Audit holds everything in a store to what must hold. Executions are found by the log, which must reach back to their submits.
// Others may work on the store meanwhile: an execution that changes while it is looked at is not held against its events.
func Audit(ctx context.Context, s store.Store) ([]string, error) {
	events, after, err := readLog(ctx, s, 0)
	if err != nil {
		return nil, err
	}
	snap, err := Take(ctx, s, slices.Collect(maps.Keys(events)))
	if err != nil {
		return nil, err
	}
	since, _, err := readLog(ctx, s, after)
	if err != nil {
		return nil, err
	}
	found := snap.Broken()
	for id, r := range snap.Records {
		if since[id] != nil {
			continue
		}
		if text := History(r.X, events[id]); text != "" {
			found = append(found, r.X.ID.String()+": "+text)
		}
	}
	return found, nil
}

// readLog reads the events of executions after a position, and tells where the log ends.
func readLog(ctx context.Context, s store.Store, after int64) (map[base.UUID][]core.Event, int64, error) {
	events := map[base.UUID][]core.Event{}
	for {
		commits, err := s.Log(ctx, after, 1000)
		if err != nil {
			return nil, 0, fmt.Errorf("read the log: %w", err)
		}
		if len(commits) == 0 {
			return events, after, nil
		}
		for _, commit := range commits {
			after = commit.Seq
			if commit.Unreadable != nil {
				return nil, 0, fmt.Errorf("commit %d of the log: %w", commit.Seq, commit.Unreadable)
			}
			for _, ev := range commit.Events {
				if id := ev.ExecutionID; !id.IsZero() && ev.Kind != core.SilentChange {
					events[id.UUID] = append(events[id.UUID], ev)
				}
			}
		}
	}
}

// Take reads a snapshot. ids are all executions that exist; those that do not are left out. One that was submitted since they were
// listed is found by its row in the queue.
func Take(ctx context.Context, s store.Store, ids []base.UUID) (*Snapshot, error) {
	dict, err := s.Dictionary(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the dictionary: %w", err)
	}
	want, err := wantGraphs(ctx, s)
	if err != nil {
		return nil, err
	}
	ids = union(ids, want.Executions) // a member is known by its flow too
	want.Executions = ids
	for _, id := range ids {
		want.History = append(want.History, store.HistoryRef{ID: id, All: true})
	}
	if want.Pick, err = queues(ctx, s, dict.Classes, len(ids)+1); err != nil {
		return nil, err
	}
	want.Counters = counted(dict)
	loaded, err := s.Read(ctx, want)
	if err != nil {
		return nil, fmt.Errorf("read all executions: %w", err)
	}
	if more := union(ids, idsOf(loaded.Picked)); len(more) > len(ids) {
		return Take(ctx, s, more)
	}
	snap := &Snapshot{Records: map[base.UUID]Record{}, Queue: loaded.Picked, Counters: loaded.Counters}
	for _, id := range ids {
		if x := loaded.Executions[id]; x != nil {
			snap.Records[id] = Record{X: x}
		}
	}
	for _, entry := range loaded.History {
		if r, ok := snap.Records[entry.ExecutionID.UUID]; ok {
			r.History = append(r.History, entry)
			snap.Records[entry.ExecutionID.UUID] = r
		}
	}
	snap.Graphs, err = graphsIn(want, loaded)
	return snap, err
}

func idsOf(rows []store.QueueRow) (ids []base.UUID) {
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	return ids
}

// union lists what is in one of two lists, once.
func union(a, b []base.UUID) []base.UUID {
	known := map[base.UUID]bool{}
	for _, id := range slices.Concat(a, b) {
		known[id] = true
	}
	return slices.Collect(maps.Keys(known))
}

// queues asks for all rows of all classes, whatever they wait for.
func queues(ctx context.Context, s store.Store, classes []*core.Class, limit int) (picks []store.Pick, err error) {
	var want store.Want
	for _, class := range classes {
		want.Blocks = append(want.Blocks, class.ID)
	}
	loaded, err := s.Read(ctx, want)
	if err != nil {
		return nil, fmt.Errorf("read the queues: %w", err)
	}
	for _, class := range classes {
		for _, block := range append(loaded.Blocks[class.ID], 0) {
			picks = append(picks, store.Pick{Class: class.ID, Block: block, Floor: math.MinInt64, Limit: limit})
		}
	}
	return picks, nil
}

// counted are the keys of all counters: of places in lanes and of the slots that classes need.
func counted(dict *store.Dictionary) []string {
	keys := map[string]bool{}
	for i := range dict.Lanes {
		keys["lane:"+dict.Lanes[i].Name] = true
	}
	for _, class := range dict.Classes {
		if needs, err := core.ParseNeeds(class.Needs); err == nil && needs != nil {
			for _, use := range needs.Quotas {
				keys[use.SlotsKey()] = true
			}
		}
	}
	return slices.Collect(maps.Keys(keys))
}

// Broken lists what does not hold of the records and of the indexes.
func (s *Snapshot) Broken() []string {
	var found []string
	for _, r := range s.Records {
		for _, text := range r.Broken() {
			found = append(found, r.X.ID.String()+": "+text)
		}
	}
	return append(append(found, s.membership()...), s.graphs()...)
}

// stateOf tells what the record of an execution says.
func (s *Snapshot) stateOf(id base.UUID) string {
	r, exists := s.Records[id]
	if !exists {
		return "there is no such execution"
	}
	return fmt.Sprintf("it is %s, in class %d and block %d by %v", r.X.Status, r.X.Class.ID, r.X.Block(), r.X.OrderKey)
}

// membership is I17 and I18 for the queues and the counters.
func (s *Snapshot) membership() []string {
	var found []string
	want := map[store.QueueRow]bool{}
	places := map[string]int64{}
	for _, r := range s.Records {
		if r.X.Queued() {
			want[store.QueueRow{Class: r.X.Class.ID, Block: r.X.Block(), Order: r.X.OrderKey, ID: r.X.ID.UUID}] = true
		}
		for _, key := range r.X.Holds {
			places[key]++
		}
	}
	for _, row := range s.Queue {
		if !want[row] {
			found = append(found, fmt.Sprintf("I18: the queue has a row of %s that it should not have: %s", row.ID, s.stateOf(row.ID)))
		}
		delete(want, row)
	}
	for row := range want {
		found = append(found, fmt.Sprintf("I17: %s waits for a worker and is in no queue", row.ID))
	}
	for key, n := range s.Counters {
		if n != places[key] {
			found = append(found, fmt.Sprintf("I18: %s counts %d, %d hold it", key, n, places[key]))
		}
	}
	for key, n := range places {
		if s.Counters[key] != n {
			found = append(found, fmt.Sprintf("I18: %s is held by %d and counts %d", key, n, s.Counters[key]))
		}
	}
	return found
}
