package scenario

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os/exec"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// WorkerSettings tell a worker process what to do. They travel as JSON on its command line.
type WorkerSettings struct {
	Server      string `json:"server"`
	Key         string `json:"-"` // comes by KeyVariable: command lines can be read by everybody on the host
	Namespace   string `json:"namespace,omitempty"`
	LeaseMS     int64  `json:"lease_ms"`
	Concurrency int    `json:"concurrency"`
}

// WorkerFlag is the flag of `flowfabric bench` that makes the program a worker process of a scenario.
const WorkerFlag = "as-worker"

// KeyVariable is the variable that tells a worker process its API key.
const KeyVariable = "FF_API_KEY"

// sign is what a worker process tells of a task, one a line.
type sign struct {
	Event string // start, end
	ID    flowfabric.ID
	Lease api.Lease
}

// Work is the life of a worker process: it works until ctx ends and tells on w which tasks it starts and ends.
func Work(ctx context.Context, settings WorkerSettings, w io.Writer) error {
	client, err := flowfabric.Connect(settings.Server, flowfabric.ConnectConfig{APIKey: settings.Key, Namespace: settings.Namespace})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	tell := func(event string, t *flowfabric.Task) error {
		mu.Lock()
		defer mu.Unlock()
		return json.NewEncoder(w).Encode(sign{Event: event, ID: t.ID(), Lease: t.Lease()})
	}
	worker := flowfabric.NewWorker(client, flowfabric.WorkerConfig{
		ID: "bench", Concurrency: settings.Concurrency, LeaseTTL: time.Duration(settings.LeaseMS) * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	flowfabric.Handle(worker, task, func(ctx context.Context, t *flowfabric.Task, ms int64) (flowfabric.None, error) {
		if err := tell("start", t); err != nil {
			return flowfabric.None{}, err
		}
		if err := pause(ctx, time.Duration(ms)*time.Millisecond); err != nil {
			return flowfabric.None{}, err
		}
		return flowfabric.None{}, tell("end", t)
	})
	return errors.Join(worker.Run(ctx), client.Close(context.WithoutCancel(ctx)))
}

// fleet is the worker processes and what they have told.
type fleet struct {
	members []*exec.Cmd
	readers sync.WaitGroup

	mu    sync.Mutex
	told  map[flowfabric.ID][]start
	done  map[flowfabric.ID]bool
	count int // starts
}

// start is that of a handler.
type start struct {
	at     time.Time // when we heard of it
	member int
	lease  api.Lease
}

func startFleet(ctx context.Context, cfg Config, n int, settings WorkerSettings) (*fleet, error) {
	if cfg.Program == "" {
		return nil, errors.New("there is no program to start workers with")
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	f := &fleet{told: map[flowfabric.ID][]start{}, done: map[flowfabric.ID]bool{}}
	for i := range n {
		cmd := child(ctx, cfg, "bench", "--"+WorkerFlag, string(text))
		cmd.Env = append(cmd.Env, KeyVariable+"="+settings.Key)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			f.stop()
			return nil, err
		}
		f.members = append(f.members, cmd)
		f.readers.Go(func() { f.listen(i, out) })
	}
	return f, nil
}

// listen notes what a member tells, until it is gone.
func (f *fleet) listen(member int, out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		now := time.Now()
		var s sign
		if json.Unmarshal(lines.Bytes(), &s) != nil {
			continue // the last line of one that was killed
		}
		f.mu.Lock()
		if s.Event == "start" {
			f.told[s.ID] = append(f.told[s.ID], start{now, member, s.Lease})
			f.count++
		} else {
			f.done[s.ID] = true
		}
		f.mu.Unlock()
	}
}

// stop ends all members.
func (f *fleet) stop() {
	for _, m := range f.members {
		_ = m.Process.Kill()
	}
	f.readers.Wait()
	for _, m := range f.members {
		_ = m.Wait() // it was killed
	}
}

// running is how many tasks have ever started.
func (f *fleet) running() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.told)
}

// ended is how many tasks have ended.
func (f *fleet) ended() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.done)
}

// starts is how often a handler has started.
func (f *fleet) starts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

// killBusiest kills the member with the most tasks and returns when, and its tasks with their leases.
func (f *fleet) killBusiest() (time.Time, map[flowfabric.ID]api.Lease) {
	f.mu.Lock()
	defer f.mu.Unlock()
	tasks := make([]map[flowfabric.ID]api.Lease, len(f.members))
	busiest := 0
	for id, starts := range f.told {
		last := starts[len(starts)-1]
		if f.done[id] {
			continue
		}
		if tasks[last.member] == nil {
			tasks[last.member] = map[flowfabric.ID]api.Lease{}
		}
		tasks[last.member][id] = last.lease
		if len(tasks[last.member]) > len(tasks[busiest]) {
			busiest = last.member
		}
	}
	_ = f.members[busiest].Process.Kill()
	return time.Now(), tasks[busiest]
}

// restarts is how long after a moment each of these tasks started again.
func (f *fleet) restarts(tasks map[flowfabric.ID]api.Lease, after time.Time) []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []time.Duration
	for id, old := range tasks {
		for _, s := range f.told[id] {
			if s.lease.Epoch > old.Epoch {
				all = append(all, s.at.Sub(after))
				break
			}
		}
	}
	return all
}

// startedSince is how many of these tasks have started again, or had ended before the kill reached their worker.
func (f *fleet) startedSince(tasks map[flowfabric.ID]api.Lease, after time.Time) int {
	again := len(f.restarts(tasks, after))
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, old := range tasks {
		if f.done[id] && f.told[id][len(f.told[id])-1].lease.Epoch == old.Epoch {
			again++
		}
	}
	return again
}
