package inspect

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Integrity recounts what is stored redundantly and compares it with the records (U113). It reads in batches while the engine runs: a row is judged
// by one snapshot, and one that changes meanwhile is skipped; a counter is judged by a walk during which nothing has changed that it counts.

const (
	integrityBatch = 500
	integrityTries = 3      // walks until a counter was not disturbed
	mostDisturbed  = 10_000 // executions that may change during a walk of which anything is judged
	sameOrder      = 1000   // queue rows with the same order key that are looked at
	maxDamage      = 1000   // damaged records that are named
)

// The things that are recounted.
const (
	checkPages      = "pages"       // the database's own structures
	checkStored     = "records"     // every record and payload can be read and is what was written
	checkSearchRows = "search_rows" // the status that lists find an execution under is that of its record
	checkQueued     = "queued"      // every queued execution is in its queue
	checkQueueRows  = "queue_rows"  // every row of a queue is of a queued execution
	checkPlaces     = "lane_places" // the places taken in a lane are those that its executions hold
	checkSlots      = "quota_slots" // the slots taken of a quota are those that executions hold (S42)
	checkWaitMarks  = "wait_marks"  // what waits are found by, in lists and by ids, is what the records say
	checkGraphs     = "flows"       // what flows and joins have counted is what their members and edges say
	checkBudgets    = "budgets"     // the reservations of budgets and their holders agree with the records
)

// IntegrityReport is what a recount found.
type IntegrityReport struct {
	Checked     []string
	Differences []Difference
}

// Difference is something that does not agree with the records.
type Difference struct {
	What   string
	Key    string
	Stored int64
	Found  int64
}

// Integrity recounts and compares. Damage is looked for first: nothing is compared with pages that cannot be read, nor is anything that needs a
// damaged record.
func (e *Inspector) Integrity(ctx context.Context) (report IntegrityReport, err error) {
	if err := e.lookForDamage(ctx, &report); err != nil || slices.ContainsFunc(report.Differences, func(d Difference) bool { return d.What == checkPages }) {
		return report, err
	}
	damaged := len(report.Differences) > 0
	if e.Cfg.NoTimers { // then perhaps no other process updates the search rows, which the checks wait for
		defer e.followMeanwhile()()
	}
	report.Checked = append(report.Checked, checkSearchRows, checkQueued, checkQueueRows, checkPlaces, checkSlots, checkWaitMarks, checkBudgets, checkGraphs)
	for _, check := range []func(context.Context) ([]Difference, error){
		e.checkRecords, e.checkQueues, e.checkPlaces, e.checkWaitMarks, e.checkBudgets, e.checkFlows,
	} {
		found, err := check(ctx)
		switch {
		case damaged && base.CodeOf(err) == base.CodeCorruption: // which the report names
		case err != nil:
			return IntegrityReport{}, err
		}
		report.Differences = append(report.Differences, found...)
	}
	return report, nil
}

// lookForDamage lets the database look at its own structures, and compares records and payloads with their checksums.
func (e *Inspector) lookForDamage(ctx context.Context, report *IntegrityReport) error {
	if checker, able := e.Store.(store.Checker); able {
		report.Checked = append(report.Checked, checkPages)
		damage, err := checker.Check(ctx)
		if err != nil {
			return txn.PublicFault(err)
		}
		for _, line := range damage {
			report.Differences = append(report.Differences, Difference{What: checkPages, Key: line})
		}
		if len(damage) > 0 { // then reading may fail, or not end
			return nil
		}
	}
	scrubber, able := e.Store.(store.Scrubber)
	if !able {
		return nil
	}
	report.Checked = append(report.Checked, checkStored)
	err := scrubber.Scrub(ctx, func(what error) {
		if len(report.Differences) < maxDamage {
			report.Differences = append(report.Differences, Difference{What: checkStored, Key: what.Error()})
		}
	})
	if err != nil {
		return txn.PublicFault(err)
	}
	return nil
}

// followMeanwhile runs the follower until the returned function is called.
func (e *Inspector) followMeanwhile() (stop func()) {
	ctx, cancel := context.WithCancel(e.Lifetime)
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.KeepRunning(txn.InSearch, func() { e.Follower.Run(ctx) })
	}()
	return func() { cancel(); <-done }
}

// eachStatus walks the search rows status by status and hands over the records behind them.
func (e *Inspector) eachStatus(ctx context.Context, statuses []core.Status, look func(status core.Status, ids []base.UUID, loaded *store.Loaded) error) error {
	if err := e.Follower.ReachAll(ctx); err != nil {
		return err
	}
	for _, status := range statuses {
		q := store.Query{Statuses: []core.Status{status}, Order: store.IDAsc, Limit: integrityBatch}
		for {
			hits, err := e.Store.Find(ctx, q)
			if err != nil {
				return txn.PublicFault(err)
			}
			ids := make([]base.UUID, len(hits))
			for i, hit := range hits {
				ids[i] = hit.ID
			}
			loaded, err := e.Store.Read(ctx, store.Want{Executions: ids, SkipUnreadable: true})
			if err != nil {
				return txn.PublicFault(err)
			}
			if err := look(status, ids, loaded); err != nil {
				return err
			}
			if len(hits) < integrityBatch {
				break
			}
			q.After = &hits[len(hits)-1]
		}
	}
	return nil
}

// checkRecords compares search rows, and queues and marks of waits as far as records say that they are there.
func (e *Inspector) checkRecords(ctx context.Context) (found []Difference, err error) {
	err = e.eachStatus(ctx, core.Statuses(), func(status core.Status, ids []base.UUID, loaded *store.Loaded) error {
		var queued []*core.Execution
		for _, id := range ids {
			x := loaded.Executions[id]
			if (x == nil || x.Status != status) && !e.movedOn(ctx, id, status) {
				found = append(found, Difference{What: checkSearchRows, Key: id.String(), Stored: int64(status), Found: statusNumber(x)})
			}
			if x != nil && x.Queued() {
				queued = append(queued, x)
			}
		}
		missing, err := e.notQueued(ctx, queued, 1)
		if err == nil && len(missing) > 0 {
			missing, err = e.notQueued(ctx, missing, sameOrder)
		}
		for _, x := range missing {
			found = append(found, Difference{What: checkQueued, Key: x.ID.String(), Found: 1})
		}
		if err != nil {
			return err
		}
		unmarked, err := e.unmarked(ctx, loaded)
		found = append(found, unmarked...)
		return err
	})
	return found, err
}

func statusNumber(x *core.Execution) int64 {
	if x == nil {
		return 0
	}
	return int64(x.Status)
}

// movedOn reports whether a search row that did not fit was only late. It is wrong for certain if it is still there once the search rows are up to
// date with a record that has not changed meanwhile.
func (e *Inspector) movedOn(ctx context.Context, id base.UUID, status core.Status) bool {
	record := func() (x *core.Execution, known bool) {
		loaded, err := e.Store.Read(ctx, store.Want{Executions: []base.UUID{id}, SkipUnreadable: true})
		if err != nil || loaded.Unreadable[id] != nil {
			return nil, false
		}
		return loaded.Executions[id], true
	}
	for range integrityTries {
		before, known := record()
		if !known || e.Follower.ReachAll(ctx) != nil {
			return true
		}
		hits, err := e.Store.Find(ctx, store.Query{
			Statuses: []core.Status{status}, Text: &store.Text{IDPrefix: id.String()}, Order: store.IDAsc, Limit: 1,
		})
		if err != nil || len(hits) == 0 {
			return true
		}
		after, known := record()
		if !known || after != nil && after.Status == status {
			return true
		}
		if (before == nil) == (after == nil) && (after == nil || before.Version == after.Version) {
			return false
		}
	}
	return true
}

// notQueued finds queued executions that are not among the first rows of their queue from their own order key on. Those that have
// moved since are not judged.
func (e *Inspector) notQueued(ctx context.Context, all []*core.Execution, rows int) ([]*core.Execution, error) {
	if len(all) == 0 {
		return nil, nil
	}
	want := store.Want{SkipUnreadable: true}
	for _, x := range all {
		want.Executions = append(want.Executions, x.ID.UUID)
		want.Pick = append(want.Pick, store.Pick{Class: x.Class.ID, Block: x.Block(), Floor: x.OrderKey, Limit: rows})
	}
	loaded, err := e.Store.Read(ctx, want)
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	there := make(map[store.QueueRow]bool, len(loaded.Picked))
	for _, row := range loaded.Picked {
		there[row] = true
	}
	var missing []*core.Execution
	for _, x := range all {
		now := loaded.Executions[x.ID.UUID]
		row := store.QueueRow{Class: x.Class.ID, Block: x.Block(), Order: x.OrderKey, ID: x.ID.UUID}
		if now != nil && now.Queued() && now.OrderKey == x.OrderKey && now.Block() == x.Block() && !there[row] {
			missing = append(missing, x)
		}
	}
	return missing, nil
}

// checkQueues compares the rows of every queue with the records.
func (e *Inspector) checkQueues(ctx context.Context) (found []Difference, err error) {
	for some := range slices.Chunk(slices.Collect(e.Dict.Now().AllUsable()), limits.ClassesAsked) {
		numbers := limits.ClassNumbers(some)
		loaded, err := e.Store.Read(ctx, store.Want{Blocks: numbers})
		if err != nil {
			return nil, txn.PublicFault(err)
		}
		for _, class := range numbers {
			for _, block := range append(loaded.Blocks[class], 0) {
				wrong, err := e.checkQueue(ctx, store.Pick{Class: class, Block: block, Floor: math.MinInt64, Limit: integrityBatch})
				if err != nil {
					return nil, err
				}
				found = append(found, wrong...)
			}
		}
	}
	slices.SortFunc(found, func(a, b Difference) int { return strings.Compare(a.Key, b.Key) })
	return slices.Compact(found), nil
}

// checkQueue compares the rows of one queue with the records.
func (e *Inspector) checkQueue(ctx context.Context, pick store.Pick) (found []Difference, err error) {
	for {
		rows, wrong, err := e.orphans(ctx, pick)
		if err != nil {
			return nil, txn.PublicFault(err)
		}
		found = append(found, wrong...)
		if len(rows) < pick.Limit {
			return found, nil
		}
		if last := rows[len(rows)-1].Order; last > pick.Floor {
			pick.Floor = last // its rows come again: there may be more of them
		} else {
			pick.Limit *= 2
		}
	}
}

// orphans finds, in a part of a queue, the rows whose execution is not queued there. Rows and records are compared in one snapshot.
func (e *Inspector) orphans(ctx context.Context, pick store.Pick) (rows []store.QueueRow, found []Difference, err error) {
	want := store.Want{Pick: []store.Pick{pick}, SkipUnreadable: true}
	loaded, err := e.Store.Read(ctx, want)
	if err != nil || len(loaded.Picked) == 0 {
		return nil, nil, err
	}
	asked := map[base.UUID]bool{}
	for _, row := range loaded.Picked {
		want.Executions = append(want.Executions, row.ID)
		asked[row.ID] = true
	}
	if loaded, err = e.Store.Read(ctx, want); err != nil {
		return nil, nil, err
	}
	for _, row := range loaded.Picked {
		x := loaded.Executions[row.ID]
		if asked[row.ID] && loaded.Unreadable[row.ID] == nil && (x == nil || !x.Queued() || x.Class.ID != row.Class || x.Block() != row.Block || x.OrderKey != row.Order) {
			found = append(found, Difference{What: checkQueueRows, Key: row.ID.String(), Stored: 1})
		}
	}
	return loaded.Picked, found, nil
}
