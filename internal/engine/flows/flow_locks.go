package flows

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// flowLocker is a command that needs the locks of flows. They are taken after all other locks, for a whole batch at once.
type flowLocker interface {
	txn.Command
	Flows(u *txn.Tx) []base.UUID
}

// remover is a command that may remove an execution, and then needs the locks of the flows below it.
type remover interface {
	Removing() (id base.UUID, removes bool)
}

// flowsOf are the flows that a command needs locked.
func flowsOf(u *txn.Tx, cmd txn.Command) (ids []base.UUID) {
	if r, ok := cmd.(remover); ok {
		if id, removes := r.Removing(); removes {
			ids = FlowsBelow(u, id)
		}
	}
	if locker, ok := cmd.(flowLocker); ok {
		ids = append(ids, locker.Flows(u)...)
	}
	return ids
}

// graphReader is a command that then reads what only those locks protect.
type graphReader interface {
	txn.Command
	Graph(ctx context.Context, u *txn.Tx) error
}

// lockGraphs locks the flows that the commands of a batch need, and lets them look.
func lockGraphs(ctx context.Context, u *txn.Tx, batch []*txn.Request) error {
	var flows []base.UUID
	for _, r := range batch {
		for _, id := range flowsOf(u, r.Command) {
			if !id.IsZero() && !slices.Contains(flows, id) {
				flows = append(flows, id)
			}
		}
	}
	if err := lockFlows(ctx, u, flows, nil, store.Want{}); err != nil {
		return err
	}
	for _, r := range batch {
		if g, ok := r.Command.(graphReader); ok {
			if err := g.Graph(ctx, u); err != nil {
				return err
			}
		}
	}
	return nil
}
