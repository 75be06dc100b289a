package story

import (
	"context"
	"strings"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/examples/stage"
)

// roundsCancelled cancels three flows, each by another policy. In each one parcel is delivered, one is under way, and one waits for that.
func roundsCancelled(ctx context.Context, s *stage.Stage, client *flowfabric.Client, c *courier) error {
	s.Say("A round is a flow: each parcel after the one before. Three rounds are cancelled in the middle, each by another policy.")
	for _, policy := range []flowfabric.CancelPolicy{flowfabric.CancelFlowOnly, flowfabric.CancelPending, flowfabric.CancelAll} {
		if err := roundCancelled(ctx, s, client, c, policy); err != nil {
			return err
		}
	}
	return nil
}

// roundCancelled cancels one round while its second parcel is under way.
func roundCancelled(ctx context.Context, s *stage.Stage, client *flowfabric.Client, c *courier, policy flowfabric.CancelPolicy) error {
	run, err := client.Flows().Submit(ctx, round(s.Name, policy))
	if err != nil {
		return err
	}
	select {
	case <-c.onTheWay:
	case <-ctx.Done():
		return ctx.Err()
	}
	told, err := client.Flows().Cancel(ctx, run.ID, flowfabric.FlowCancel{Policy: policy, Reason: "the van is needed"})
	if err != nil {
		return err
	}
	s.Show("%s: flow %s is %s; it has ended %d members, %d had ended before, and it waits for %d", policy, run.ID, told.State, told.Cancelled, told.FinishedBefore, told.Remaining)
	if err := c.endRound(ctx, policy); err != nil {
		return err
	}
	var ends []string
	for _, name := range parcels {
		x, err := client.Wait(ctx, run.Members[name])
		if err != nil {
			return err
		}
		ends = append(ends, name+" "+string(x.Status))
	}
	flow, err := client.Flows().Wait(ctx, run.ID)
	if err != nil {
		return err
	}
	s.Show("  in the end: %s; the flow is %s", strings.Join(ends, ", "), flow.State)
	return nil
}

// endRound lets the parcel arrive that is under way, unless it was called back.
func (c *courier) endRound(ctx context.Context, policy flowfabric.CancelPolicy) error {
	if policy == flowfabric.CancelAll {
		select {
		case <-c.ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case c.arrive <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// parcels are those of a round, in their order.
var parcels = []string{"first", "second", "third"}

// round is the flow.
func round(lane string, policy flowfabric.CancelPolicy) flowfabric.Flow {
	f := flowfabric.Flow{Kind: "round", Defaults: flowfabric.Node{SubmitOptions: flowfabric.SubmitOptions{Lane: lane}}}
	for i, name := range parcels {
		parcel := Parcel{Number: string(policy) + "-" + name}
		if name == "second" {
			parcel.Trouble = "far"
		}
		node := Deliver.Node(name, parcel)
		if i > 0 {
			node = node.After(parcels[i-1])
		}
		f.Nodes = append(f.Nodes, node)
	}
	return f
}
