package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/transport"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// WatchWork returns a client that also calls answered with a pointer to each answer of an operation, such as *RegisterResult,
// *ClaimAnswer, or *[]WorkAnswer of Work.Do.
func WatchWork(c *Client, answered func(answer any)) *Client {
	conn := c.conn
	conn.Transport = watched{conn.Transport, answered}
	return NewClient(conn)
}

type watched struct {
	transport.Transport
	answered func(answer any)
}

func (w watched) Do(ctx context.Context, op *wire.Operation, request, answer any, how transport.Options) error {
	err := w.Transport.Do(ctx, op, request, answer, how)
	if err == nil {
		w.answered(answer)
	}
	return err
}

// WrapWork returns a client that passes commands under leases to do, which may pass them on to the Work of c.
func WrapWork(c *Client, do func(ctx context.Context, items ...api.WorkItem) ([]api.WorkAnswer, error)) *Client {
	conn := c.conn
	conn.Transport = wrapped{conn.Transport, do}
	return NewClient(conn)
}

type wrapped struct {
	transport.Transport
	do func(ctx context.Context, items ...api.WorkItem) ([]api.WorkAnswer, error)
}

func (w wrapped) Do(ctx context.Context, op *wire.Operation, request, answer any, how transport.Options) (err error) {
	if commands, ok := request.(*wire.WorkBatch); ok {
		*answer.(*[]api.WorkAnswer), err = w.do(ctx, commands.Items...)
		return err
	}
	return w.Transport.Do(ctx, op, request, answer, how)
}
