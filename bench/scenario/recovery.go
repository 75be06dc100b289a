package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// recoveryPlan is U259: tasks run in worker processes; one of them is killed, and when others have taken over, the server.
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
	t.note("the store was not killed: that needs a Postgres that the benchmark may kill")
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
	t.sample.Counts["handler_starts_per_task"] = float64(fleet.starts()) / float64(p.Tasks)
	ended, err := t.check(ctx, "", ids, from)
	t.sample.check("succeeded", p.Tasks, ended.outcomes["success"])
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
		run, err := task.Submit(ctx, t.place.client, p.TaskMS)
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
	if t.place.server == nil {
		t.note("the server was not killed: it is not the benchmark's own")
	} else if err := p.killServer(ctx, t); err != nil {
		return nil, err
	}
	err := t.await(ctx, "tasks ended", p.Tasks, f.ended)
	t.sample.ThroughputPerS = float64(f.ended()) / time.Since(began).Seconds()
	return ids, err
}

// killWorker kills the process that has the most tasks and measures how long each of them takes to start elsewhere. Then it says
// what the dead one would still have said, which nobody may accept.
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
		answers, err := t.place.client.Client.Work().Do(ctx, flowfabric.WorkItem{Op: flowfabric.OpComplete, ID: id, Lease: lease})
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

// killServer kills our server, starts it again in its place, and measures how long it takes until it answers.
func (p *recoveryPlan) killServer(ctx context.Context, t *trial) error {
	killed := time.Now()
	err := t.place.restart(ctx, t.cfg)
	if err != nil {
		return err
	}
	if _, err := t.place.client.Admin().Info(ctx); err != nil {
		return err
	}
	t.sample.LatencyMS["server_ready"] = measure.LatencyOf([]time.Duration{time.Since(killed)})
	return nil
}
