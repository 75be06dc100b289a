package main

import (
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/flowfabrictest"
)

const day = 24 * time.Hour

// company is the world outside, as the tests want it. It outlives the process that dies.
type company struct {
	env *flowfabrictest.Env

	mu       sync.Mutex
	greeted  []string
	charged  map[string]string // receipts by key: the bank takes money once for each
	declines int               // how many charges fail before one goes through
}

func (c *company) Now() time.Time { return c.env.Now() }

func (c *company) Greet(customer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.greeted = append(c.greeted, customer)
}

func (c *company) Charge(customer, key string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.declines > 0 {
		c.declines--
		return "", errors.New("the card is declined")
	}
	if c.charged == nil {
		c.charged = map[string]string{}
	}
	c.charged[key] = "receipt of " + customer
	return c.charged[key], nil
}

// open is a company with a worker.
func open(env *flowfabrictest.Env) *company {
	c := &company{env: env}
	env.Worker(flowfabric.WorkerConfig{}, func(w *flowfabric.Worker) { flowfabric.Handle(w, Trial, try(c)) })
	return c
}

// begin lets a customer try.
func begin(t *testing.T, env *flowfabrictest.Env) *flowfabric.Run[string] {
	t.Helper()
	run, err := Trial.Submit(t.Context(), env.Client, Customer{"Ada"}, flowfabric.SubmitOptions{Policy: &policy})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func Test_a_customer_is_charged_after_two_weeks_and_not_before(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t, flowfabrictest.Config{Store: os.Getenv(storeVariable)})
	c := open(env)
	run := begin(t, env)

	env.Advance(13 * day)
	if len(c.greeted) != 1 || len(c.charged) != 0 {
		t.Errorf("after 13 days: greeted %q, charged %q", c.greeted, c.charged)
	}

	env.Advance(day)
	if receipt, err := run.Result(t.Context()); receipt != "receipt of Ada" || err != nil {
		t.Errorf("%q, %v", receipt, err)
	}
	if len(c.greeted) != 1 || len(c.charged) != 1 {
		t.Errorf("greeted %q, charged %q", c.greeted, c.charged)
	}
}

func Test_a_declined_card_is_tried_again_the_next_day(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	c := open(env)
	c.declines = 2
	run := begin(t, env)

	env.Advance(15 * day)
	if len(c.charged) != 0 {
		t.Errorf("charged on the second try: %q", c.charged)
	}
	env.Advance(day)
	if _, err := run.Result(t.Context()); err != nil || len(c.charged) != 1 || len(c.greeted) != 1 {
		t.Errorf("%v, charged %q, greeted %q", err, c.charged, c.greeted)
	}
}

func Test_a_customer_who_leaves_is_not_charged(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	c := open(env)
	run := begin(t, env)

	env.Advance(7 * day)
	if err := run.Cancel(t.Context(), "the customer left"); err != nil {
		t.Fatal(err)
	}
	env.Advance(30 * day)
	if len(c.charged) != 0 {
		t.Errorf("charged %q", c.charged)
	}
}

func TestExplore_one_customer_pays_once_wherever_the_process_dies(t *testing.T) {
	t.Parallel()
	flowfabrictest.Explore(t, func(t *testing.T, env *flowfabrictest.Env) {
		c := open(env)
		run := begin(t, env)

		env.Advance(15 * day)

		x, err := env.Get(t.Context(), run.ID())
		if err != nil || x.Status != flowfabric.StatusSucceeded {
			t.Errorf("%+v, %v", x, err)
		}
		if len(c.charged) != 1 || !slices.Contains(c.greeted, "Ada") {
			t.Errorf("charged %q, greeted %q", c.charged, c.greeted)
		}
	})
}
