package story

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric"
)

// The work of a release.
const (
	Build   flowfabric.Kind[Source, Image]           = "build"
	Test    flowfabric.Kind[Suite, Report]           = "test"
	SignOff flowfabric.Kind[Source, Decision]        = "sign-off"
	Deploy  flowfabric.Kind[Target, string]          = "deploy"
	Alarm   flowfabric.Kind[flowfabric.None, string] = "alarm"
)

// What goes in and comes out.
type (
	// Source is what is released.
	Source struct{ Version string }
	// Image is what was built of it.
	Image struct{ Digest string }
	// Suite is some tests.
	Suite struct{ Name string }
	// Report tells what a suite has tested, and on which machine.
	Report struct{ Suite, Image, Machine string }
	// Decision is that of the people who were asked.
	Decision struct{ By []string }
	// Target is where it goes.
	Target struct{ Machines string }
)

// machine is one of those who work. What it can do decides which tests it gets.
type machine struct {
	name string
	can  []string
	at   *plant
}

// worker is a worker of that machine, for all kinds of work.
func (m machine) worker(c *flowfabric.Client) *flowfabric.Worker {
	w := flowfabric.NewWorker(c, flowfabric.WorkerConfig{Lanes: []string{m.at.Name}, Capabilities: m.can, Logger: m.at.Log})
	flowfabric.Handle(w, Build, m.build)
	flowfabric.Handle(w, Test, m.test)
	flowfabric.Handle(w, SignOff, m.signOff)
	flowfabric.Handle(w, Deploy, m.deploy)
	flowfabric.Handle(w, Alarm, m.alarm)
	return w
}

func (m machine) build(_ context.Context, _ *flowfabric.Task, in Source) (Image, error) {
	return Image{"image-of-" + in.Version}, nil
}

// test gets the image from the build, along the edge.
func (m machine) test(_ context.Context, t *flowfabric.Task, in Suite) (Report, error) {
	image, err := flowfabric.InputFrom[Image](t, "build")
	if err != nil {
		return Report{}, err
	}
	if in.Name == "browser" && m.at.broken.Load() {
		return Report{}, flowfabric.Permanent(errors.New("the button is not where it was"))
	}
	return Report{in.Name, image.Digest, m.name}, nil
}

// signOff asks, and no machine is held until somebody has decided.
func (m machine) signOff(ctx context.Context, t *flowfabric.Task, in Source) (Decision, error) {
	answer, err := t.Ask(ctx, flowfabric.Approval{
		Key: "go-live", Title: "Release " + in.Version + "?", Message: summary(t), Approvers: []string{"ana@example.com"},
		Notify: func(_ context.Context, links []flowfabric.ApprovalLink) error {
			m.at.links <- links[0]
			return nil
		},
	})
	switch {
	case err != nil:
		return Decision{}, err
	case !answer.Approved:
		return Decision{}, flowfabric.Permanent(fmt.Errorf("rejected by %s: %s", answer.By[0], answer.Comment))
	}
	return Decision{answer.By}, nil
}

// summary is what the tests have reported.
func summary(t *flowfabric.Task) string {
	var said []string
	for _, in := range t.Inputs() {
		said = append(said, in.Name+" "+string(in.Outcome))
	}
	return strings.Join(said, ", ")
}

// deploy is a node of the roll-out. The first one gets what the roll-out got, the next one what the first left.
func (m machine) deploy(_ context.Context, t *flowfabric.Task, in Target) (string, error) {
	if t.Name() == everywhere {
		before, err := flowfabric.InputFrom[string](t, canary)
		return before + ", then " + in.Machines, err
	}
	image, err := flowfabric.InputFrom[Image](t, "build")
	if err != nil {
		return "", err
	}
	who, err := flowfabric.InputFrom[Decision](t, "sign-off")
	return fmt.Sprintf("%s, approved by %s, is on %s", image.Digest, strings.Join(who.By, ", "), in.Machines), err
}

// alarm gets what went wrong: an end that is no success has no result, but a reason.
func (m machine) alarm(_ context.Context, t *flowfabric.Task, _ flowfabric.None) (string, error) {
	var said []string
	for _, in := range t.Inputs() {
		said = append(said, fmt.Sprintf("%s is %s: %s", in.From, in.Outcome, in.FailureReason))
	}
	return strings.Join(said, "; "), nil
}
