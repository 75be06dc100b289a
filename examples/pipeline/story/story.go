// Package story is the pipeline example: a release is one graph. A build, three tests in parallel on machines that can run them, a sign-off,
// and a roll-out that is a flow of its own; results travel along the edges. A test fails: the rest is skipped and an alarm goes off. The
// bug is mended, and one replay brings the release to its end. The example's own program tells it, and so does flowfabric demo.
package story

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/examples/stage"
)

// Pipeline is the story.
var Pipeline = stage.Story{Name: "pipeline", Tell: tell}

// The nodes of the roll-out.
const (
	canary     = "canary"
	everywhere = "everywhere"
)

// plant is where the story plays.
type plant struct {
	*stage.Stage
	client *flowfabric.Client
	broken atomic.Bool                  // the browser test finds a bug
	links  chan flowfabric.ApprovalLink // that a sign-off has sent
	run    *flowfabric.FlowRun
}

func tell(ctx context.Context, s *stage.Stage) error {
	client, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	p := &plant{Stage: s, client: client, links: make(chan flowfabric.ApprovalLink, 1)}
	p.broken.Store(true)
	var stops []func() error
	for _, m := range []machine{{"small", nil, p}, {"desktop", []string{"chromium"}, p}, {"big", []string{"64-cores"}, p}} {
		stops = append(stops, stage.Start(ctx, m.worker(client)))
	}
	for _, chapter := range []func(context.Context) error{p.submit, p.fail, p.replay, p.signOff, p.rollOut} {
		if err = chapter(ctx); err != nil {
			break
		}
	}
	for _, stop := range stops {
		err = errors.Join(err, stop())
	}
	return err
}

// release is the graph.
func (p *plant) release(version string) flowfabric.Flow {
	lane := flowfabric.Node{SubmitOptions: flowfabric.SubmitOptions{Lane: p.Name}}
	alarm := Alarm.Node("alarm", flowfabric.None{}).AfterFailure("unit", "browser", "load")
	alarm.Join.Policy = flowfabric.JoinAny // one failed test is enough
	return flowfabric.Flow{Kind: "release", Defaults: lane, Tags: map[string]string{"version": version}, Output: "roll-out", Nodes: []flowfabric.Node{
		Build.Node("build", Source{version}),
		Test.Node("unit", Suite{"unit"}).After("build"),
		Test.Node("browser", Suite{"browser"}, flowfabric.SubmitOptions{Requires: []string{"chromium"}}).After("build"),
		Test.Node("load", Suite{"load"}, flowfabric.SubmitOptions{Requires: []string{"64-cores"}}).After("build"),
		SignOff.Node("sign-off", Source{version}).After("unit", "browser", "load"),
		flowfabric.SubFlow("roll-out", flowfabric.Flow{Defaults: lane, Output: everywhere, Nodes: []flowfabric.Node{
			Deploy.Node(canary, Target{"one machine"}),
			Deploy.Node(everywhere, Target{"all of them"}).After(canary),
		}}).After("build", "sign-off"),
		alarm,
	}}
}

// submit hands the release in, in one call.
func (p *plant) submit(ctx context.Context) (err error) {
	flow := p.release("4.2")
	order, err := p.client.Flows().Check(ctx, flow)
	if err != nil {
		return err
	}
	if p.run, err = p.client.Flows().Submit(ctx, flow); err != nil {
		return err
	}
	p.Say("Release 4.2 is one graph of %d members and %d edges: flow %s.", p.run.Nodes, p.run.Edges, p.run.ID)
	p.Show("an order in which it can run: %s", strings.Join(order, ", "))
	return nil
}

// fail tells what one failed test does.
func (p *plant) fail(ctx context.Context) error {
	flow, err := p.client.Flows().Wait(ctx, p.run.ID)
	if err != nil {
		return err
	}
	p.Say("The tests run side by side, each on a machine that can run it. One of them fails, and the flow is %s.", flow.State)
	if err := p.members(ctx); err != nil {
		return err
	}
	said, err := flowfabric.Attach[string](p.client, p.run.Members["alarm"]).Result(ctx)
	if err != nil {
		return err
	}
	p.Show("the alarm says: %s", said)
	return nil
}

// members tells how each member stands.
func (p *plant) members(ctx context.Context) error {
	for m, err := range p.client.Flows().Members(ctx, p.run.ID) {
		if err != nil {
			return err
		}
		p.Show("%-9s %s %s", m.Name, m.Status, m.Reason)
	}
	return nil
}

// replay runs the failed test once more, and with it everything that was skipped because of it.
func (p *plant) replay(ctx context.Context) error {
	p.broken.Store(false)
	x, err := p.client.Operate().Replay(ctx, p.run.Members["browser"], ops.ReplayOptions{
		Action: ops.Action{Reason: "the button is where it was"}, Cascade: ops.CascadeSkipped,
	})
	if err != nil {
		return err
	}
	p.Say("The bug is mended. The test is replayed with all that was skipped because of it; what has succeeded stays as it is.")
	p.Show("browser is %s, run %d of it", x.Status, x.RunIndex+1)
	return nil
}

// signOff is what Ana does with the link that she was sent.
func (p *plant) signOff(ctx context.Context) error {
	if err := stage.Await(ctx, p.client, p.run.Members["sign-off"], "execution.suspended"); err != nil {
		return err
	}
	link := <-p.links
	p.Say("All tests have succeeded, and the sign-off asks %s. No machine is held meanwhile.", link.Approver)
	token := flowfabric.TokenOf(link.URL[strings.LastIndex(link.URL, "/")+1:])
	outcome, err := p.client.Waitpoints().Decide(ctx, link.ID, token, api.LinkDecision{Decision: "approve"})
	if err != nil {
		return err
	}
	p.Show("she opens her link and approves: %s", outcome.Effect)
	return nil
}

// rollOut tells how the release ends.
func (p *plant) rollOut(ctx context.Context) error {
	flow, err := p.client.Flows().Wait(ctx, p.run.ID)
	if err != nil {
		return err
	}
	p.Say("The roll-out is a flow inside of the flow. It has ended, and the release is %s.", flow.State)
	if err := p.members(ctx); err != nil {
		return err
	}
	said, err := flowfabric.Attach[string](p.client, p.run.Members["roll-out"]).Result(ctx)
	if err != nil {
		return err
	}
	p.Show("its result: %s", said)
	return p.happened(ctx)
}

// happened tells the events of the flow, and of the one inside of it.
func (p *plant) happened(ctx context.Context) error {
	p.Say("What happened to the flows:")
	options := ops.ReadOptions{After: api.FromStart, EventFilter: ops.EventFilter{FlowID: p.run.ID, Kinds: []string{"flow."}}}
	page, err := p.client.Events().Read(ctx, options)
	if err != nil {
		return err
	}
	for _, event := range page.Events {
		which := "release"
		if event.FlowID != p.run.ID {
			which = "roll-out"
		}
		p.Show("%s %s of the %s", event.At.Format("15:04:05.000"), event.Kind, which)
	}
	return nil
}
