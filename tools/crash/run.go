package main

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/tools/crash/proxy"
)

// settings are those of a run.
type settings struct {
	store   string        // postgres or sqlite
	length  time.Duration // how long faults are applied
	bound   time.Duration // within which everything ends once they have stopped
	seed    uint64
	clients int
	workers int
	source  string // the checkout that the program is built from
	out     string // directory of the report
	keep    bool   // keep the directory of the run
}

// way is a proxy with a name.
type way struct {
	*proxy.Proxy
	name string
}

// run is one run of the harness. It touches only processes that it has started and the directory that it has made.
type run struct {
	settings
	dir, nonce, program string
	key                 string // of an administrator, for clients and workers
	log                 io.Writer
	began               time.Time

	ways     []*way
	servers  []*server
	workers  []*workerProcess
	database *database  // nil on SQLite
	file     *lossyFile // nil on Postgres

	mu     sync.Mutex
	counts map[string]int64
	hurt   map[string]time.Time     // since when clients have not had a submit acknowledged after a fault of that kind
	worst  map[string]time.Duration // the longest of these times
}

// workerProcess is a worker whose process changes.
type workerProcess struct {
	number  int
	mu      sync.Mutex // held while the worker is being hurt or started
	process *process
	starts  int
}

// say prints what happens.
func (r *run) say(format string, args ...any) {
	fmt.Fprintf(r.log, "%6.1fs %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

func (r *run) count(what string) { r.add(what, 1) }

func (r *run) add(what string, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what] += n
}

// hurts notes that a fault has begun. acknowledged notes that a submit that began later was acknowledged.
func (r *run) hurts(fault string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[fault]++
	if _, known := r.hurt[fault]; !known {
		r.hurt[fault] = time.Now()
	}
}

func (r *run) acknowledged(began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for fault, since := range r.hurt {
		if began.After(since) {
			r.worst[fault] = max(r.worst[fault], time.Since(since))
			delete(r.hurt, fault)
		}
	}
}

// newRun makes the directory of a run.
func newRun(s settings, log io.Writer) (*run, error) {
	dir, err := os.MkdirTemp("", "ffcrash")
	if err != nil {
		return nil, err
	}
	// The user that Postgres runs as must reach its files below.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	secret := make([]byte, 32)
	_, _ = cryptorand.Read(secret) // never fails
	return &run{
		key:      "ffk_" + strings.ToLower(cryptorand.Text()[:12]) + "_" + base64.RawURLEncoding.EncodeToString(secret),
		settings: s, dir: dir, nonce: fmt.Sprintf("%d-%x", os.Getpid(), rand.Uint64()), log: log, began: time.Now(),
		counts: map[string]int64{}, hurt: map[string]time.Time{}, worst: map[string]time.Duration{},
	}, nil
}

// open builds the program and starts everything.
func (r *run) open(ctx context.Context) error {
	var err error
	r.say("seed %d, %s for %s, in %s", r.seed, r.store, r.length, r.dir)
	if r.program, err = build(ctx, r.source, r.dir); err != nil {
		return err
	}
	number := 1
	if r.store == "postgres" {
		if r.database, err = startDatabase(ctx, r); err != nil {
			return fmt.Errorf("starting Postgres: %w", err)
		}
		number = 2
	} else if r.file, err = openFile(r); err != nil {
		return fmt.Errorf("making a disk for SQLite: %w", err)
	}
	for i := range number {
		if err := r.openServer(ctx, i); err != nil {
			return err
		}
	}
	for i := range r.settings.workers {
		w := &workerProcess{number: i}
		r.workers = append(r.workers, w)
		if err := r.boot(w); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) newWay(name string) (*way, error) {
	p, err := proxy.New()
	if err != nil {
		return nil, err
	}
	w := &way{p, name}
	r.ways = append(r.ways, w)
	return w, nil
}

// openServer starts one server with its proxies.
func (r *run) openServer(ctx context.Context, i int) error {
	s := &server{name: fmt.Sprintf("server-%d", i), run: r}
	for _, users := range []string{"clients", "workers"} {
		w, err := r.newWay(users + " to " + s.name)
		if err != nil {
			return err
		}
		s.ways = append(s.ways, w)
	}
	if r.database == nil {
		s.store = r.file.url()
	} else {
		w, err := r.newWay(s.name + " to postgres")
		if err != nil {
			return err
		}
		w.Forward("unix", r.database.socket())
		s.store = r.database.url(w.Address())
	}
	r.servers = append(r.servers, s)
	return s.boot(ctx)
}

// targets are the addresses of all servers, for clients or for workers.
func (r *run) targets(users int) (all []string) {
	for _, s := range r.servers {
		all = append(all, s.ways[users].Address())
	}
	return all
}

// Indexes of the ways of a server.
const (
	ofClients = iota
	ofWorkers
)

// boot starts a worker.
func (r *run) boot(w *workerProcess) error {
	w.starts++
	name := fmt.Sprintf("worker-%d-%d", w.number, w.starts)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w.process, err = start(r.dir, r.nonce, name, self, nil, []string{
		workerVariable + "=" + name,
		targetsVariable + "=" + strings.Join(r.targets(ofWorkers), ","),
		journalVariable + "=" + filepath.Join(r.dir, name+".journal"),
		tokensVariable + "=" + filepath.Join(r.dir, name+".tokens"),
		keyVariable + "=" + r.key,
		fmt.Sprintf("%s=%d", seedVariable, r.seed+uint64(w.starts)),
		fmt.Sprintf("%s=%d", homeVariable, w.number%len(r.servers)),
	})
	return err
}

// heal ends all faults and waits until every process runs.
func (r *run) heal(ctx context.Context) error {
	for _, w := range r.ways {
		w.Set(proxy.Pass)
	}
	if r.database != nil {
		if err := r.database.ensure(ctx); err != nil {
			return err
		}
	}
	for _, s := range r.servers {
		s.mu.Lock()
		var err error
		if s.process.over() {
			err = s.boot(ctx)
		}
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return r.reviveWorkers()
}

// reviveWorkers starts workers that have ended.
func (r *run) reviveWorkers() error {
	for _, w := range r.workers {
		w.mu.Lock()
		var err error
		if w.process.over() {
			r.count("worker ended by itself")
			err = r.boot(w)
		}
		w.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// lastCrash ends the store once more when everything has ended, so that what is checked is what is durable.
func (r *run) lastCrash(ctx context.Context, random *rand.Rand) error {
	if r.database != nil {
		if err := r.database.kill(ctx, 0); err != nil {
			return err
		}
		return r.heal(ctx)
	}
	s := r.servers[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.file.mounted != nil {
		if err := r.file.cut(s, random); err != nil {
			return err
		}
	} else if err := s.process.kill(); err != nil {
		return err
	}
	return s.boot(ctx)
}

// close ends everything that the run has started and removes its directory.
func (r *run) close() error {
	var errs []error
	for _, w := range r.workers {
		if w.process != nil {
			errs = append(errs, w.process.kill())
		}
	}
	for _, s := range r.servers {
		if s.process != nil {
			errs = append(errs, s.process.kill())
		}
	}
	for _, w := range r.ways {
		errs = append(errs, w.Close())
	}
	if r.database != nil {
		errs = append(errs, r.database.stop())
	}
	if r.file != nil {
		errs = append(errs, r.file.close())
	}
	if r.keep {
		r.say("the directory of the run is kept: %s", r.dir)
		return errors.Join(errs...)
	}
	return errors.Join(append(errs, os.RemoveAll(r.dir))...)
}
