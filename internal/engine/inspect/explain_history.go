package inspect

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// historyCommits is how many commits are read for the history that is shown.
const historyCommits = 64

// history returns the last changes of status and reason in the log, oldest first. The current one is always among them.
func (e *Inspector) history(ctx context.Context, x *core.Execution) ([]core.StatusChange, error) {
	events, err := e.Events.Newest(ctx, x.ID.UUID, historyCommits)
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	changes := core.ChangesOf(events)
	if n := len(changes); n == 0 || changes[n-1].Status != x.Status || changes[n-1].Reason != x.Reason {
		changes = append(changes, core.StatusChange{At: x.StatusSince, Status: x.Status, Reason: x.Reason})
	}
	return changes[max(0, len(changes)-core.HistoryShown):], nil
}
