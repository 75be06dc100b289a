package flowfabric_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// Work waits for two people. No worker is held while they think; the handler is called again when they have decided.
func ExampleTask_Ask() {
	ctx := context.Background()
	const Deploy flowfabric.Kind[string, string] = "deploy"
	mails := make(chan []flowfabric.ApprovalLink, 1)
	client, end := begin(ctx, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, Deploy, func(ctx context.Context, t *flowfabric.Task, version string) (string, error) {
			answer, err := t.Ask(ctx, flowfabric.Approval{
				Key: "go-live", Title: "Release " + version + "?", Quorum: 2, Approvers: []string{"ana@example.com", "ben@example.com"},
				Notify: func(_ context.Context, links []flowfabric.ApprovalLink) error {
					mails <- links // send each link.URL to its link.Approver
					return nil
				},
				Timeout: 48 * time.Hour, OnTimeout: flowfabric.FailOnTimeout,
			})
			if err != nil {
				return "", err // the first time this parks the work
			}
			if !answer.Approved {
				return "", flowfabric.Permanent(fmt.Errorf("rejected by %s: %s", answer.By[0], answer.Comment))
			}
			return version + " is live, thanks to " + strings.Join(answer.By, " and "), nil
		})
	})
	defer end()

	run, err := Deploy.Submit(ctx, client, "4.2")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, link := range <-mails { // people open their links, and decide
		token := flowfabric.TokenOf(link.URL[strings.LastIndex(link.URL, "/")+1:])
		outcome, err := client.Waitpoints().Decide(ctx, link.ID, token, api.LinkDecision{Decision: "approve"})
		fmt.Println(link.Approver, outcome.Outcome, err)
	}
	fmt.Println(run.Result(ctx))
	// Output:
	// ana@example.com decided <nil>
	// ben@example.com decided <nil>
	// 4.2 is live, thanks to ana@example.com and ben@example.com <nil>
}

// A service outside is given an address, and calls it when it is done.
func ExampleAwaitSignal() {
	ctx := context.Background()
	const Render flowfabric.Kind[string, string] = "render"
	type rendered struct{ Frames int }
	orders := make(chan flowfabric.Waitpoint, 1)
	client, end := begin(ctx, func(w *flowfabric.Worker) {
		flowfabric.Handle(w, Render, func(ctx context.Context, t *flowfabric.Task, film string) (string, error) {
			done, err := flowfabric.AwaitSignal[rendered](ctx, t, "rendered", flowfabric.WaitOptions{
				ReasonCode: flowfabric.WaitingForCallback,
				Notify: func(_ context.Context, at flowfabric.Waitpoint) error {
					orders <- at // order it, to be answered at at.CallbackURL or with at.Token
					return nil
				},
			})
			return fmt.Sprintf("%s has %d frames", film, done.Frames), err
		})
	})
	defer end()

	run, err := Render.Submit(ctx, client, "Stalker")
	if err != nil {
		fmt.Println(err)
		return
	}
	at := <-orders
	_, err = client.Signal(ctx, flowfabric.Signal{WaitpointID: at.ID, Token: at.Token, Name: "done", Payload: flowfabric.JSON(rendered{232_000})})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.Result(ctx))
	fmt.Println(at.Token.IsZero(), strings.HasSuffix(fmt.Sprint(at.Token), ":<redacted>")) // it does not print itself
	// Output:
	// Stalker has 232000 frames <nil>
	// false true
}
