package story

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// The room of each tenant: pictures at a time, and pictures in all.
const (
	maxAtATime  = 2
	maxPictures = 5
)

// patience is how long a claim waits for work that there is.
const patience = 10 * time.Second

// slots gives every tenant so many pictures at a time, by a quota that everything submitted there counts for.
func (h *house) slots(ctx context.Context) error {
	h.Say("From now on no tenant has more than %d pictures rendered at a time, however many workers there are.", maxAtATime)
	if _, err := h.admin.Quotas().Put(ctx, h.Name, api.QuotaSettings{ConcurrencyLimit: maxAtATime, PerKey: true}); err != nil {
		return err
	}
	for _, tenant := range []string{h.red, h.blue} {
		settings := api.NamespaceSettings{
			Description: "a tenant of the example", MaxPayloadBytes: maxPayload, MaxSubmitPerSecond: maxSubmits,
			DefaultQuotas: []api.QuotaUse{{Quota: h.Name, Key: tenant}},
		}
		if _, err := h.admin.Admin().Namespaces().Put(ctx, tenant, settings); err != nil {
			return err
		}
	}
	worker, err := h.client(ctx, "renderer", []string{h.red, h.blue}, "work")
	if err != nil {
		return err
	}
	if err := h.order(ctx, h.red, 4); err != nil {
		return err
	}
	if err := h.order(ctx, h.blue, 2); err != nil {
		return err
	}
	first, err := h.take(ctx, worker, 2*maxAtATime)
	if err != nil {
		return err
	}
	h.Show("red has ordered four more, blue two; a worker that could take all of them gets %s", whose(first))
	if err := h.waits(ctx, "waiting_for_quota"); err != nil {
		return err
	}
	if err := h.finish(ctx, worker, first); err != nil {
		return err
	}
	rest, err := h.take(ctx, worker, maxAtATime)
	if err != nil {
		return err
	}
	h.Show("when they are done it gets %s", whose(rest))
	return h.finish(ctx, worker, rest)
}

// money gives red so many pictures in all, by a budget of its namespace.
func (h *house) money(ctx context.Context) error {
	h.Say("Red has paid for %d pictures from now on. Its budget counts them; blue has none and needs none.", maxPictures)
	boss, err := h.client(ctx, "red-boss", []string{h.red}, "operate")
	if err != nil {
		return err
	}
	_, err = boss.Budgets().Create(ctx, api.Budget{
		Name: h.Name, Scope: api.BudgetScope{Type: "namespace"},
		Dimensions: map[string]api.BudgetLimits{pictures: {Hard: maxPictures, DefaultReserve: 1}},
	})
	if err != nil {
		return err
	}
	worker, err := h.client(ctx, "renderer", []string{h.red, h.blue}, "work")
	if err != nil {
		return err
	}
	if err := h.order(ctx, h.red, maxPictures+1); err != nil {
		return err
	}
	if err := h.order(ctx, h.blue, 1); err != nil {
		return err
	}
	for done := 0; done < maxPictures+1; {
		some, err := h.take(ctx, worker, 1)
		if err != nil {
			return err
		}
		if err := h.finish(ctx, worker, some); err != nil {
			return err
		}
		done += len(some)
	}
	if _, err := h.claim(ctx, worker, 0); err != nil { // it finds nothing that may start
		return err
	}
	b, err := boss.Budgets().Get(ctx, h.Name)
	if err != nil {
		return err
	}
	h.Show("red has used %d of %d", b.Dimensions[pictures].Used, b.Dimensions[pictures].EffectiveHard)
	return h.waits(ctx, "waiting_for_budget")
}

// pictures is the dimension of the budget.
const pictures = "pictures"

// order submits pictures of a tenant.
func (h *house) order(ctx context.Context, tenant string, n int) error {
	c, err := h.client(ctx, tenant[strings.LastIndex(tenant, "-")+1:]+"-orders", []string{tenant}, "submit")
	if err != nil {
		return err
	}
	var all []flowfabric.Submission
	for i := range n {
		all = append(all, Render.Submission(Picture{tenant, 100 + i}, h.options()))
	}
	_, err = c.SubmitMany(ctx, all, flowfabric.SubmitManyOptions{Atomic: true})
	return err
}

// take claims all that it gets, which must be at least so many.
func (h *house) take(ctx context.Context, worker *flowfabric.Client, least int) (tasks []*api.Claimed, err error) {
	for len(tasks) < least {
		some, err := h.claim(ctx, worker, patience)
		if err != nil {
			return nil, err
		}
		if len(some) == 0 {
			return nil, fmt.Errorf("%d pictures may start, want %d", len(tasks), least)
		}
		tasks = append(tasks, some...)
	}
	return tasks, nil
}

func (h *house) claim(ctx context.Context, worker *flowfabric.Client, wait time.Duration) ([]*api.Claimed, error) {
	answer, err := worker.Work().Claim(ctx, api.ClaimRequest{
		WorkerID: "renderer", InstanceID: h.Name + "-2", Lanes: []string{h.Name}, Max: 100, Wait: wait,
	})
	return answer.Tasks, err
}

// finish completes pictures, each of which used one.
func (h *house) finish(ctx context.Context, worker *flowfabric.Client, tasks []*api.Claimed) error {
	var items []api.WorkItem
	for _, task := range tasks {
		items = append(items, api.WorkItem{
			Op: api.OpComplete, ID: task.ID, Lease: task.Lease, Usage: flowfabric.Usage{Amounts: map[string]int64{pictures: 1}},
		})
	}
	answers, err := worker.Work().Do(ctx, items...)
	for _, answer := range answers {
		err = errors.Join(err, answer.Err)
	}
	return err
}

// whose tells how many pictures are whose.
func whose(tasks []*api.Claimed) string {
	count := map[string]int{}
	for _, task := range tasks {
		count[task.Namespace[strings.LastIndex(task.Namespace, "-")+1:]]++
	}
	return fmt.Sprintf("%d of red's and %d of blue's", count["red"], count["blue"])
}

// waits tells why a picture of red's does not start.
func (h *house) waits(ctx context.Context, reason string) error {
	reader, err := h.client(ctx, "red-auditor", []string{h.red}, "read")
	if err != nil {
		return err
	}
	for x, err := range reader.Executions().List(ctx, ops.ListOptions{Filter: ops.Filter{Lane: []string{h.Name}, Reason: []string{reason}}}) {
		if err != nil {
			return err
		}
		why, err := reader.Executions().Explain(ctx, x.ID)
		if err != nil {
			return err
		}
		h.Show("%s: %s", x.ID, why.Summary)
		return nil
	}
	return fmt.Errorf("nothing of red's is %s", reason)
}
