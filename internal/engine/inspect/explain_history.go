package inspect

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// historyReads bounds how often the store is asked for older events: there is no index of the events of one execution. Events in memory cost
// nothing.
const historyReads = 16

// history returns the last changes of status and reason in the log, oldest first. The current one is always among them.
func (e *Inspector) history(ctx context.Context, x *core.Execution) ([]core.StatusChange, error) {
	seen, err := e.Store.Poll(ctx, store.PollAsk{})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	var events []core.Event // newest first
	reads := 0
	for to := seen.LogEnd; to > seen.LogStart && reads < historyReads; to -= txn.LogRead {
		from := max(to-txn.LogRead, seen.LogStart)
		if !e.Log.Holds(from + 1) {
			reads++
		}
		commits, err := e.logBetween(ctx, from, to)
		if err != nil {
			return nil, txn.PublicFault(err)
		}
		events = append(events, eventsOf(commits, x.ID.UUID)...)
		begun := slices.ContainsFunc(events, func(ev core.Event) bool { return ev.Kind == "execution.submitted" })
		if begun || len(commits) > 0 && commits[0].At < x.CreatedAt || len(core.ChangesOf(oldestFirst(events))) == core.HistoryShown {
			break
		}
	}
	changes := core.ChangesOf(oldestFirst(events))
	if n := len(changes); n == 0 || changes[n-1].Status != x.Status || changes[n-1].Reason != x.Reason {
		changes = append(changes, core.StatusChange{At: x.StatusSince, Status: x.Status, Reason: x.Reason})
	}
	return changes[max(0, len(changes)-core.HistoryShown):], nil
}

// logBetween reads the commits behind one position up to another.
func (e *Inspector) logBetween(ctx context.Context, from, to int64) (all []store.Commit, err error) {
	for from < to {
		commits, err := e.Log.Read(ctx, from, int(to-from))
		if err != nil || len(commits) == 0 {
			return all, err
		}
		all = append(all, commits...)
		from = commits[len(commits)-1].Seq
	}
	return all, nil
}

// eventsOf are the events of one execution, newest first.
func eventsOf(commits []store.Commit, id base.UUID) (events []core.Event) {
	for _, commit := range slices.Backward(commits) {
		for _, event := range slices.Backward(commit.Events) {
			if event.ExecutionID.UUID == id && event.Kind != core.SilentChange {
				events = append(events, event)
			}
		}
	}
	return events
}

func oldestFirst(events []core.Event) []core.Event {
	ordered := slices.Clone(events)
	slices.Reverse(ordered)
	return ordered
}
