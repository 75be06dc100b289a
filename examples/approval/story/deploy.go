package story

import (
	"context"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric"
)

// Release is what is to go live.
type Release struct {
	Version  string
	Deadline time.Duration // for the people who are asked
}

// Deploy is the work.
const Deploy flowfabric.Kind[Release, string] = "deploy"

// people are those who are asked; two of them must agree.
var people = []string{"ana@example.com", "ben@example.com", "eve@example.com"}

// deploy asks, and rolls out when it may. It runs twice: the first call parks the work in Ask, the second one gets the decision there.
func (o *office) deploy(ctx context.Context, t *flowfabric.Task, in Release) (string, error) {
	answer, err := t.Ask(ctx, flowfabric.Approval{
		Key: "go-live", Title: "Release " + in.Version + "?", Message: "All tests are green.", Quorum: 2, Approvers: people,
		Notify: o.mail, Timeout: in.Deadline, OnTimeout: flowfabric.FailOnTimeout,
	})
	if err != nil {
		return "", err // the first time this parks the work; no worker is held while people think
	}
	if !answer.Approved {
		return "", flowfabric.Permanent(fmt.Errorf("rejected by %s: %s", answer.By[0], answer.Comment))
	}
	return flowfabric.Step(ctx, t, "roll-out", func(context.Context) (string, error) {
		return fmt.Sprintf("%s is live, approved by %v", in.Version, answer.By), nil
	})
}

// mail stands for a mail server: it keeps the links until somebody opens them.
func (o *office) mail(_ context.Context, links []flowfabric.ApprovalLink) error {
	for _, link := range links {
		o.post.put(link.Approver, o.absolute(link.URL))
	}
	return nil
}
