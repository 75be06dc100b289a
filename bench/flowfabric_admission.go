package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// What admission is measured by. Limits are far away: no work waits for room, and what is measured is what it costs to look and to count.
const (
	ffKeys    = 100 // of the quota that counts by key
	ffBudgets = 32  // workers that report usage, and budgets where each has its own
	ffUnit    = "units"
	ffRoom    = 1_000_000
)

// ffQuotas are what is attached to each execution: nothing, one quota with a hundred keys, one that all share; by slots and by rate.
var ffQuotas = []struct {
	name     string
	settings *api.QuotaSettings
}{
	{"free", nil},
	{"keys", &api.QuotaSettings{ConcurrencyLimit: ffRoom, PerKey: true}},
	{"shared", &api.QuotaSettings{ConcurrencyLimit: ffRoom}},
	{"rate.keys", &api.QuotaSettings{RateLimit: ffRoom, PerKey: true}},
	{"rate.shared", &api.QuotaSettings{RateLimit: ffRoom}},
}

// ffAdmissionParts are measured each on a store of its own, one right after the other: they are compared with each other.
func ffAdmissionParts() []ffPart {
	var all []ffPart
	for _, q := range ffQuotas {
		all = append(all, ffPart{"drain." + q.name, ffLimitedDrain("drain."+q.name, q.settings)})
	}
	for _, q := range ffQuotas {
		all = append(all, ffPart{"cycle." + q.name, ffLimitedCycle("cycle."+q.name, q.settings)})
	}
	return append(all, ffPart{"budget.spread", ffReport("budget.spread", ffBudgets)}, ffPart{"budget.hot", ffReport("budget.hot", 1)})
}

func ffAdmission(ctx context.Context, env Env) (*Sample, error) {
	return inProcess.measure(ctx, env, env.Postgres, ffAdmissionParts())
}

func ffAdmissionSQLite(ctx context.Context, env Env) (*Sample, error) {
	return inProcess.measure(ctx, env, "sqlite:"+env.Dir, ffAdmissionParts())
}

// admissionComparisons are the ratios of the runs with limits to those without, of slots the bars of SC17.
func admissionComparisons() []Comparison {
	var all []Comparison
	for _, store := range []string{"Postgres", "SQLite"} {
		scenario := map[string]string{"Postgres": "flowfabric-admission", "SQLite": "flowfabric-admission-sqlite"}[store]
		for _, run := range []struct{ name, about string }{{"drain", "backlog"}, {"cycle", "whole cycle by 512 callers"}} {
			for _, q := range []struct{ name, about string }{
				{"keys", "a quota of 100 keys against none (bar: 0.65)"},
				{"shared", "a quota with one key against none (bar: 0.75)"},
				{"rate.keys", "a rate of 100 keys against none (bar: 0.65)"},
				{"rate.shared", "a rate with one key against none (bar: 0.75)"},
			} {
				all = append(all, Comparison{
					About: fmt.Sprintf("%s, %s with %s", store, run.about, q.about),
					Of:    fmt.Sprintf("%s/%s.%s", scenario, run.name, q.name), To: fmt.Sprintf("%s/%s.free", scenario, run.name),
				})
			}
		}
		all = append(all, Comparison{
			About: store + ", 32 workers that report to one budget against one each (bar: 0.25)", Of: scenario + "/budget.hot", To: scenario + "/budget.spread",
		})
	}
	return all
}

// underQuota makes a quota and attaches executions to it, in turns to its keys.
func underQuota(ctx context.Context, client *flowfabric.Client, settings *api.QuotaSettings) (func(i int) flowfabric.SubmitOptions, error) {
	if settings == nil {
		return freely, nil
	}
	const id = "bench"
	if _, err := client.Quotas().Put(ctx, id, *settings); err != nil {
		return nil, err
	}
	return func(i int) flowfabric.SubmitOptions {
		use := api.QuotaUse{Quota: id}
		if settings.PerKey {
			use.Key = fmt.Sprintf("key%d", i%ffKeys)
		}
		return flowfabric.SubmitOptions{Quotas: []api.QuotaUse{use}}
	}, nil
}

type measured = func(ctx context.Context, env Env, client *flowfabric.Client, sample *Sample) error

// ffLimitedDrain works off a backlog under a quota.
func ffLimitedDrain(name string, settings *api.QuotaSettings) measured {
	return func(ctx context.Context, env Env, client *flowfabric.Client, sample *Sample) error {
		options, err := underQuota(ctx, client, settings)
		if err != nil {
			return err
		}
		n := env.Size(100_000)
		if err := submitInBulk(ctx, client, n, options); err != nil {
			return err
		}
		took, err := work(ctx, client, ffConcurrency, n, func(context.Context) error { return nil })
		if err != nil {
			return err
		}
		sample.Rate(name, n, took)
		return checkGivenBack(ctx, client, n, sample)
	}
}

// ffLimitedCycle runs the whole cycle under a quota.
func ffLimitedCycle(name string, settings *api.QuotaSettings) measured {
	return func(ctx context.Context, env Env, client *flowfabric.Client, sample *Sample) error {
		options, err := underQuota(ctx, client, settings)
		if err != nil {
			return err
		}
		n := env.Size(60_000)
		took, err := work(ctx, client, ffConcurrency, n, func(ctx context.Context) error { return submitSingly(ctx, client, n, 512, options) })
		if err != nil {
			return err
		}
		sample.Rate(name, n, took)
		return checkGivenBack(ctx, client, n, sample)
	}
}

// ffReport has 32 workers, a task each at a time, reserve, report and complete, over so many budgets.
func ffReport(name string, budgets int) measured {
	return func(ctx context.Context, env Env, client *flowfabric.Client, sample *Sample) error {
		for i := range budgets {
			limits := map[string]api.BudgetLimits{ffUnit: {Hard: 1_000_000_000, DefaultReserve: 1}}
			if _, err := client.Budgets().Create(ctx, api.Budget{Name: fmt.Sprintf("budget%d", i), Dimensions: limits}); err != nil {
				return err
			}
		}
		n := env.Size(20_000)
		err := submitInBulk(ctx, client, n, func(i int) flowfabric.SubmitOptions {
			return flowfabric.SubmitOptions{BudgetIDs: []string{fmt.Sprintf("budget%d", i%budgets)}}
		})
		if err != nil {
			return err
		}
		took, err := reporters(ctx, client, ffBudgets, n)
		if err != nil {
			return err
		}
		sample.Rate(name, n, took)
		return checkBooked(ctx, client, n, sample)
	}
}

// reporters runs so many workers with one task each at a time until n have reported and completed.
func reporters(ctx context.Context, client *flowfabric.Client, workers, n int) (time.Duration, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	seen := newCounter(n)
	group, workCtx := errgroup.WithContext(ctx)
	began := time.Now()
	for range workers {
		worker := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Concurrency: 1, Lanes: []string{"default"}})
		flowfabric.Handle(worker, ffNoop, func(ctx context.Context, task *flowfabric.Task, _ []byte) (flowfabric.None, error) {
			_, err := task.ReportUsage(ctx, flowfabric.Usage{Amounts: map[string]int64{ffUnit: 1}})
			seen.one()
			return flowfabric.None{}, err
		})
		group.Go(func() error { return worker.Run(workCtx) })
	}
	group.Go(func() error {
		defer stop() // Run returns when the last completion is acknowledged
		select {
		case <-seen.done:
		case <-workCtx.Done():
		}
		return nil
	})
	err := group.Wait()
	return time.Since(began), err
}

// checkGivenBack makes the sample invalid unless everything has succeeded and no slot is held.
func checkGivenBack(ctx context.Context, client *flowfabric.Client, n int, sample *Sample) error {
	if err := checkCompleted(ctx, client, n, sample); err != nil {
		return err
	}
	for quota, err := range client.Quotas().List(ctx) {
		if err != nil {
			return err
		}
		for _, key := range quota.Keys {
			if key.Slots > 0 {
				sample.Fail("%d slots of %q are held", key.Slots, key.Key)
			}
		}
	}
	return nil
}

// checkBooked makes the sample invalid unless each execution was booked once and nothing is reserved.
func checkBooked(ctx context.Context, client *flowfabric.Client, n int, sample *Sample) error {
	if err := checkCompleted(ctx, client, n, sample); err != nil {
		return err
	}
	used, reserved := int64(0), int64(0)
	for budget, err := range client.Budgets().List(ctx) {
		if err != nil {
			return err
		}
		used, reserved = used+budget.Dimensions[ffUnit].Used, reserved+budget.Dimensions[ffUnit].Reserved
	}
	if used != int64(n) || reserved != 0 {
		sample.Fail("%d of %d reports are booked, %d are reserved", used, n, reserved)
	}
	return nil
}
