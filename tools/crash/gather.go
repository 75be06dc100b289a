package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/ops"
	"github.com/flowfabric/flowfabric/tools/crash/history"
)

// readers is how many executions are read at a time.
const readers = 8

// gatherer reads everything that a run has left.
type gatherer struct {
	client *flowfabric.Client
	facts  *history.Facts
	mu     sync.Mutex
	flows  map[string]map[string]string // ids of members by name, by flow
	inputs map[string]input
	kinds  map[string]int64 // executions by kind
}

// gather reads the healed system and the journals.
func (r *run) gather(ctx context.Context, client *flowfabric.Client, followed map[string][]string) (*gatherer, error) {
	g := &gatherer{client: client, flows: map[string]map[string]string{}, inputs: map[string]input{}, kinds: map[string]int64{}, facts: &history.Facts{
		Followed: followed, Executions: map[string]history.Execution{}, Flows: map[string]string{}, Leases: map[string][]history.Lease{},
		Signals: map[string][]history.Signal{}, Upstream: map[string][]string{}, Usage: map[string]int64{}, WantUsage: map[string]int64{},
	}}
	journals, err := filepath.Glob(filepath.Join(r.dir, "*.journal"))
	if err != nil {
		return nil, err
	}
	if g.facts.Calls, err = history.ReadJournals(journals...); err != nil {
		return nil, err
	}
	for _, read := range []func(context.Context) error{g.executions, g.flowStates, g.log, g.budget, g.checks} {
		if err := read(ctx); err != nil {
			return nil, err
		}
	}
	g.edges()
	if r.database != nil {
		problems, err := r.database.unbalanced(ctx, len(g.facts.Executions))
		if err != nil {
			return nil, err
		}
		g.facts.Problems = append(g.facts.Problems, problems...)
	}
	found, err := panics(r.dir)
	g.facts.Problems = append(g.facts.Problems, found...)
	return g, err
}

// executions lists all executions and reads each.
func (g *gatherer) executions(ctx context.Context) error {
	ids := make(chan flowfabric.ID, 1000)
	failures := make(chan error, readers+1)
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			var failed error
			for id := range ids {
				if failed == nil {
					failed = g.execution(ctx, id)
				}
			}
			failures <- failed
		})
	}
	var errs []error
	for x, err := range g.client.Executions().List(ctx, ops.ListOptions{Limit: 1000}) {
		if err != nil {
			errs = append(errs, err)
			break
		}
		ids <- x.ID
	}
	close(ids)
	all.Wait()
	close(failures)
	for err := range failures {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (g *gatherer) execution(ctx context.Context, id flowfabric.ID) error {
	x, err := g.client.Get(ctx, id)
	if err != nil {
		return fmt.Errorf("reading %s: %w", id, err)
	}
	stored := history.Execution{
		ID: string(id), Kind: x.Kind, Key: x.IdempotencyKey, Status: string(x.Status), Result: string(x.Result.Data),
		Parent: string(x.ParentID), Expected: "succeeded",
	}
	if kind(x.Kind) == doomed {
		stored.Expected = "failed"
	}
	var in input
	if err := json.Unmarshal(x.Input.Data, &in); err != nil {
		return fmt.Errorf("the input of %s: %w", id, err)
	}
	stored.WantResult = in.result()
	if !stored.Terminal() {
		if why, err := g.client.Executions().Explain(ctx, id); err == nil {
			stored.Explanation = why.Summary
		}
	}
	var leases []history.Lease
	for l, err := range g.client.Executions().Leases(ctx, id) {
		if err != nil {
			return fmt.Errorf("the leases of %s: %w", id, err)
		}
		leases = append(leases, history.Lease{Epoch: l.Epoch, ID: l.LeaseID, Acquired: l.AcquiredAt, Expired: l.EndedAt})
	}
	if len(leases) > 1 && leases[0].Epoch > leases[1].Epoch { // newest first
		for i, j := 0, len(leases)-1; i < j; i, j = i+1, j-1 {
			leases[i], leases[j] = leases[j], leases[i]
		}
	}
	signals, err := g.signals(ctx, x)
	if err != nil {
		return err
	}
	used, err := g.usage(ctx, x)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.facts.Executions[string(id)], g.facts.Leases[string(id)], g.inputs[string(id)] = stored, leases, in
	g.kinds[x.Kind]++
	if kind(x.Kind) == waits {
		g.facts.Signals[string(id)] = signals
	}
	if kind(x.Kind) == spends {
		g.facts.Usage[string(id)], g.facts.WantUsage[string(id)] = used, in.Amount
	}
	if x.FlowID != "" && x.ParentID == "" {
		if g.flows[string(x.FlowID)] == nil {
			g.flows[string(x.FlowID)] = map[string]string{}
		}
		g.flows[string(x.FlowID)][x.Name] = string(id)
	}
	return nil
}

func (g *gatherer) signals(ctx context.Context, x *flowfabric.Execution) (all []history.Signal, err error) {
	if kind(x.Kind) != waits {
		return nil, nil
	}
	for s, err := range g.client.Executions().Signals(ctx, x.ID) {
		if err != nil {
			return nil, fmt.Errorf("the signals of %s: %w", x.ID, err)
		}
		all = append(all, history.Signal{ID: s.ID})
	}
	return all, nil
}

func (g *gatherer) usage(ctx context.Context, x *flowfabric.Execution) (int64, error) {
	if kind(x.Kind) != spends {
		return 0, nil
	}
	used, err := g.client.Executions().Usage(ctx, x.ID)
	if err != nil {
		return 0, fmt.Errorf("the usage of %s: %w", x.ID, err)
	}
	return used.Amounts[unit], nil
}

func (g *gatherer) flowStates(ctx context.Context) error {
	for flow, err := range g.client.Flows().List(ctx) {
		if err != nil {
			return err
		}
		if flow.Kind == "diamond" {
			g.facts.Flows[string(flow.ID)] = string(flow.State)
		}
	}
	return nil
}

// edges finds out who waited for whom.
func (g *gatherer) edges() {
	for _, members := range g.flows {
		for name, before := range upstream() {
			if id, there := members[name]; there {
				for _, other := range before {
					g.facts.Upstream[id] = append(g.facts.Upstream[id], members[other])
				}
			}
		}
	}
}

// log reads the whole event log.
func (g *gatherer) log(ctx context.Context) error {
	for after := api.FromStart; ; {
		page, err := g.client.Events().Read(ctx, ops.ReadOptions{After: after, Limit: 1000})
		if err != nil {
			return err
		}
		for _, e := range page.Events {
			g.facts.Log = append(g.facts.Log, history.Event{ID: e.ID, Kind: e.Kind, At: e.At, Execution: string(e.ExecutionID), Data: e.Data})
		}
		if after = page.Next; page.AtEnd {
			return nil
		}
	}
}

func (g *gatherer) budget(ctx context.Context) error {
	b, err := g.client.Budgets().Get(ctx, budgetName)
	if err != nil {
		return err
	}
	d := b.Dimensions[unit]
	g.facts.Budget = history.Budget{Used: d.Used, Reserved: d.Reserved, Overrun: d.Overrun, Holds: b.LiveHolds}
	return nil
}

// checks asks the system what it thinks of itself.
func (g *gatherer) checks(ctx context.Context) error {
	doctor, err := g.client.Admin().Doctor(ctx)
	if err != nil {
		return err
	}
	for _, c := range doctor.Checks {
		if c.State == api.CheckFail {
			g.facts.Problems = append(g.facts.Problems, fmt.Sprintf("doctor: %s: %s", c.Name, c.Detail))
		}
	}
	integrity, err := g.client.Admin().Integrity(ctx)
	if err != nil {
		return err
	}
	if !integrity.OK {
		g.facts.Problems = append(g.facts.Problems, fmt.Sprintf("integrity: %+v", integrity.Differences))
	}
	audit, err := g.client.Admin().VerifyAudit(ctx, "default")
	if err != nil {
		return err
	}
	if !audit.OK {
		g.facts.Problems = append(g.facts.Problems, "audit: "+audit.Problem)
	}
	return nil
}

// settled waits until everything has ended, at most for a time.
func (r *run) settled(ctx context.Context, client *flowfabric.Client, bound time.Duration) (took time.Duration, err error) {
	began := time.Now()
	states := strings.Fields("ready delayed blocked granted running suspended")
	var filter ops.Filter
	for _, state := range states {
		filter.Status = append(filter.Status, flowfabric.Status(state))
	}
	for {
		asking, cancel := context.WithTimeout(ctx, callLimit)
		page, err := client.Executions().Page(asking, ops.ListOptions{Filter: filter, Limit: 1})
		open := 0
		if err == nil && len(page.Items) == 0 {
			for flow, failed := range client.Flows().List(asking, flowfabric.FlowQuery{State: flowfabric.FlowOpen}) {
				if err = failed; err != nil || flow != nil {
					open++
					break
				}
			}
			if err == nil && open == 0 {
				cancel()
				return time.Since(began), nil
			}
		}
		cancel()
		if time.Since(began) > bound {
			return time.Since(began), err
		}
		if !pause(ctx, 200*time.Millisecond) {
			return time.Since(began), ctx.Err()
		}
	}
}
