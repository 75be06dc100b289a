package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/bench/measure"
)

// Run takes the samples of a scenario, each on a fresh store. An error means that there is no report; what does not add up is in
// the report, which is then not valid.
func Run(ctx context.Context, s Scenario, cfg Config) (*Report, error) {
	cfg = cfg.withDefaults(s)
	if s.processes && cfg.Via == viaEmbedded {
		return nil, fmt.Errorf("%s kills processes, so it runs via http", s.Name)
	}
	p, err := s.plan(cfg)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	report := &Report{
		SchemaVersion: schemaVersion, Scenario: s.Name, Via: cfg.Via, StartedAt: began.UTC(), Build: cfg.Build, Host: measure.ThisHost(),
		Notes: []string{},
	}
	report.Build.Go = measure.ThisBuild().Go
	if path, isFile := strings.CutPrefix(cfg.Store, "sqlite:"); isFile {
		report.Host.Filesystem = measure.Filesystem(cmp.Or(path, os.TempDir()))
	}
	if cfg.Quick {
		report.Notes = append(report.Notes, "quick: sizes for trying things out, not for figures")
	}
	for i := range cfg.Samples {
		if err := takeSample(ctx, p, cfg, i, report); err != nil {
			return nil, fmt.Errorf("%s, sample %d: %w", s.Name, i+1, err)
		}
	}
	report.DurationS = time.Since(began).Seconds()
	report.summarize()
	report.Params, err = paramsOf(p)
	return report, err
}

// paramsOf is the plan as a report shows it.
func paramsOf(p plan) (params map[string]any, err error) {
	text, err := json.Marshal(p)
	if err == nil {
		err = json.Unmarshal(text, &params)
	}
	return params, err
}

// trial is one sample being taken.
type trial struct {
	cfg    Config
	number int // of the sample, from 1; also its seed
	place  *place
	sample *Sample
	report *Report
}

// takeSample takes one sample on a place of its own and adds it to the report.
func takeSample(ctx context.Context, p plan, cfg Config, i int, report *Report) (err error) {
	at, err := openPlace(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.close(ctx)) }()
	if report.Store.Kind == "" {
		if report.Store, err = at.describe(ctx); err != nil {
			return err
		}
	}
	t := &trial{cfg: cfg, number: i + 1, place: at, sample: newSample(), report: report}
	before, err := at.usage(ctx)
	if err != nil {
		return err
	}
	if err := p.take(ctx, t); err != nil {
		return err
	}
	after, err := at.usage(ctx)
	if err != nil {
		return err
	}
	t.sample.Resources = before.until(after)
	report.Samples = append(report.Samples, t.sample)
	return nil
}

// note says something about the run, once.
func (t *trial) note(text string) {
	for _, known := range t.report.Notes {
		if known == text {
			return
		}
	}
	t.report.Notes = append(t.report.Notes, text)
}

// lookEvery is how often something is looked at that is waited for.
const lookEvery = 2 * time.Millisecond

// await waits until so many are done, shows how far that is, and gives up when nothing happened for a while.
func (t *trial) await(ctx context.Context, what string, total int, done func() int) error {
	at, end := t.cfg.Progress(what, total)
	defer end()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	last, changed := -1, time.Now()
	for {
		n := done()
		at(n)
		if n >= total {
			return nil
		}
		if n != last {
			last, changed = n, time.Now()
		}
		if time.Since(changed) > t.cfg.Stall {
			t.note(fmt.Sprintf("%s: given up at %d of %d after %s without any", what, n, total, t.cfg.Stall))
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
	}
}

// used is what has been used up to a moment.
type used struct {
	store          measure.Usage
	client, server *float64 // processor time in seconds
	pid            int      // of the server; 0: there is none
	rss            *int64
}

// until is what was used between two moments.
func (u used) until(v used) Resources {
	r := Resources{
		CPUClientS: less(v.client, u.client), RSSMax: v.rss, DBBytes: v.store.Bytes, WALBytes: less(v.store.WAL, u.store.WAL),
		Commits: less(v.store.Commits, u.store.Commits), Queries: less(v.store.Transactions, u.store.Transactions),
	}
	if u.pid == v.pid {
		r.CPUServerS = less(v.server, u.server)
	}
	return r
}

// less is the difference of two figures that may not be known.
func less[T int64 | float64](a, b *T) *T {
	if a == nil || b == nil {
		return nil
	}
	d := *a - *b
	return &d
}

// usage looks at store and processes.
func (p *place) usage(ctx context.Context) (u used, err error) {
	engine := os.Getpid()
	u.client = cpuOf(engine)
	if p.server != nil {
		engine = p.server.pid()
		u.pid, u.server = engine, cpuOf(engine)
	}
	if p.address == "" {
		return u, nil // the engine is somebody else's
	}
	if _, most, ok := measure.RSS(engine); ok {
		u.rss = &most
	}
	u.store, err = measure.UsageOf(ctx, p.address)
	return u, err
}

func cpuOf(pid int) *float64 {
	d, ok := measure.CPU(pid)
	if !ok {
		return nil
	}
	seconds := d.Seconds()
	return &seconds
}
