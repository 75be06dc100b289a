package flowfabrictest

import (
	"context"
	"net/http"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Do performs an operation in the current process. A command survives a crash of that process: it is repeated in the next one
// with the same key. It is for the clients of this module.
func (e *Env) Do(ctx context.Context, op *wire.Operation, request, answer any, how transport.Options) error {
	if how.Key == "" && op.Method != http.MethodGet {
		how.Key = e.mintKey()
	}
	switch op {
	case wire.DeleteQuota.Operation, wire.DeleteBudget.Operation, wire.ListExecutions.Operation, wire.CountExecutions.Operation, wire.StartBulk.Operation:
		e.Settle() // lists, counts and bulk jobs, and the users of quotas and budgets, follow the log
	}
	if _, streams := answer.(*wire.Sink); streams { // it has received data before the crash
		return e.alive(ctx).client.Do(ctx, op, request, answer, how)
	}
	_, err := again(ctx, e, func(ctx context.Context, c flowfabric.Client) (flowfabric.None, error) {
		err := c.Do(ctx, op, request, answer, how)
		how.Again = true // in the next process, if this one crashed
		return flowfabric.None{}, err
	})
	return err
}
