package claims

import (
	"context"
	"maps"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/waits"
	"github.com/flowfabric/flowfabric/internal/store"
)

// A task that continues after a suspension contains how the suspension ended (W80). That is read after the leases are committed: the records of a
// wait that is over do not change any more. Work that never waited costs nothing.

// attachAll gives the tasks of one answer what is read once their leases are committed: their named inputs, the children
// that they waited for, and the waits that are over.
func (e *Claims) attachAll(ctx context.Context, tasks []txn.Task) ([]txn.Task, error) {
	if err := e.AttachInputs(ctx, tasks); err != nil {
		return nil, err
	}
	if err := e.AttachChildren(ctx, tasks); err != nil {
		return nil, err
	}
	return e.attachWaits(ctx, tasks)
}

// attachWaits adds the waits that are over to the tasks of one answer, with one read for all wait states and one for all payloads. A task whose wait
// cannot be read is left out: no worker could continue it, and its lease lapses (W10). If the store does not answer, that is an error only if there
// is no other task: the same claim again gets the leases.
func (e *Claims) attachWaits(ctx context.Context, tasks []txn.Task) ([]txn.Task, error) {
	resumed, unreadable, fault := e.resumedWaits(ctx, tasks)
	if len(resumed)+len(unreadable) == 0 {
		return tasks, nil
	}
	complete := make([]txn.Task, 0, len(tasks))
	for _, t := range tasks {
		id := t.Execution.ID
		if why := unreadable[id.UUID]; why != nil {
			e.QuietLog.Error("the wait of a resumed execution cannot be read", "execution_id", id, "error", why)
			continue
		}
		if t.Resumed == nil {
			t.Resumed = resumed[id.UUID]
		}
		complete = append(complete, t)
	}
	if len(complete) == 0 {
		return nil, fault
	}
	return complete, nil
}

// attachOne does the same for one task. Codes: corruption.
func (e *Claims) attachOne(ctx context.Context, t txn.Task) (txn.Task, error) {
	one := []txn.Task{t}
	if err := e.AttachInputs(ctx, one); err != nil {
		return txn.Task{}, err
	}
	if err := e.AttachChildren(ctx, one); err != nil {
		return txn.Task{}, err
	}
	t = one[0]
	resumed, unreadable, _ := e.resumedWaits(ctx, []txn.Task{t})
	if err := unreadable[t.Execution.ID.UUID]; err != nil {
		return txn.Task{}, err
	}
	t.Resumed = resumed[t.Execution.ID.UUID]
	return t, nil
}

// resumedWaits reads the waits that are over, and returns for which executions they cannot be read: for all, if the store does not answer. The
// caller of a claim may have given up: it has the leases in any case, so the answer is built.
func (e *Claims) resumedWaits(ctx context.Context, tasks []txn.Task) (resumed map[base.UUID]*core.Observation, unreadable map[base.UUID]error, fault error) {
	var want store.Want
	room := maxClaimBytes
	for i := range tasks {
		room -= tasks[i].Execution.Input.Size
		if unread(&tasks[i]) {
			want.Owned = append(want.Owned, waits.WaitStateKey(tasks[i].Execution.ID.UUID))
		}
	}
	if len(want.Owned) == 0 {
		return nil, nil, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.Cfg.StoreTimeout)
	defer cancel()
	var loaded *store.Loaded
	fault = e.Insist(ctx, func() (err error) {
		loaded, err = e.Store.Read(ctx, want)
		return err
	})
	if fault != nil {
		return nil, unreadableWaits(tasks, fault), fault
	}
	resumed, unreadable = map[base.UUID]*core.Observation{}, map[base.UUID]error{}
	var data waits.WaitData
	for i := range tasks {
		t := &tasks[i]
		if !unread(t) {
			continue
		}
		shown, err := resumedWait(t, loaded)
		switch id := t.Execution.ID.UUID; {
		case err != nil:
			unreadable[id] = err
		case shown != nil:
			resumed[id] = shown
			room -= data.Observation(id, shown, max(room, 0))
		}
	}
	var missing map[base.UUID]error
	fault = e.Insist(ctx, func() (err error) {
		missing, err = data.Load(ctx, e.Store)
		return err
	})
	if fault != nil {
		return nil, unreadableWaits(tasks, fault), fault
	}
	maps.Copy(unreadable, missing)
	return resumed, unreadable, nil
}

// unread reports whether the task continues after a wait that has not been added to it yet.
func unread(t *txn.Task) bool { return t.ResumedFrom == core.InterruptedSuspended && t.Resumed == nil }

// unreadableWaits returns the same error for all tasks that continue after a wait.
func unreadableWaits(tasks []txn.Task, why error) map[base.UUID]error {
	all := map[base.UUID]error{}
	for i := range tasks {
		if unread(&tasks[i]) {
			all[tasks[i].Execution.ID.UUID] = why
		}
	}
	return all
}

// resumedWait returns the wait after which the task continues, or nil if it continues after something else. Codes: corruption.
func resumedWait(t *txn.Task, loaded *store.Loaded) (*core.Observation, error) {
	d, err := waits.ReadState(loaded, t.Execution.ID.UUID)
	if err != nil {
		return nil, err
	}
	return t.Execution.ResumedWait(d, core.Acquired{How: t.How, ResumedFrom: t.ResumedFrom})
}
