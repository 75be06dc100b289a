package flowfabrictest

import (
	"context"
	"net/http"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Do does an operation in the process that lives. A command survives the death of that process: it is repeated in the next one, under the
// same key. It serves the clients of this module.
func (e *Env) Do(ctx context.Context, op *wire.Operation, request, answer any, how transport.Options) error {
	if how.Key == "" && op.Method != http.MethodGet {
		how.Key = e.mintKey()
	}
	switch op {
	case wire.DeleteQuota.Operation, wire.DeleteBudget.Operation, wire.ListExecutions.Operation, wire.CountExecutions.Operation, wire.StartBulk.Operation:
		e.Settle() // what is attached to a quota or names a budget, lists, counts and bulk jobs follow the log
	}
	if _, streams := answer.(*wire.Sink); streams { // it has what came before the process died
		return e.alive(ctx).client.Do(ctx, op, request, answer, how)
	}
	_, err := again(ctx, e, func(ctx context.Context, c flowfabric.Client) (flowfabric.None, error) {
		err := c.Do(ctx, op, request, answer, how)
		how.Again = true // in the next process, if this one died
		return flowfabric.None{}, err
	})
	return err
}
