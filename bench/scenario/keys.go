package scenario

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// keysPlan compares a backlog whose executions have a key each with the same backlog under few keys: a limit per user has as many keys as
// there are users.
type keysPlan struct {
	N          int      `json:"n"`
	Few        int      `json:"few"`
	Variants   []string `json:"variants"`
	Slots      int      `json:"slots"`
	Batch      int      `json:"batch"`
	Submitters int      `json:"submitters"`
	InputBytes int      `json:"input_bytes"`
}

const (
	fewKeys       = 100
	keyedSlots    = 1000
	keyedBatch    = 1000
	keyedSenders  = 2
	keyedInput    = 64
	byFairnessKey = "fairness"
	byQuotaKey    = "quota"
	byKey         = "key" // a lane's fairness
)

func planKeys(cfg Config) (plan, error) {
	p := &keysPlan{
		N: pick(cfg, cfg.N, 300_000, 300), Few: pick(cfg, 0, fewKeys, 10), Variants: cfg.Variants, Slots: pick(cfg, cfg.Workers, keyedSlots, 20),
		Batch: keyedBatch, Submitters: keyedSenders, InputBytes: keyedInput,
	}
	if len(p.Variants) == 0 {
		p.Variants = []string{byFairnessKey, byQuotaKey}
	}
	for _, name := range p.Variants {
		if name != byFairnessKey && name != byQuotaKey {
			return nil, fmt.Errorf("keys has no variant %q: %s or %s", name, byFairnessKey, byQuotaKey)
		}
	}
	if p.N < p.Few {
		return nil, fmt.Errorf("%d executions cannot have %d keys", p.N, p.Few)
	}
	return p, nil
}

// take measures each variant with few keys and with one key for each execution, each on a place of its own. The throughput of the sample is
// that of all executions which had a key of their own.
func (p *keysPlan) take(ctx context.Context, t *trial) error {
	var many time.Duration
	for _, name := range p.Variants {
		few, err := p.apart(ctx, t, name, "few", p.Few)
		if err != nil {
			return err
		}
		own, err := p.apart(ctx, t, name, "many", p.N)
		if err != nil {
			return err
		}
		t.sample.Counts[name+".ratio"] = few.Seconds() / own.Seconds()
		many += own
	}
	t.sample.ThroughputPerS = float64(p.N*len(p.Variants)) / many.Seconds()
	return nil
}

// apart works off one backlog on a fresh place and adds what was found to the sample.
func (p *keysPlan) apart(ctx context.Context, t *trial, variant, amount string, keys int) (took time.Duration, err error) {
	at, err := openPlace(ctx, t.cfg)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, at.close(ctx)) }()
	run := &keyedRun{
		plan: p, prefix: variant + "." + amount + ".", keys: keys, book: newBook(0, p.N),
		trial: &trial{cfg: t.cfg, number: t.number, place: at, sample: t.sample, report: t.report},
	}
	return run.take(ctx, variant)
}

// keyedRun is one backlog.
type keyedRun struct {
	*trial
	plan   *keysPlan
	prefix string // of what is printed of it
	keys   int
	lane   string
	book   *book
}

func (r *keyedRun) take(ctx context.Context, variant string) (time.Duration, error) {
	options, err := r.limit(ctx, variant)
	if err != nil {
		return 0, err
	}
	from, err := r.position(ctx)
	if err != nil {
		return 0, err
	}
	before := r.heap()
	began := time.Now()
	if err := r.submitAll(ctx, options); err != nil {
		return 0, err
	}
	r.sample.Counts[r.prefix+"submit_per_s"] = float64(r.plan.N) / time.Since(began).Seconds()
	r.addHeap("heap_bytes.waiting", before)
	took, err := r.workOff(ctx)
	if err != nil {
		return 0, err
	}
	r.sample.Counts[r.prefix+"per_s"] = float64(r.plan.N) / took.Seconds()
	r.addHeap("heap_bytes.done", before)
	r.sample.LatencyMS[r.prefix+"submit"] = r.book.submit.Latency()
	ended, err := r.check(ctx, r.prefix, r.book.ids, from)
	r.sample.check(r.prefix+"succeeded", r.plan.N, ended.outcomes["success"])
	if err == nil && variant == byQuotaKey && r.sample.valid() { // what is lost keeps it in use
		err = r.place.client.Quotas().Delete(ctx, r.lane)
	}
	return took, err
}

// limit sets up what the keys are for, under fresh names, and returns how an execution is attached to its own key.
func (r *keyedRun) limit(ctx context.Context, variant string) (func(int) flowfabric.SubmitOptions, error) {
	key := func(number int) string { return fmt.Sprintf("user-%06d", number%r.keys) }
	r.lane = strings.ReplaceAll(measure.FreshName(), "_", "-")
	if variant == byFairnessKey {
		_, err := r.place.client.Lanes().Put(ctx, r.lane, api.LaneSettings{Fairness: byKey})
		return func(number int) flowfabric.SubmitOptions {
			return flowfabric.SubmitOptions{Lane: r.lane, Policy: &flowfabric.Policy{FairnessKey: key(number)}}
		}, err
	}
	quota := r.lane
	_, err := r.place.client.Quotas().Put(ctx, quota, api.QuotaSettings{ConcurrencyLimit: r.plan.Slots, PerKey: true})
	return func(number int) flowfabric.SubmitOptions {
		return flowfabric.SubmitOptions{Lane: r.lane, Quotas: []api.QuotaUse{{Quota: quota, Key: key(number)}}}
	}, err
}

// submitAll makes the backlog.
func (r *keyedRun) submitAll(ctx context.Context, options func(int) flowfabric.SubmitOptions) error {
	at, end := r.cfg.Progress("submitted", r.plan.N)
	defer end()
	var next, sent atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range r.plan.Submitters {
		group.Go(func() error {
			for {
				first := int(next.Add(int64(r.plan.Batch))) - r.plan.Batch
				if first >= r.plan.N {
					return nil
				}
				last := min(first+r.plan.Batch, r.plan.N)
				if err := r.submitBatch(ctx, first, last, options); err != nil {
					return err
				}
				at(int(sent.Add(int64(last - first))))
			}
		})
	}
	return group.Wait()
}

func (r *keyedRun) submitBatch(ctx context.Context, from, to int, options func(int) flowfabric.SubmitOptions) error {
	all := make([]flowfabric.Submission, to-from)
	for i := range all {
		in := make([]byte, keyedInput)
		binary.BigEndian.PutUint64(in, uint64(from+i))
		all[i] = noop.Submission(in, options(from+i))
	}
	began := time.Now()
	results, err := r.place.client.SubmitMany(ctx, all)
	if err != nil {
		return err
	}
	for i, result := range results {
		if result.Err != nil {
			return result.Err
		}
		r.book.accepted(from+i, result.ID, began)
	}
	return nil
}

// workOff completes the backlog and tells how long that took, from the start of the worker to the last acknowledged completion.
func (r *keyedRun) workOff(ctx context.Context) (time.Duration, error) {
	cpu := r.cpu()
	began := time.Now()
	workers := r.hire(ctx, 1, func(int) (flowfabric.WorkerConfig, handler) {
		return flowfabric.WorkerConfig{Concurrency: r.plan.Slots, Lanes: []string{r.lane}}, func(_ context.Context, _ *flowfabric.Task, in []byte) (flowfabric.None, error) {
			r.book.began(in)
			return flowfabric.None{}, nil
		}
	})
	work := &r.place.client.work
	err := r.await(ctx, "completed", r.plan.N, func() int { return int(work.completed.Load()) })
	took := work.ended().Sub(began)
	if used := less(r.cpu(), cpu); used != nil {
		r.sample.Counts[r.prefix+"cpu_us"] = *used * 1e6 / float64(r.plan.N)
	}
	return took, errors.Join(err, workers.dismiss())
}

// cpu is the processor time that the process of the engine has used; nil: it is somebody else's.
func (r *keyedRun) cpu() *float64 {
	switch {
	case r.cfg.Via == viaEmbedded:
		return cpuOf(os.Getpid())
	case r.place.server != nil:
		return cpuOf(r.place.server.pid())
	default:
		return nil
	}
}

// heap is how much memory is in use in this process. It is known only of an engine that runs in it.
func (r *keyedRun) heap() uint64 {
	if r.cfg.Via != viaEmbedded {
		return 0
	}
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// addHeap adds how much more memory is in use than before.
func (r *keyedRun) addHeap(name string, before uint64) {
	if r.cfg.Via == viaEmbedded {
		r.sample.Counts[r.prefix+name] = max(float64(r.heap())-float64(before), 0)
	}
}
