package txn

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// trimHistory leaves follow-up work behind when entries have left the lease history of an execution (L40).
func (u *Tx) trimHistory(ended *core.LeaseRecord) {
	if _, _, due := core.HistoryLot(ended.Epoch); due && !ended.Replaces {
		u.AddTask(taskTrimHistory, historyLot{Execution: ended.ExecutionID.UUID, Epoch: ended.Epoch})
	}
}

// taskTrimHistory is the kind of that work.
var taskTrimHistory = TaskKind{Name: "trim_history", Timer: 35}

// historyLot are the arguments of taskTrimHistory: the lease that has pushed entries out.
type historyLot struct {
	Execution base.UUID `json:"execution,omitzero"`
	Epoch     int64     `json:"epoch,omitempty"`
}

// dropHistory removes the entries that a lease of that epoch has pushed out of the lease history.
func (e *Engine) dropHistory(ctx context.Context, t *FollowUp[historyLot]) error {
	return e.Do(ctx, &historyTrim{id: t.Args.Execution, epoch: t.Args.Epoch})
}

// historyTrim is the command of dropHistory. It locks the execution, whose removal takes away the same rows.
type historyTrim struct {
	id    base.UUID
	epoch int64
}

func (h *historyTrim) Name() string { return "trim_history" }

func (h *historyTrim) Want(w *store.Want, _ bool) {
	after, upTo, _ := core.HistoryLot(h.epoch)
	w.Executions = append(w.Executions, h.id)
	w.History = append(w.History, store.HistoryRef{ID: h.id, Epoch: after, All: true, Limit: int(upTo - after)})
}

func (h *historyTrim) Decide(u *Tx) error {
	after, upTo, _ := core.HistoryLot(h.epoch)
	for epoch := after + 1; epoch <= upTo; epoch++ {
		if rec, known := u.history[historyKey{h.id, epoch}]; known && rec.Superseded() {
			u.Changes.DropHistory = append(u.Changes.DropHistory, store.HistoryRef{ID: h.id, Epoch: epoch})
		}
	}
	return nil
}
