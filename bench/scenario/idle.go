package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// idlePlan is U260: workers that poll, suspended executions, finished ones that are kept, and nothing to do.
type idlePlan struct {
	Workers   int     `json:"workers"`
	Waiting   int     `json:"waiting"`
	Kept      int     `json:"kept"`
	DurationS float64 `json:"duration_s"`
}

func planIdle(cfg Config) (plan, error) {
	if cfg.Kept < 0 {
		return nil, errors.New("kept is not negative")
	}
	return &idlePlan{
		Workers: pick(cfg, cfg.Workers, 10, 4), Waiting: pick(cfg, cfg.N, 10_000, 20), Kept: pick(cfg, cfg.Kept, 1_000_000, 100),
		DurationS: pick(cfg, cfg.Duration, time.Minute, time.Second).Seconds(),
	}, nil
}

// crowd is how many executions are handed in at a time while the scene is set.
const crowd = 1000

func (p *idlePlan) take(ctx context.Context, t *trial) error {
	from, err := t.position(ctx)
	if err != nil {
		return err
	}
	b := newBook(0, p.Kept+p.Waiting)
	workers := t.hire(ctx, p.Workers, func(int) (flowfabric.WorkerConfig, handler) {
		return flowfabric.WorkerConfig{}, func(ctx context.Context, task *flowfabric.Task, in []byte) (flowfabric.None, error) {
			if b.began(in) < p.Kept {
				return flowfabric.None{}, nil
			}
			return flowfabric.None{}, task.Suspend(ctx, flowfabric.Suspension{Key: "rest", Until: flowfabric.OperatorOnly()})
		}
	})
	err = p.setScene(ctx, t, b)
	if err == nil {
		err = p.rest(ctx, t, b)
	}
	if err := errors.Join(err, workers.dismiss()); err != nil {
		return err
	}
	ended, err := t.endingsSince(ctx, from, p.Kept)
	if err != nil {
		return err
	}
	t.sample.check("finished", p.Kept, ended.outcomes["success"])
	suspended, err := t.suspended(ctx)
	t.sample.check("waiting", min(p.Waiting, exact), suspended)
	return err
}

// exact is up to where a count is.
const exact = 10_000

func (t *trial) suspended(ctx context.Context) (int, error) {
	count, err := t.place.client.Executions().Count(ctx, ops.Filter{Status: []flowfabric.Status{flowfabric.StatusSuspended}})
	return count.Total, err
}

// setScene finishes what is to be kept and hands in what is to wait.
func (p *idlePlan) setScene(ctx context.Context, t *trial, b *book) error {
	done := func() int { return int(t.place.client.work.completed.Load()) }
	for from := 0; from < p.Kept; from += crowd {
		if err := t.submitAll(ctx, b, from, min(from+crowd, p.Kept), crowd/submitters+1, plainly); err != nil {
			return err
		}
	}
	if err := t.await(ctx, "finished", p.Kept, done); err != nil {
		return err
	}
	return t.submitAll(ctx, b, p.Kept, p.Kept+p.Waiting, crowd/submitters+1, plainly)
}

// rest measures what it costs to do nothing, after a tenth of the time in which engine and database settle.
func (p *idlePlan) rest(ctx context.Context, t *trial, b *book) error {
	d := time.Duration(p.DurationS * float64(time.Second))
	var failed error
	err := t.await(ctx, "listed", min(p.Waiting, exact), func() (n int) {
		n, failed = t.suspended(ctx)
		return n
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if err := pause(ctx, d/10); err != nil {
		return err
	}
	before, begun, err := t.look(ctx, b)
	if err != nil {
		return err
	}
	at, end := t.cfg.Progress("seconds of nothing", int(d.Seconds()))
	for i := range int(d / (time.Second / 10)) {
		at(i / 10)
		if err := pause(ctx, time.Second/10); err != nil {
			end()
			return err
		}
	}
	end()
	after, begunAfter, err := t.look(ctx, b)
	if err != nil {
		return err
	}
	t.sample.check("started_while_idle", 0, begunAfter-begun)
	r := before.until(after)
	for name, n := range map[string]*float64{"cpu_percent_client": r.CPUClientS, "cpu_percent_server": r.CPUServerS} {
		if n != nil {
			t.sample.Counts[name] = 100 * *n / p.DurationS
		}
	}
	for name, n := range map[string]*int64{"store_queries_per_s": r.Queries, "wal_bytes_per_s": r.WALBytes} {
		if n != nil {
			t.sample.Counts[name] = float64(*n) / p.DurationS
		}
	}
	if r.RSSMax != nil {
		t.sample.Counts["rss_bytes"] = float64(*r.RSSMax)
	}
	return nil
}

// look is what has been used and what has begun up to now.
func (t *trial) look(ctx context.Context, b *book) (used, int, error) {
	if t.place.address != "" {
		if err := measure.Settled(ctx, t.place.address); err != nil {
			return used{}, 0, err
		}
	}
	u, err := t.place.usage(ctx)
	return u, int(b.begun.Load()), err
}
