package storetest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
	"github.com/flowfabric/flowfabric/internal/store"
)

// newUUID mints an id for the time.
func newUUID(at base.Time) base.UUID {
	var random [10]byte
	_, _ = rand.Read(random[:]) // never fails
	return base.MintUUID(at, random)
}

func (w *world) newLane(name string) core.Lane {
	return core.Lane{
		Name: name, Settings: core.LaneSettings{State: core.LaneActive},
		Revision: 1, Since: w.now, RegisteredBy: "submit",
	}
}

func newClass(lane, kind string) core.Class {
	return core.Class{Namespace: "default", Lane: lane, Kind: kind}
}

func payload(contentType string, data []byte) core.Payload {
	return core.Payload{ContentType: contentType, Data: data, Size: len(data)}
}

// execution returns a new execution that is ready to be claimed.
func (w *world) execution() *core.Execution {
	return &core.Execution{
		ID: base.IDOf(newUUID(w.now)), Class: w.class, Creator: "alice",
		Input: payload("text/plain", []byte("input")), Policy: core.DefaultPolicy(),
		Status: core.Ready, Reason: core.WaitingForWorker, Next: core.NextInitial,
		StatusSince: w.now, QueuedAt: w.now, OrderKey: int64(w.now),
		CreatedAt: w.now, LastMutationAt: w.now,
	}
}

func (w *world) executions(n int) []*core.Execution {
	list := make([]*core.Execution, n)
	for i := range list {
		list[i] = w.execution()
	}
	return list
}

// insert writes new executions without queue rows.
func (w *world) insert(ctx context.Context, list ...*core.Execution) []base.UUID {
	w.t.Helper()
	w.add(ctx, &store.Changes{Insert: list})
	return idsOf(list)
}

// file writes new executions and puts them into the queue of their class.
func (w *world) file(ctx context.Context, list ...*core.Execution) []base.UUID {
	w.t.Helper()
	ch := &store.Changes{Insert: list}
	for _, x := range list {
		ch.Enqueue = append(ch.Enqueue, queueRow(x))
	}
	w.add(ctx, ch)
	return idsOf(list)
}

func idsOf(list []*core.Execution) []base.UUID {
	ids := make([]base.UUID, len(list))
	for i, x := range list {
		ids[i] = x.ID.UUID
	}
	return ids
}

func queueRow(x *core.Execution) store.QueueRow {
	return store.QueueRow{Class: x.Class.ID, Block: x.Block(), Order: x.OrderKey, ID: x.ID.UUID}
}

// claimed returns x as an acquisition leaves it.
func claimed(x *core.Execution, now base.Time) *core.Execution {
	y := x.Clone()
	lease, attempt := newUUID(now), newUUID(now)
	y.Status, y.Reason, y.Next, y.StatusSince, y.LastMutationAt = core.Running, core.ReasonNone, core.NextNone, now, now
	y.LeaseEpoch++
	y.Lease = &core.Lease{
		ID: lease, AttemptID: attempt, WorkerID: "w", InstanceID: "w-1",
		AcquiredAt: now, RenewedAt: now, TTL: 30_000, ExpiresAt: now.Add(30_000), RequestKey: "rk",
	}
	y.LastLease = nil
	y.Attempt = &core.Attempt{
		ID: attempt, Index: y.TotalAttempts, Type: core.AttemptInitial, State: core.AttemptStarted, StartedAt: now,
		FirstEpoch: y.LeaseEpoch, LastEpoch: y.LeaseEpoch, WorkerID: "w", InstanceID: "w-1",
	}
	y.TotalAttempts++
	y.StartedAt, y.RunStartedAt = now, now
	y.WakeAt, y.TimerAt = y.Lease.ExpiresAt, y.Lease.ExpiresAt
	return y
}

// completed returns a running x as a completion leaves it, with the entry of the lease history that carries the result.
func completed(x *core.Execution, result *core.Payload, now base.Time) (*core.Execution, core.LeaseRecord) {
	y := x.Clone()
	y.Status, y.Reason, y.Next = core.Succeeded, core.Completed, core.NextNone
	y.StatusSince, y.LastMutationAt, y.CompletedAt = now, now, now
	y.WakeAt, y.TimerAt = 0, 0
	y.Attempt.State, y.Attempt.EndedAt, y.Attempt.RunningMS = core.EndedSuccess, now, now.Sub(x.Lease.AcquiredAt)
	y.LastLease = &core.LastLease{ID: x.Lease.ID, Epoch: x.LeaseEpoch, AttemptID: x.Attempt.ID, EndedAt: now, End: core.EndComplete}
	y.Lease = nil
	if result != nil {
		y.Result, y.ResultEpoch = result, x.LeaseEpoch
	}
	record := core.LeaseRecord{
		ExecutionID: x.ID, Epoch: x.LeaseEpoch, LeaseID: x.Lease.ID, RunIndex: x.ReplayCount, Attempt: *y.Attempt,
		WorkerID: x.Lease.WorkerID, InstanceID: x.Lease.InstanceID, AcquiredAt: x.Lease.AcquiredAt, EndedAt: now,
		End: core.EndComplete, Answer: json.RawMessage(`{"status":"succeeded"}`), Result: result,
	}
	return y, record
}

// event returns an event that identifies the change of x that it describes.
func event(x *core.Execution, at base.Time, n int) core.Event {
	return core.Event{
		Kind: "execution.changed", At: at, Namespace: x.Class.Namespace, ExecutionID: x.ID, Class: x.Class,
		FlowID: x.FlowID, AttemptIndex: -1, Actor: core.Actor{Type: "engine"},
		Data: eventdata.OfJSON(fmt.Appendf(nil, `{"n":%d}`, n)),
	}
}

// asLogged returns what the log keeps of events: of a class only namespace, lane and kind, which outlive its number.
func asLogged(events []core.Event) []core.Event {
	logged := slices.Clone(events)
	for i, e := range logged {
		if e.Class != nil {
			logged[i].Class = &core.Class{Namespace: e.Class.Namespace, Lane: e.Class.Lane, Kind: e.Class.Kind}
		}
	}
	return logged
}

// light returns x as a store loads it without input and result bytes.
func light(x *core.Execution) *core.Execution {
	y := withoutResult(x)
	y.Input.Data = nil
	return y
}

// withoutResult returns x as a store loads it with its input and without the bytes of its result.
func withoutResult(x *core.Execution) *core.Execution {
	y := x.Clone()
	if x.Result != nil {
		result := *x.Result
		result.Data = nil
		y.Result = &result
	}
	return y
}

// everyByte returns all 256 byte values.
func everyByte() []byte {
	data := make([]byte, 256)
	for i := range data {
		data[i] = byte(i)
	}
	return data
}
