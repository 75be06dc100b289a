package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/tools/crash/lossyfs"
	"github.com/flowfabric/flowfabric/tools/crash/proxy"
)

// The kinds of faults, as they are counted.
const (
	killServer     = "server killed"
	freezeServer   = "server frozen"
	killWorker     = "worker killed"
	freezeWorker   = "worker frozen"
	killPostgres   = "postgres killed"
	freezePostgres = "postgres frozen"
	fullDisk       = "disk full"
	powerCut       = "power cut"
	failedSync     = "sync failed, then power cut"
	network        = "network: " // and what
)

// fault is one planned fault. Which of the targets it hits is number modulo how many there are.
type fault struct {
	after  time.Duration // the one before
	kind   string
	number int
	length time.Duration
	mode   proxy.Mode // of network faults; Pass: connections are cut
	seed   uint64     // of what a power cut loses
}

// choice is a kind of fault and how often it is drawn, out of a hundred.
type choice struct {
	kind string
	of   int
}

// stream is a sequence of faults of related kinds, independent of the other streams.
type stream struct {
	name     string
	choices  []choice
	min, max time.Duration // between faults
	short    time.Duration // bounds of their length
	long     time.Duration
}

// streams are those of a store.
func streams(store string) []stream {
	ofStore := []choice{{killPostgres, 75}, {freezePostgres, 12}, {fullDisk, 13}}
	if store == "sqlite" {
		ofStore = []choice{{powerCut, 75}, {fullDisk, 12}, {failedSync, 13}}
	}
	return []stream{
		{"servers", []choice{{killServer, 85}, {freezeServer, 15}}, time.Second, 4 * time.Second, 0, 2 * leaseTTL},
		{"workers", []choice{{killWorker, 75}, {freezeWorker, 25}}, 3 * time.Second, 9 * time.Second, leaseTTL, 3 * leaseTTL},
		{"store", ofStore, 5 * time.Second, 11 * time.Second, 0, 2 * time.Second},
		{"network", []choice{{network, 100}}, time.Second, 5 * time.Second, 500 * time.Millisecond, 3 * time.Second},
	}
}

// plan draws the faults of a stream. The same seed gives the same faults; what they meet differs from run to run.
func (s stream) plan(seed uint64, index int, length time.Duration) (faults []fault) {
	random := rand.New(rand.NewPCG(seed, uint64(index)+1))
	for total := time.Duration(0); total < length; {
		f := fault{after: s.min + time.Duration(random.Int64N(int64(s.max-s.min))), number: random.IntN(1 << 16), seed: random.Uint64()}
		f.length = s.short + time.Duration(random.Int64N(int64(s.long-s.short)))
		drawn := random.IntN(100)
		for _, c := range s.choices {
			if f.kind = c.kind; drawn < c.of {
				break
			}
			drawn -= c.of
		}
		if f.kind == network {
			f.mode = proxy.Mode(random.IntN(int(proxy.Delay) + 1))
		}
		total += f.after
		faults = append(faults, f)
	}
	return faults
}

// torment applies all streams until hurting ends, and returns when every fault is over. Repairs end only with ctx, of which hurting is a part. It
// returns the first error that is not about a target that was not there.
func (r *run) torment(ctx, hurting context.Context) error {
	repair, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	hurting, stop := context.WithCancel(hurting)
	defer stop()
	defer context.AfterFunc(repair, stop)()
	var all sync.WaitGroup
	for i, s := range streams(r.store) {
		faults := s.plan(r.seed, i, r.length)
		all.Go(func() {
			for _, f := range faults {
				if !pause(hurting, f.after) {
					return
				}
				err := r.apply(hurting, repair, f)
				switch {
				case err == nil:
				case errors.Is(err, errNotOurs):
					r.count("faults left out")
				default:
					fail(fmt.Errorf("%s: %w", f.kind, err))
					return
				}
			}
		})
	}
	all.Go(func() {
		for pause(hurting, time.Second) {
			if err := r.reviveWorkers(); err != nil {
				fail(err)
			}
		}
	})
	<-hurting.Done()
	all.Wait()
	return context.Cause(repair) // nil unless something has failed or ctx has ended
}

// apply applies one fault and repairs what it broke. The fault ends early if ctx ends, the repair if repair does.
func (r *run) apply(ctx, repair context.Context, f fault) error {
	switch f.kind {
	case killServer, freezeServer:
		return r.hurtServer(ctx, repair, f)
	case killWorker, freezeWorker:
		return r.hurtWorker(ctx, f)
	case killPostgres:
		return r.database.kill(repair, f.length/4)
	case freezePostgres:
		return r.database.freeze(ctx, f.length)
	case fullDisk:
		return r.fillDisk(ctx, repair, f)
	case powerCut, failedSync:
		return r.cutPower(ctx, repair, f)
	default:
		return r.hurtNetwork(ctx, f)
	}
}

func (r *run) hurtServer(ctx, repair context.Context, f fault) error {
	s := r.servers[f.number%len(r.servers)]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process.over() {
		return s.boot(repair)
	}
	r.hurts(f.kind)
	if f.kind == freezeServer {
		return s.process.freeze(ctx, leaseTTL+f.length)
	}
	if err := s.process.kill(); err != nil {
		return err
	}
	pause(ctx, f.length/8)
	return s.boot(repair)
}

func (r *run) hurtWorker(ctx context.Context, f fault) error {
	w := r.workers[f.number%len(r.workers)]
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process.over() {
		return r.boot(w)
	}
	r.hurts(f.kind)
	if f.kind == freezeWorker {
		return w.process.freeze(ctx, f.length)
	}
	if err := w.process.kill(); err != nil {
		return err
	}
	return r.boot(w)
}

func (r *run) fillDisk(ctx, repair context.Context, f fault) error {
	if r.database != nil {
		if r.database.mount == "" {
			return errNotOurs
		}
		return r.database.fill(repair, f.length)
	}
	if r.file.mounted == nil {
		return errNotOurs
	}
	r.hurts(f.kind)
	r.file.hurt(ctx, lossyfs.Full, f.length)
	return nil
}

// cutPower cuts the power under the server on SQLite, after a time in which syncs fail or at once. Without a disk of our own it kills the server.
func (r *run) cutPower(ctx, repair context.Context, f fault) error {
	if r.file.mounted == nil {
		return errNotOurs
	}
	s := r.servers[0]
	if f.kind == failedSync {
		r.file.hurt(ctx, lossyfs.Unsyncing, f.length)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.hurts(f.kind)
	if err := r.file.cut(s, rand.New(rand.NewPCG(f.seed, 0))); err != nil {
		return err
	}
	return s.boot(repair)
}

func (r *run) hurtNetwork(ctx context.Context, f fault) error {
	w := r.ways[f.number%len(r.ways)]
	if f.mode == proxy.Pass {
		r.hurts(network + "cut")
		w.Cut()
		return nil
	}
	r.hurts(network + f.mode.String())
	w.Set(f.mode)
	if f.mode == proxy.Refuse {
		w.Cut()
	}
	pause(ctx, f.length)
	w.Set(proxy.Pass)
	return nil
}
