package main

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric"
)

// Customer is who tries the product.
type Customer struct{ Name string }

// Trial is the work: greet a customer, wait until the trial is over, charge.
const Trial flowfabric.Kind[Customer, string] = "trial"

// length is how long a customer may try.
const length = 14 * 24 * time.Hour

// Company is what the handler needs of the world outside. Charge takes money once for each key.
type Company interface {
	Now() time.Time
	Greet(customer string)
	Charge(customer, key string) (receipt string, err error)
}

// try is the handler under test. It is called again from its start whenever the work goes on: steps remember what was done.
func try(c Company) func(context.Context, *flowfabric.Task, Customer) (string, error) {
	return func(ctx context.Context, t *flowfabric.Task, in Customer) (string, error) {
		end, err := flowfabric.Step(ctx, t, "greet", func(context.Context) (time.Time, error) {
			c.Greet(in.Name)
			return c.Now().Add(length), nil
		})
		if err != nil {
			return "", err
		}
		if c.Now().Before(end) {
			return "", t.Delay(ctx, end) // no worker and no memory is held meanwhile
		}
		return flowfabric.Step(ctx, t, "charge", func(context.Context) (string, error) {
			return c.Charge(in.Name, t.EffectKey("charge"))
		})
	}
}

// policy tries a charge that fails once more the next day.
var policy = flowfabric.Policy{Retry: &flowfabric.RetryPolicy{
	MaxRetries: 3, Backoff: flowfabric.Backoff{Strategy: "fixed", Delay: 24 * time.Hour},
}}
