package sim

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/memory"
)

// process is an engine as a process of its own: it has a clock, a way to the store, and an end.
type process struct {
	w      *World
	index  int
	life   int // how often it was started before
	host   hostClock
	port   *port
	dead   chan struct{}
	opened chan struct{} // closed when e can be used, or opening has failed
	e      *engine.Engine

	// What the driver alone reads and writes.
	killed bool
	frozen time.Time // until then none of its calls goes on
	faults []verdict // of its next calls
	slow   time.Duration

	ears
}

// ears is what becomes of the hints for a process.
type ears struct {
	mu      sync.Mutex
	lose    int       // hints to come that are lost
	double  int       // hints to come that are heard twice
	delay   int       // hints to come that are heard later
	deaf    time.Time // until then the listening connection is lost
	missing bool      // something was lost while it was
}

// hostClock is the clock of a host, which differs from those of others. No two timers of a history fire at the same instant: the runtime wakes
// those that do in any order, and the same seed would give two histories.
type hostClock struct {
	ahead  time.Duration
	timers *atomic.Int64 // that were started in this history
}

func (c hostClock) Now() time.Time { return clock.System().Now().Add(c.ahead) }

func (c hostClock) NewTimer(d time.Duration) *clock.Timer {
	if d <= 0 {
		return clock.System().NewTimer(0)
	}
	// Up to grid later than asked for, at a place of its own.
	now := clock.System().Now()
	at := now.Add(d + grid - 1).Truncate(grid).Add(time.Duration(c.timers.Add(1) % int64(grid)))
	return clock.System().NewTimer(at.Sub(now))
}

// grid is so wide that it has a place for every timer that is pending at a time.
const grid = 100 * time.Microsecond

func (c hostClock) NewTimerAt(at time.Time) *clock.Timer { return c.NewTimer(at.Sub(c.Now())) }

// source draws for one process.
type source struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (s *source) float() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.Float64()
}

func (s *source) uuid(at time.Time) base.UUID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var random [10]byte
	for i := range random {
		random[i] = byte(s.r.Uint32())
	}
	return base.MintUUID(base.TimeOf(at), random)
}

func newSource(seed, stream uint64) *source {
	return &source{r: rand.New(rand.NewPCG(seed, stream))} //nolint:gosec // G404: a history is repeated from its seed
}

// start begins a process: its engine opens while other things go on.
func (w *World) start(index int) *process {
	life := w.lives[index]
	w.lives[index]++
	p := &process{w: w, index: index, life: life, host: hostClock{w.skew[index], &w.timers}, dead: make(chan struct{}), opened: make(chan struct{})}
	p.port = &port{p: p}
	p.port.s = w.db.Open(memory.Process{Clock: p.host, Gate: p.port.gate})
	ids, draws := newSource(w.seed, uint64(1000+100*index+life)), newSource(w.seed, uint64(5000+100*index+life))
	cfg := engine.Config{
		Clock: p.host, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), SigningKey: w.key, Draw: draws.float,
		Mint: func() base.UUID { return ids.uuid(p.host.Now()) },
	}
	w.procs[index] = p
	w.all.Go(func() {
		defer close(p.opened)
		e, err := engine.Open(context.Background(), p.port, cfg)
		if err == nil {
			p.e = e
		}
	})
	return p
}

// up reports whether commands can be given to the process.
func (p *process) up() bool {
	select {
	case <-p.opened:
		return !p.killed && p.e != nil
	default:
		return false
	}
}

// failed reports whether the engine could not be opened.
func (p *process) failed() bool {
	select {
	case <-p.opened:
		return p.e == nil
	default:
		return false
	}
}

// ended is the error of every call of a process that was killed.
func (p *process) ended() error { return &store.Fault{Kind: store.Unavailable, Err: errKilled} }

// kill ends the process between two calls of the store: what it had not committed is gone, and nothing of it is heard any more. Its goroutines are
// ended behind the scene.
func (p *process) kill() {
	if p.killed {
		return
	}
	p.killed = true
	close(p.dead)
	_ = p.port.s.Close()
	p.w.forget(p)
	p.w.all.Go(func() {
		<-p.opened
		if p.e != nil {
			_ = p.e.Close(context.Background())
		}
	})
}

// hears decides what becomes of a hint.
func (p *process) hears(hint store.Hint, hear func(store.Hint)) {
	p.mu.Lock()
	deaf := clock.System().Now().Before(p.deaf)
	again, later := false, false
	switch {
	case deaf:
		p.missing = true
	case p.lose > 0:
		p.lose--
		deaf = true
	case p.double > 0:
		p.double--
		again = true
	case p.delay > 0:
		p.delay--
		later = true
	}
	back := p.missing && !deaf
	if back {
		p.missing = false
	}
	p.mu.Unlock()
	switch {
	case deaf:
		return
	case later:
		p.w.all.Go(func() { p.hearLater(hint, hear) })
		return
	case back: // what a listener says first when its connection is back
		hear(store.Hint{AllLanes: true, Log: true, Dictionary: true, Inbox: true, Keys: []string{store.AnyKey}, Blocked: true})
	case again:
		hear(hint)
	}
	hear(hint)
}

func (p *process) hearLater(hint store.Hint, hear func(store.Hint)) {
	timer := p.host.NewTimer(1200 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		hear(hint)
	case <-p.dead:
	}
}

func signingKey() *keyring.SeedCommand {
	var secret [32]byte
	var name [4]byte
	key, err := keyring.AutoSeed(name, secret)
	if err != nil {
		return nil
	}
	return &key
}
