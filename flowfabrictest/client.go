package flowfabrictest

import (
	"context"
	"net/http"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/inprocess"
	"github.com/flowfabric/flowfabric/internal/mint"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// surviving is the transport of an environment: it does operations in the process that lives.
type surviving struct{ env *Env }

// newClient makes the client of the environment.
func (e *Env) newClient() *flowfabric.Client {
	return flowfabric.NewClient(transport.Connection{Transport: surviving{e}, Clock: e.clock, Close: e.Close})
}

// Do does an operation. A command survives the death of the process: it is repeated in the next one, under the same key.
func (s surviving) Do(ctx context.Context, op *wire.Operation, request, answer any, how transport.Options) error {
	if how.Key == "" && op.Method != http.MethodGet {
		how.Key = mint.Key(s.env.clock)
	}
	switch op {
	case wire.DeleteQuota.Operation, wire.DeleteBudget.Operation, wire.ListExecutions.Operation, wire.CountExecutions.Operation, wire.StartBulk.Operation:
		s.env.Settle() // what is attached to a quota or names a budget, lists, counts and bulk jobs follow the log
	}
	if _, streams := answer.(*wire.Sink); streams { // it has what came before the process died
		return s.env.alive(ctx).client.Connection().Do(ctx, op, request, answer, how)
	}
	for {
		p := s.env.alive(ctx)
		during, cancel := p.during(ctx)
		err := p.client.Connection().Do(during, op, request, answer, how)
		cancel()
		if err == nil || !p.dead() || ctx.Err() != nil {
			return err
		}
		how.Again = true
	}
}

// Here is the engine of the process that lives.
func (s surviving) Here() *inprocess.Engine {
	here, _ := inprocess.Of(s.env.alive(context.Background()).client)
	return here
}
