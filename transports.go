package flowfabric

import (
	"context"
	"net/http"

	"github.com/flowfabric/flowfabric/internal/principal"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Do does an operation on the engine in this process, for the principal of the context, else for the one that the client was opened for.
func (e *embedded) Do(ctx context.Context, op *wire.Operation, request, answer any, how transport.Options) error {
	return publicError(e.service.Do(ctx, e.serviceCaller(ctx, op, how), op, request, answer))
}

func (e *embedded) serviceCaller(ctx context.Context, op *wire.Operation, how transport.Options) service.Caller {
	key := how.Key
	if key == "" && op.Method != http.MethodGet {
		key = e.mintKey()
	}
	if p, ok := principal.From(ctx); ok {
		return service.Caller{Principal: p, Key: key, AsWorker: how.AsWorker}
	}
	own := principal.Principal{Name: e.principal, Namespace: e.namespace, Namespaces: e.namespaces, Operator: true}
	return service.Caller{Principal: own, Key: key, AsWorker: how.AsWorker}
}

// Do does an operation at the server.
func (r *remote) Do(ctx context.Context, op *wire.Operation, request, answer any, how transport.Options) error {
	if exact, ok := request.(interface{ AskForBytes() }); ok {
		exact.AskForBytes()
	}
	return r.exchange(ctx, op, request, answer, sending{key: how.Key, wait: how.Wait})
}

// value is the answer of a call by value; zero with an error.
func value[T any](answer *T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return *answer, nil
}
