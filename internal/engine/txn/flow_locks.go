package txn

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// flowLocker is a command that needs the locks of flows. They are taken after all other locks, for a whole batch at once.
type flowLocker interface {
	command
	Flows(u *Tx) []base.UUID
}

// graphed is a command that then reads what only those locks protect.
type graphed interface {
	command
	graph(ctx context.Context, u *Tx) error
}

// lockGraphs locks the flows that the commands of a batch need, and lets them look.
func (u *Tx) lockGraphs(ctx context.Context, batch []*request) error {
	var flows []base.UUID
	for _, r := range batch {
		locker, ok := r.command.(flowLocker)
		if !ok {
			continue
		}
		for _, id := range locker.Flows(u) {
			if !id.IsZero() && !slices.Contains(flows, id) {
				flows = append(flows, id)
			}
		}
	}
	if err := u.lockFlows(ctx, flows, nil, store.Want{}); err != nil {
		return err
	}
	for _, r := range batch {
		if g, ok := r.command.(graphed); ok {
			if err := g.graph(ctx, u); err != nil {
				return err
			}
		}
	}
	return nil
}
