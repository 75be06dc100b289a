package cluster

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// What ends at once: so many flows, and one more whose upstreams are flows themselves.
const (
	flowsAtOnce = 160
	upstreams   = 4
	innerFlows  = 40
	joinsOfFlow = 3
)

// knot is a flow of several joins that wait for all of the same upstreams, each of which comes first somewhere. turn is what the request
// begins with, so that ids are ordered in every way.
func knot(turn int, ups []core.FlowNode) core.FlowSubmission {
	var names []string
	for i := range ups {
		names = append(names, ups[i].Name)
	}
	nodes := ups
	last := core.FlowNode{Name: "last", Kind: "last"}
	for i, join := range []*core.JoinSpec{nil, {Policy: core.AnyOf}, {Policy: core.Quorum, K: len(names) / 2}} {
		at := (i*len(names)/joinsOfFlow + turn) % len(names)
		after := append(append([]string{}, names[at:]...), names[:at]...)
		name := fmt.Sprint("join", i)
		nodes, last.After = append(nodes, core.FlowNode{Name: name, Kind: "join", After: after, Join: join}), append(last.After, name)
	}
	nodes = append(nodes, last)
	at := turn % len(nodes)
	return core.FlowSubmission{Kind: "knot", Nodes: append(append([]core.FlowNode{}, nodes[at:]...), nodes[:at]...)}
}

// knots submits all flows, through the engines in turn.
func (p *party) knots() (flows []engine.FlowAnswer) {
	p.t.Helper()
	for n := range flowsAtOnce + 1 {
		var ups []core.FlowNode
		for i := range upstreams {
			ups = append(ups, core.FlowNode{Name: fmt.Sprint("up", i), Kind: "up"})
		}
		if n == flowsAtOnce {
			ups = nil
			for i := range innerFlows {
				ups = append(ups, core.FlowNode{Name: fmt.Sprint("up", i), Flow: &core.FlowSubmission{Nodes: []core.FlowNode{{Name: "one", Kind: "up", Lane: lanes[0]}}}})
			}
		}
		s := knot(n, ups)
		s.Defaults.Lane = lanes[0]
		made, err := p.of(n).SubmitFlow(p.ctx, client, s)
		if err != nil {
			p.t.Fatal(err)
		}
		flows = append(flows, made)
	}
	return flows
}

// endAll claims all work of a kind, and completes it at once, each piece through another engine than the one before.
func (p *party) endAll(kind string, n int) {
	p.t.Helper()
	var tasks []engine.Task
	for turn := 0; len(tasks) < n; turn++ {
		got, err := p.of(turn).Claim(p.ctx, client, engine.ClaimRequest{
			WorkerID: "w", InstanceID: "i", Lanes: lanes[:1], Kinds: []string{kind}, Max: min(n-len(tasks), 100), Wait: 20 * time.Second, TTL: base.Hour,
		})
		if err != nil || len(got.Tasks) == 0 {
			p.t.Fatalf("%d of %d of kind %s came: %v", len(tasks), n, kind, err)
		}
		tasks = append(tasks, got.Tasks...)
	}
	var all sync.WaitGroup
	gun := make(chan struct{})
	for i := range tasks {
		all.Go(func() {
			<-gun
			x := tasks[i].Execution
			f := core.Fence{LeaseID: x.Lease.ID, Epoch: x.LeaseEpoch, AttemptID: x.Lease.AttemptID}
			if _, err := p.of(i).Complete(p.ctx, client, x.ID.Given(), f, nil); err != nil {
				p.t.Errorf("L143: the end of %s: %v", x.ID, err)
			}
		})
	}
	close(gun)
	all.Wait()
}

func TestF28_FI3_FI4_FI7_L143_two_hundred_flows_that_end_into_shared_joins_from_several_engines_meet_no_error(t *testing.T) {
	t.Parallel()
	onParties(t, func(p *party) {
		flows := p.knots()
		p.endAll("up", flowsAtOnce*upstreams+innerFlows)
		p.endAll("join", (flowsAtOnce+1)*joinsOfFlow)
		p.endAll("last", flowsAtOnce+1)
		log, err := readAll(p.ctx, p.of(1))
		if err != nil {
			p.t.Fatal(err)
		}
		told := map[base.UUID]map[string]int{}
		for _, ev := range log {
			if told[ev.ExecutionID.UUID] == nil {
				told[ev.ExecutionID.UUID] = map[string]int{}
			}
			told[ev.ExecutionID.UUID][ev.Kind]++
		}
		for n, flow := range flows {
			view, err := p.of(n).WaitFlow(p.ctx, client, flow.Flow.ID.Given(), 20*time.Second)
			if err != nil || view.State != core.FlowCompleted || view.Counts["completed"] != len(flow.Members) || view.Open != 0 || view.Ends.Completed != len(flow.Members) {
				p.t.Errorf("FI7, FI10: %v, %v", view, err)
			}
			if view.Joins["satisfied"] != joinsOfFlow+1 {
				p.t.Errorf("FI3: joins %v", view.Joins)
			}
			for i := range joinsOfFlow {
				id := flow.Members[fmt.Sprint("join", i)].UUID
				if got := told[id]; got["execution.ready"] != 1 || got["lease.acquired"] != 1 || got["execution.completed"] != 1 {
					p.t.Errorf("FI4: join %d of flow %d: %v", i, n, got)
				}
			}
		}
		if found, err := p.of(0).Integrity(p.ctx); err != nil || len(found.Differences) > 0 {
			p.t.Errorf("S42: %+v, %v", found.Differences, err)
		}
	})
}
