// Command crash runs real servers, workers and clients, hurts them for some minutes, lets them heal, and compares what callers were told with
// what is stored:
//
//	crash -store postgres -for 10m -seed 7
//
// On Postgres two servers share a private database; on SQLite one server has its file on a file system that loses what was not synced when the
// power is cut. Processes are killed and frozen, connections are cut, held and delayed, requests are sent twice and their answers thrown away,
// disks are full. The seed draws the faults; what they meet differs from run to run. A run needs Linux; the disk of its own and the power cut need
// root. It exits with 1 if it found a contradiction, and with 2 if it could not run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/tools/crash/history"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if name := os.Getenv(workerVariable); name != "" {
		if err := work(ctx, name); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	s := settings{}
	flag.StringVar(&s.store, "store", "postgres", "postgres or sqlite")
	flag.DurationVar(&s.length, "for", 10*time.Minute, "how long to apply faults")
	flag.DurationVar(&s.bound, "bound", 3*time.Minute, "within which everything must have ended after the last fault")
	flag.Uint64Var(&s.seed, "seed", 0, "draws the faults; 0: a fresh one")
	flag.IntVar(&s.clients, "clients", 8, "number of clients")
	flag.IntVar(&s.workers, "workers", 3, "number of worker processes")
	flag.StringVar(&s.source, "source", "..", "checkout of FlowFabric to build")
	flag.StringVar(&s.out, "out", "../bin/crash-report", "directory of the report")
	flag.BoolVar(&s.keep, "keep", false, "keep the directory with logs and journals")
	flag.Parse()
	if flag.NArg() > 0 || s.store != "postgres" && s.store != "sqlite" || s.length <= 0 || s.clients < 1 || s.workers < 2 {
		fmt.Fprintln(os.Stderr, "usage: crash [-store postgres|sqlite] [-for DURATION] [-seed N] [-clients N] [-workers N, at least 2]")
		os.Exit(2)
	}
	for s.seed == 0 {
		s.seed = uint64(rand.Uint32())
	}
	p, err := crash(ctx, s, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		os.Exit(2)
	}
	if p.Found > 0 {
		os.Exit(1)
	}
}

// crash makes one run. Whatever happens, it ends everything that it started.
func crash(ctx context.Context, s settings, out io.Writer) (p *report, err error) {
	r, err := newRun(s, out)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	l, err := r.newLoad()
	if err != nil {
		return nil, err
	}
	p, err = r.live(ctx, l)
	if err != nil {
		return nil, err
	}
	if p.Found > 0 && !r.keep {
		r.keep = true // what explains a finding
	}
	p.summary(out)
	return p, p.write(s.out)
}

func (r *run) newLoad() (*load, error) {
	journal, err := history.OpenJournal(filepath.Join(r.dir, "clients.journal"), "clients", monotonic)
	return &load{run: r, journal: journal, spoiled: map[flowfabric.ID]string{}, followed: map[string][]string{}}, err
}

// live applies faults to a system under load, heals it, waits until everything has ended, ends the store once more, and reads everything.
func (r *run) live(ctx context.Context, l *load) (*report, error) {
	operator, err := l.connect("operator", 0)
	if err != nil {
		return nil, err
	}
	if err := putBudget(ctx, operator.Client); err != nil {
		return nil, err
	}
	users, err := l.start(ctx)
	if err != nil {
		return nil, err
	}
	r.say("faults begin")
	hurting, cancel := context.WithTimeout(ctx, r.length)
	err = r.torment(ctx, hurting)
	cancel()
	users.stopClients()
	r.say("faults have ended")
	if err := errors.Join(err, ctx.Err(), r.heal(ctx)); err != nil {
		return nil, errors.Join(err, users.stopAll())
	}
	took, err := r.settled(ctx, operator.Client, r.bound)
	if err != nil {
		return nil, errors.Join(err, users.stopAll())
	}
	r.say("settled after %s", took.Round(time.Millisecond))
	if err := errors.Join(users.stopAll(), r.lastCrash(ctx, rand.New(rand.NewPCG(r.seed, 99)))); err != nil {
		return nil, err
	}
	r.say("reading")
	g, err := r.gather(ctx, operator.Client, l.followed)
	if err != nil {
		return nil, fmt.Errorf("reading what is left: %w", err)
	}
	r.say("checking %d executions, %d events, %d calls", len(g.facts.Executions), len(g.facts.Log), len(g.facts.Calls))
	return r.newReport(g, l, took), nil
}

// users are the goroutines of a load.
type users struct {
	endClients, endFollowing, endSignals, endReading context.CancelFunc

	clients, others sync.WaitGroup
	mu              sync.Mutex
	errs            []error
	all             []*client
}

// start starts clients, two followers of the log, and one that sends signals.
func (l *load) start(ctx context.Context) (*users, error) {
	u := &users{}
	var clients, following, signals, reading context.Context
	clients, u.endClients = context.WithCancel(ctx)
	following, u.endFollowing = context.WithCancel(ctx)
	signals, u.endSignals = context.WithCancel(ctx)
	reading, u.endReading = context.WithCancel(ctx)
	for i := range l.run.settings.clients {
		c, err := l.connect(fmt.Sprintf("client-%d", i), i)
		if err != nil {
			return nil, errors.Join(err, u.stopAll())
		}
		u.all = append(u.all, c)
		u.clients.Go(func() { u.note(c.live(clients)) })
	}
	for i := range 2 {
		c, err := l.connect(fmt.Sprintf("follower-%d", i), 2*i+i%2)
		if err != nil {
			return nil, errors.Join(err, u.stopAll())
		}
		u.all = append(u.all, c)
		u.others.Go(func() { c.follow(following, reading, i == 0) })
	}
	c, err := l.connect("signals", 0)
	if err != nil {
		return nil, errors.Join(err, u.stopAll())
	}
	u.all = append(u.all, c)
	u.others.Go(func() { u.note(c.deliver(signals)) })
	return u, nil
}

func (u *users) note(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.errs = append(u.errs, err)
}

// stopClients ends the clients and waits for their last calls.
func (u *users) stopClients() {
	u.endClients()
	u.clients.Wait()
}

// followLimit bounds how long followers may take to reach the end of the log.
const followLimit = time.Minute

// stopAll ends everything else too: followers once they have reached the end of the log.
func (u *users) stopAll() error {
	u.stopClients()
	u.endSignals()
	u.endFollowing()
	last := time.AfterFunc(followLimit, u.endReading)
	u.others.Wait()
	last.Stop()
	u.endReading()
	for _, c := range u.all {
		_ = c.Close(context.Background())
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return errors.Join(u.errs...)
}
