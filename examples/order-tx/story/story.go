// Package story is the order-tx example: an order and the work for it are written in one transaction of one database. When it commits
// both are there, when it is rolled back neither is, and no crash comes between them. The handler writes the shipment and the result of
// the work in one transaction, too.
package story

import (
	"context"
	"errors"
	"fmt"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/examples/stage"
)

// OrderTx is the story.
var OrderTx = stage.Story{Name: "order-tx", Tell: tell}

// Ship is the work for an order.
const Ship flowfabric.Kind[string, string] = "ship"

func tell(ctx context.Context, s *stage.Stage) error {
	if s.Store == "" {
		return &stage.Misuse{Text: "a server alone does not do: the order is written into the database of the store. Give -store too, or neither"}
	}
	writer, client, err := clients(ctx, s)
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	defer writer.Close(ctx)
	own, err := openShop(ctx, s.Store)
	if err != nil {
		return err
	}
	defer own.close(ctx)
	w := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Lanes: []string{s.Name}, Logger: s.Log})
	flowfabric.Handle(w, Ship, func(ctx context.Context, t *flowfabric.Task, order string) (string, error) {
		return "", own.ship(ctx, t, order, order+" is on its way") // the result is in the transaction
	})
	stop := stage.Start(ctx, w)
	if err := commit(ctx, s, own, writer, client); err != nil {
		return errors.Join(err, stop())
	}
	if err := rollBack(ctx, s, own, writer, client); err != nil {
		return errors.Join(err, stop())
	}
	return stop()
}

// clients are the one that submits inside transactions, for which the engine's code must be in this process, and the one that does
// everything else. They are the same unless a server runs the engine.
func clients(ctx context.Context, s *stage.Stage) (writer, client *flowfabric.Client, err error) {
	if client, err = s.Open(ctx); err != nil || s.Server == "" {
		return client, client, err
	}
	writer, err = embedded.Open(ctx, s.Store, embedded.Config{EngineConfig: flowfabric.EngineConfig{NoEngine: true, Logger: s.Log}})
	if err != nil {
		return nil, nil, errors.Join(err, client.Close(ctx))
	}
	return writer, client, nil
}

// submission is the work for an order. The key makes sure that an order is shipped once.
func submission(s *stage.Stage, order string) flowfabric.Submission {
	return Ship.Submission(order, flowfabric.SubmitOptions{Lane: s.Name, IdempotencyKey: order})
}

// commit shows a transaction that commits.
func commit(ctx context.Context, s *stage.Stage, own shop, writer, client *flowfabric.Client) error {
	order := s.Name + "-1"
	s.Say("Order %s and the work for it are written in one transaction, which commits.", order)
	x, err := own.order(ctx, writer, order, submission(s, order), func() error { return nil })
	if err != nil {
		return err
	}
	result, err := flowfabric.Attach[string](client, x.ID).Result(ctx)
	if err != nil {
		return err
	}
	shipments, err := own.shipments(ctx, order)
	if err != nil {
		return err
	}
	s.Show("%s: %s, shipments: %d", x.ID, result, shipments)
	return show(ctx, s, own, client, order, x.ID)
}

// rollBack shows a transaction that does not.
func rollBack(ctx context.Context, s *stage.Stage, own shop, writer, client *flowfabric.Client) error {
	order := s.Name + "-2"
	s.Say("Order %s is written in the same way, and then the card is declined: the transaction is rolled back.", order)
	declined := errors.New("the card is declined")
	x, err := own.order(ctx, writer, order, submission(s, order), func() error { return declined })
	if !errors.Is(err, declined) {
		return fmt.Errorf("the transaction ended otherwise: %w", err)
	}
	return show(ctx, s, own, client, order, x.ID)
}

// show tells what is there of an order.
func show(ctx context.Context, s *stage.Stage, own shop, client *flowfabric.Client, order string, id flowfabric.ID) error {
	rows, err := own.orders(ctx, order)
	if err != nil {
		return err
	}
	x, err := client.Get(ctx, id)
	switch {
	case err == nil:
		s.Show("orders: %d, execution %s: %s", rows, id, x.Status)
	case errors.Is(err, flowfabric.ErrNotFound):
		s.Show("orders: %d, execution %s: %s", rows, id, flowfabric.CodeOf(err))
	default:
		return err
	}
	return nil
}
