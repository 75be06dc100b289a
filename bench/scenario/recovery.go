package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// recoveryPlan is U259: tasks run in worker processes; one of them is killed, and when others have taken over, the server, and then
// the connections of the server to its store.
type recoveryPlan struct {
	Workers int   `json:"workers"`
	Tasks   int   `json:"tasks"`
	TaskMS  int64 `json:"task_ms"`
	LeaseMS int64 `json:"lease_ms"`
}

func planRecovery(cfg Config) (plan, error) {
	workers := pick(cfg, cfg.Workers, 4, 2)
	if workers < 2 {
		return nil, errors.New("recovery needs at least 2 workers: somebody must take over")
	}
	return &recoveryPlan{
		Workers: workers, Tasks: pick(cfg, cfg.N, 200, 6), TaskMS: pick(cfg, cfg.Duration, time.Minute, 3*time.Second).Milliseconds(),
		LeaseMS: pick(cfg, cfg.Lease, 30*time.Second, time.Second).Milliseconds(),
	}, nil
}

// task is the work of recovery: its input is how many milliseconds it takes.
const task flowfabric.Kind[int64, flowfabric.None] = "bench-task"

func (p *recoveryPlan) take(ctx context.Context, t *trial) error {
	from, err := t.position(ctx)
	if err != nil {
		return err
	}
	fleet, err := p.startFleet(ctx, t)
	if err != nil {
		return err
	}
	defer fleet.stop()
	ids, err := p.run(ctx, t, fleet)
	if err != nil {
		return err
	}
	t.sample.Counts["handler_starts_per_task"] = float64(fleet.starts()) / float64(len(ids))
	ended, err := t.check(ctx, "", ids, from)
	t.sample.check("succeeded", len(ids), ended.outcomes["success"])
	return err
}

// startFleet starts the worker processes. All but one can hold all tasks, so that there is room for those of the one that dies.
func (p *recoveryPlan) startFleet(ctx context.Context, t *trial) (*fleet, error) {
	settings := WorkerSettings{
		Key: t.cfg.Key, Namespace: t.place.namespace, Server: t.cfg.Server, LeaseMS: p.LeaseMS, Concurrency: p.Tasks/(p.Workers-1) + 1,
	}
	if t.place.server != nil {
		settings.Server = t.place.server.url
	}
	return startFleet(ctx, t.cfg, p.Workers, settings)
}

// run submits, kills, and waits for the end of everything.
func (p *recoveryPlan) run(ctx context.Context, t *trial, f *fleet) ([]flowfabric.ID, error) {
	began := time.Now()
	ids := make([]flowfabric.ID, p.Tasks)
	for i := range ids {
		run, err := task.Submit(ctx, t.place.client.Client, p.TaskMS)
		if err != nil {
			return nil, err
		}
		ids[i] = run.ID()
	}
	if err := t.await(ctx, "tasks running", p.Tasks, f.running); err != nil {
		return nil, err
	}
	if err := p.killWorker(ctx, t, f); err != nil {
		return nil, err
	}
	probes, err := p.killEngine(ctx, t)
	if err != nil {
		return nil, err
	}
	ids = append(ids, probes...)
	err = t.await(ctx, "tasks ended", len(ids), f.ended)
	t.sample.ThroughputPerS = float64(f.ended()) / time.Since(began).Seconds()
	return ids, err
}

// killWorker kills the process that has the most tasks and measures how long each of them takes to start elsewhere. Then it says
// what the dead one would still have said, which must not be accepted.
func (p *recoveryPlan) killWorker(ctx context.Context, t *trial, f *fleet) error {
	killed, lost := f.killBusiest()
	taken := func() int { return f.startedSince(lost, killed) }
	if err := t.await(ctx, "tasks taken over", len(lost), taken); err != nil {
		return err
	}
	restart := f.restarts(lost, killed)
	t.sample.Counts["lost_with_the_worker"] = float64(len(lost))
	t.sample.LatencyMS["restart"] = measure.LatencyOf(restart)
	t.sample.check("taken_over", len(lost), taken())
	stale := 0
	for id, lease := range lost {
		answers, err := t.place.client.Client.Work().Do(ctx, api.WorkItem{Op: api.OpComplete, ID: id, Lease: lease})
		if err != nil {
			return err
		}
		if answers[0].Err == nil {
			stale++
		}
	}
	t.sample.check("stale_writes_accepted", 0, stale)
	return nil
}

// killEngine kills our server, then its connections to the store, and returns the executions that showed that it works again.
func (p *recoveryPlan) killEngine(ctx context.Context, t *trial) (probes []flowfabric.ID, err error) {
	if t.place.server == nil {
		t.note("neither the server nor its connections were killed: they are not the benchmark's own")
		return nil, nil
	}
	for _, kill := range []func(context.Context, *trial) (flowfabric.ID, error){p.killServer, p.cutStore} {
		probe, err := kill(ctx, t)
		if err != nil {
			return nil, err
		}
		if probe != "" {
			probes = append(probes, probe)
		}
	}
	return probes, nil
}

// killServer kills our server, starts it again in its place, and measures how long it takes until it answers, and until work is done.
func (p *recoveryPlan) killServer(ctx context.Context, t *trial) (flowfabric.ID, error) {
	killed := time.Now()
	if err := t.place.restart(ctx, t.cfg); err != nil {
		return "", err
	}
	if _, err := t.place.client.Admin().Info(ctx); err != nil {
		return "", err
	}
	t.sample.LatencyMS["server_ready"] = measure.LatencyOf([]time.Duration{time.Since(killed)})
	return t.completedAgain(ctx, "server_killed_to_completed", killed)
}

// cutStore ends all connections of our server to its store, at the store's end, and measures how long it takes until work is done.
func (p *recoveryPlan) cutStore(ctx context.Context, t *trial) (flowfabric.ID, error) {
	if strings.HasPrefix(t.place.address, "sqlite:") {
		t.note("SQLite lives in the server's process: the kill of the server is that of the store")
		return "", nil
	}
	cut := time.Now()
	n, err := measure.CutConnections(ctx, t.place.address)
	if err != nil {
		return "", fmt.Errorf("cut the connections to the store: %w", err)
	}
	t.sample.Counts["store_connections_cut"] = float64(n)
	if n == 0 {
		t.note("no connection of the server to its store was found: is there a pooler in between?")
		return "", nil
	}
	return t.completedAgain(ctx, "store_cut_to_completed", cut)
}

// completedAgain submits a task that takes no time and measures how long after a moment it is completed. While the engine is not
// there yet, the task is submitted again: by its key it stays one.
func (t *trial) completedAgain(ctx context.Context, name string, since time.Time) (flowfabric.ID, error) {
	within, cancel := context.WithTimeout(ctx, t.cfg.Stall)
	defer cancel()
	for {
		run, err := task.Submit(within, t.place.client.Client, 0, flowfabric.SubmitOptions{IdempotencyKey: name})
		if err == nil {
			_, err = run.Result(within)
		}
		switch {
		case err == nil:
			t.sample.LatencyMS[name] = measure.LatencyOf([]time.Duration{time.Since(since)})
			t.sample.check(name, 1, 1)
			return run.ID(), nil
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case within.Err() != nil:
			t.note(fmt.Sprintf("%s: given up after %s: %s", name, t.cfg.Stall, err))
			t.sample.check(name, 1, 0)
			return "", nil
		case !errors.Is(err, flowfabric.ErrUnavailable):
			return "", fmt.Errorf("%s: %w", name, err)
		}
		_ = pause(within, lookEvery) // its end is seen above
	}
}
