package store

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// cycle is what the three commits of n executions that are submitted, claimed and completed hold.
type cycle struct {
	executions                     []*core.Execution
	submitted, acquired, completed []core.Event
	records                        []core.LeaseRecord
}

// runCycle lets core tell a cycle, so that the codecs are measured with the events that they see.
func runCycle(tb testing.TB, n int) cycle {
	var c cycle
	s := core.Submission{Kind: "charge", Creator: "client-7", Input: core.Payload{Data: []byte(`{"amount":12}`), Size: 13}}
	if err := s.Normalize(base.DefaultLimits()); err != nil {
		tb.Fatal(err)
	}
	class := s.Class()
	effects := func(after base.Millis, actor string) *core.Effects {
		return &core.Effects{Now: base.Time(1_790_000_000_000).Add(after), Actor: core.Actor{Type: actor, ID: "worker-1"}}
	}
	for i := range n {
		id := base.UUID{1, byte(i), byte(i >> 8), 0x70, 9}
		fx := effects(0, "client")
		x := core.NewExecution(fx, &s, base.IDOf(id), &class)
		c.submitted = append(c.submitted, fx.Events...)

		fx = effects(5, "worker")
		x.Acquire(fx, core.Acquisition{
			LeaseID: base.UUID{2, id[1], id[2]}, AttemptID: base.UUID{3, id[1], id[2]},
			WorkerID: "worker-1", InstanceID: "worker-1@host-17-4242", TTL: 30_000, RequestKey: "r-1234567890",
		})
		c.acquired = append(c.acquired, fx.Events...)
		c.executions = append(c.executions, x.Clone())

		fx = effects(17, "worker")
		fence := core.Fence{LeaseID: x.Lease.ID, Epoch: 1, AttemptID: x.Attempt.ID}
		result := &core.Payload{ContentType: "application/json", Data: []byte("1"), Size: 1}
		if _, err := x.Complete(fx, core.Completion{Fence: fence, Result: result}); err != nil {
			tb.Fatal(err)
		}
		c.completed = append(c.completed, fx.Events...)
		c.records = append(c.records, fx.History...)
	}
	return c
}
