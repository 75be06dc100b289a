// Package story is the callback example: a payment provider is given an address to answer to. A quick one answers before anybody
// waits, and nothing is lost; a provider that repeats itself is counted once. The example's own program tells it, and so does
// flowfabric demo.
package story

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/examples/stage"
	"github.com/flowfabric/flowfabric/flowfabrichttp"
)

// Callback is the story.
var Callback = stage.Story{Name: "callback", Tell: tell}

// Order is what is to be paid.
type Order struct {
	Number string
	Cents  int64
	Quick  bool // the provider answers at once
}

// Payment is what the provider answers.
type Payment struct {
	Order     string
	Reference string
}

// Collect is the work: get the money of an order.
const Collect flowfabric.Kind[Order, Payment] = "collect"

// shop is where the story plays.
type shop struct {
	*stage.Stage
	client   *flowfabric.Client
	address  string // of the server
	provider provider

	mu        sync.Mutex
	callbacks map[string]string // of the provider: where to answer, by order
	first     map[string]answer // what it was told when it answered at once
}

func tell(ctx context.Context, s *stage.Stage) error {
	client, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	address, stopServing, err := s.Served(ctx, client, flowfabrichttp.Config{})
	if err != nil {
		return err
	}
	p := &shop{
		Stage: s, client: client, address: address, provider: provider{&http.Client{Transport: &http.Transport{}}},
		callbacks: map[string]string{}, first: map[string]answer{},
	}
	w := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Lanes: []string{s.Name}, Logger: s.Log})
	flowfabric.Handle(w, Collect, p.collect)
	stopWorking := stage.Start(ctx, w)
	for _, chapter := range []func(context.Context) error{p.quick, p.slow} {
		if err = chapter(ctx); err != nil {
			break
		}
	}
	p.provider.http.CloseIdleConnections()
	return errors.Join(err, stopWorking(), stopServing())
}

// collect makes the address first, hands it out, and waits only then. What comes in between is kept for the wait.
func (p *shop) collect(ctx context.Context, t *flowfabric.Task, in Order) (Payment, error) {
	w, err := t.NewWaitpoint(ctx, "payment")
	if err != nil {
		return Payment{}, err
	}
	_, err = flowfabric.Step(ctx, t, "ask-provider", func(ctx context.Context) (flowfabric.None, error) {
		return flowfabric.None{}, p.ask(ctx, in, p.absolute(w.CallbackURL))
	})
	if err != nil {
		return Payment{}, err
	}
	return flowfabric.AwaitSignal[Payment](ctx, t, "payment", flowfabric.WaitOptions{
		Waitpoint: w, Name: "paid", ReasonCode: flowfabric.WaitingForCallback, Timeout: 24 * time.Hour,
	})
}

// ask asks the provider for the money of an order and tells it where to answer.
func (p *shop) ask(ctx context.Context, in Order, callback string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.callbacks[in.Number] = callback
	if !in.Quick {
		return nil
	}
	told, err := p.provider.tell(ctx, callback, "message-"+in.Number, paymentOf(in.Number))
	p.first[in.Number] = told
	return err
}

func paymentOf(order string) Payment { return Payment{Order: order, Reference: "pay-" + order} }

// submit hands in an order.
func (p *shop) submit(ctx context.Context, in Order) (*flowfabric.Run[Payment], error) {
	return Collect.Submit(ctx, p.client, in, flowfabric.SubmitOptions{Lane: p.Name, IdempotencyKey: p.Name + "-" + in.Number})
}

// callback is where the provider answers for an order.
func (p *shop) callback(order string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.callbacks[order]
}

// early is what the provider was told that answered at once.
func (p *shop) early(order string) answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first[order]
}

// answer is what the provider says of an order, once more or for the first time.
func (p *shop) answer(ctx context.Context, order string) (answer, error) {
	return p.provider.tell(ctx, p.callback(order), "message-"+order, paymentOf(order))
}

// quick is a provider that answers before anybody waits.
func (p *shop) quick(ctx context.Context) error {
	run, err := p.submit(ctx, Order{Number: "17", Cents: 1999, Quick: true})
	if err != nil {
		return err
	}
	paid, err := run.Result(ctx)
	if err != nil {
		return err
	}
	p.Say("Order 17 is to be paid. The shop makes an address, gives it to the provider, and waits only then.")
	p.Show("%s", secret(p.callback("17")))
	p.Say("The provider answers while the shop is still on its way to wait: %s.", p.early("17"))
	p.Show("the wait finds the answer and is over before it began: %s is paid by %s", run.ID(), paid.Reference)
	again, err := p.answer(ctx, "17")
	if err != nil {
		return err
	}
	p.Say("The provider did not hear us, and posts the same message again: %s.", again)
	_, err = p.ShowEvents(ctx, p.client, run.ID(), api.FromStart)
	return err
}

// slow is a provider that takes its time.
func (p *shop) slow(ctx context.Context) error {
	run, err := p.submit(ctx, Order{Number: "18", Cents: 499})
	if err != nil {
		return err
	}
	if err := stage.Await(ctx, p.client, run.ID(), "execution.suspended"); err != nil {
		return err
	}
	p.Say("Order 18 goes to a slow provider. The work is handed back: it costs nothing while it waits.")
	x, err := p.client.Get(ctx, run.ID())
	if err != nil {
		return err
	}
	p.Show("%s is %s (%s)", x.ID, x.Status, x.Reason)
	forged, err := p.provider.tell(ctx, p.callback("18")+"0", "message-forged", paymentOf("18"))
	if err != nil {
		return err
	}
	if forged.Status != http.StatusUnauthorized {
		return fmt.Errorf("a forged address was answered with %s", forged)
	}
	p.Say("Somebody who does not have the token says that it is paid: %s.", forged)
	for _, when := range []string{"The provider posts that it is paid: %s.", "And once more, to be sure: %s."} {
		told, err := p.answer(ctx, "18")
		if err != nil {
			return err
		}
		p.Say(when, told)
	}
	paid, err := run.Result(ctx)
	if err != nil {
		return err
	}
	p.Show("%s is paid by %s", run.ID(), paid.Reference)
	_, err = p.ShowEvents(ctx, p.client, run.ID(), api.FromStart)
	return err
}

// absolute is an address that the provider can reach: an engine in this process knows no server, so its addresses are paths.
func (p *shop) absolute(address string) string {
	if strings.HasPrefix(address, "/") {
		return p.address + address
	}
	return address
}

// secret is an address without what makes it one of those who may answer.
func secret(address string) string {
	return address[:strings.LastIndex(address, "/")+1] + "…"
}
