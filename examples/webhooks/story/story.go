// Package story is the webhooks example: the ends of orders are posted to a receiver, which verifies each message with the standard library, handles
// a repeated one once, and refuses a forged one. The example's own program tells it, and so does flowfabric demo.
package story

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/examples/stage"
	"github.com/flowfabric/flowfabric/ops"
)

// Webhooks is the story.
var Webhooks = stage.Story{Name: "webhooks", Tell: tell}

// Ship is the work: send the goods of an order.
const Ship flowfabric.Kind[string, string] = "ship"

// play is what the chapters share.
type play struct {
	*stage.Stage
	client   *flowfabric.Client
	receiver *receiver
	address  string // of the receiver
	webhook  string // id
}

func tell(ctx context.Context, s *stage.Stage) error {
	client, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	p := &play{Stage: s, client: client, receiver: newReceiver()}
	address, stopReceiving, err := stage.Serve(ctx, p.receiver)
	if err != nil {
		return err
	}
	p.address = address + "/hooks"
	w := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Lanes: []string{s.Name}, Logger: s.Log})
	flowfabric.Handle(w, Ship, func(_ context.Context, _ *flowfabric.Task, order string) (string, error) {
		return "shipped " + order, nil
	})
	stopWorking := stage.Start(ctx, w)
	for _, chapter := range []func(context.Context) error{p.create, p.deliver, p.repeat, p.forge, p.rotate} {
		if err = chapter(ctx); err != nil {
			break
		}
	}
	if p.webhook != "" {
		err = errors.Join(err, client.Admin().Webhooks().Delete(context.WithoutCancel(ctx), p.webhook))
	}
	return errors.Join(err, stopWorking(), stopReceiving())
}

// create makes the webhook. The server must be permitted to reach this host: the one of this example is, and so is flowfabric dev.
func (p *play) create(ctx context.Context) error {
	made, err := p.client.Admin().Webhooks().Create(ctx, api.NewWebhook{
		URL: p.address, Filter: &api.WebhookFilter{Kinds: []string{"execution.completed"}, Lane: p.Name},
	})
	if err != nil {
		return err
	}
	p.webhook = made.ID
	p.receiver.trust(made.Secret)
	p.Say("A webhook for the ends of executions in lane %s. Its secret is shown once, and goes to the receiver.", p.Name)
	p.Show("%s -> %s", made.ID, made.URL)
	return nil
}

// deliver ships an order, whose end is posted.
func (p *play) deliver(ctx context.Context) error {
	run, err := p.ship(ctx, "17")
	if err != nil {
		return err
	}
	got, err := p.next(ctx)
	if err != nil {
		return err
	}
	if got.Data.ExecutionID != string(run.ID()) || got.again {
		return fmt.Errorf("%+v is not the end of %s", got, run.ID())
	}
	p.Say("Order 17 is shipped, and the receiver is told: the signature is good.")
	p.Show("webhook-id %s, %s of %s", got.id, got.Type, got.Data.ExecutionID)
	return nil
}

// repeat sends the message again, as it happens when an answer is lost.
func (p *play) repeat(ctx context.Context) error {
	hooks := p.client.Admin().Webhooks()
	delivery, err := p.delivered(ctx)
	if err != nil {
		return err
	}
	if _, err := hooks.Redeliver(ctx, p.webhook, delivery.ID); err != nil {
		return err
	}
	got, err := p.next(ctx)
	if err != nil {
		return err
	}
	if !got.again || p.receiver.handled() != 1 {
		return fmt.Errorf("%+v was taken for a new message", got)
	}
	p.Say("An operator sends it once more. The receiver knows its webhook-id and handles it once.")
	return nil
}

// delivered waits until a delivery is recorded as delivered.
func (p *play) delivered(ctx context.Context) (*api.Delivery, error) {
	for {
		page, err := p.client.Admin().Webhooks().DeliveriesPage(ctx, p.webhook, ops.DeliveryQuery{State: api.DeliveryDelivered})
		if err != nil {
			return nil, err
		}
		if len(page.Items) > 0 {
			return page.Items[0], nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lookAgain):
		}
	}
}

const lookAgain = 20 * time.Millisecond

// forge posts a message without the secret.
func (p *play) forge(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.address, strings.NewReader(`{"type":"execution.completed"}`))
	if err != nil {
		return err
	}
	request.Header.Set("webhook-id", "01a1f626-0a54-7783-a3d6-a1afc4cf0926")
	request.Header.Set("webhook-timestamp", fmt.Sprint(time.Now().Unix()))
	request.Header.Set("webhook-signature", "v1,aJYo0HdLIbtL1PUBCzAaDf6LqKc7VF7nWWOS5Xnn6AA=")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf("a forged message was answered with %s", response.Status)
	}
	p.Say("Somebody posts a message without the secret: %s.", response.Status)
	return nil
}

// rotate replaces the secret. For a while requests have signatures of both, so that the receiver can change over at any time.
func (p *play) rotate(ctx context.Context) error {
	rotated, err := p.client.Admin().Webhooks().Rotate(ctx, p.webhook)
	if err != nil {
		return err
	}
	for _, order := range []string{"18", "19"} {
		if _, err := p.ship(ctx, order); err != nil {
			return err
		}
		if _, err := p.next(ctx); err != nil {
			return err
		}
		p.receiver.trust(rotated.Secret)
		p.receiver.forget()
	}
	p.Say("The secret is replaced. Order 18 verifies with the old secret, order 19 with the new one.")
	p.Show("%d messages were handled", p.receiver.handled())
	return nil
}

func (p *play) ship(ctx context.Context, order string) (*flowfabric.Run[string], error) {
	run, err := Ship.Submit(ctx, p.client, order, flowfabric.SubmitOptions{Lane: p.Name, IdempotencyKey: p.Name + "-" + order})
	if err != nil {
		return nil, err
	}
	_, err = run.Result(ctx)
	return run, err
}

// next is the next message that verifies.
func (p *play) next(ctx context.Context) (received, error) {
	select {
	case got := <-p.receiver.heard:
		return got, nil
	case <-ctx.Done():
		return received{}, ctx.Err()
	}
}
