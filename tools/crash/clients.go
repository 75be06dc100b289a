package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/ops"
	"github.com/flowfabric/flowfabric/tools/crash/history"
)

// Parameters of clients.
const (
	backlog    = 400                    // executions that have not ended, above which nothing is submitted
	think      = 200 * time.Millisecond // longest pause between two calls of a client
	callLimit  = 20 * time.Second
	keepTrying = 0.9 // how often a submit of unknown outcome is repeated until it is known
)

// load is everything that clients do in a run.
type load struct {
	run     *run
	journal *history.Journal
	open    atomic.Int64 // executions that have not ended, as the first follower has seen

	mu       sync.Mutex
	known    []known
	spoiled  map[flowfabric.ID]string // what was tried with an execution: cancel or replay, never both
	followed map[string][]string
	roads    []*road
}

// known is an execution whose submit was acknowledged.
type known struct {
	id   flowfabric.ID
	kind kind
	key  string
	in   input
}

// client is one client with its own connection.
type client struct {
	*flowfabric.Client
	load   *load
	name   string
	random *rand.Rand
	n      int
}

// connect makes a client. Some repeat calls as often as clients do by default, others give up at once.
func (l *load) connect(name string, number int) (*client, error) {
	r := newRoad(l.run.targets(ofClients), number%len(l.run.servers), l.run.seed+uint64(number))
	l.mu.Lock()
	l.roads = append(l.roads, r)
	l.mu.Unlock()
	cfg := flowfabric.ConnectConfig{Namespace: "default", APIKey: l.run.key, HTTP: &http.Client{Transport: r}}
	if number%2 == 1 {
		cfg.Retry.MaxRetries = -1
	}
	c, err := flowfabric.Connect("http://server", cfg)
	if err != nil {
		return nil, err
	}
	return &client{Client: c, load: l, name: name, random: rand.New(rand.NewPCG(l.run.seed, uint64(1000+number)))}, nil
}

// call makes a call and writes it down. do fills in what was answered.
func (c *client) call(ctx context.Context, h history.Call, do func(ctx context.Context, h *history.Call) error) (history.Outcome, error) {
	end, err := c.load.journal.Begin(h)
	if err != nil {
		return history.Unknown, err
	}
	calling, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	began := time.Now()
	h.Outcome, h.Code = outcomeOf(do(calling, &h))
	switch {
	case h.Outcome == history.Done && h.Name == history.Submit:
		c.load.run.acknowledged(began)
	case h.Outcome == history.Unknown && h.Name != history.Get:
		c.load.run.count("calls of unknown outcome")
	}
	return h.Outcome, end(h)
}

// live makes calls until ctx ends.
func (c *client) live(ctx context.Context) error {
	for pause(ctx, time.Duration(c.random.Int64N(int64(think)))) {
		var err error
		switch drawn := c.random.IntN(100); {
		case drawn < 60:
			if c.load.open.Load() < backlog {
				err = c.submitNew(ctx)
			}
		case drawn < 66:
			if c.load.open.Load() < backlog {
				err = c.submitFlow(ctx)
			}
		case drawn < 72:
			err = c.submitAgain(ctx)
		case drawn < 90:
			err = c.get(ctx)
		case drawn < 95:
			err = c.cancelSome(ctx)
		default:
			err = c.replaySome(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// kindsDrawn are the kinds that clients submit, as often as they are listed.
func kindsDrawn() []kind {
	return []kind{instant, instant, instant, instant, steps, steps, steps, waits, waits, waits, spawns, flaky, flaky, slow, spends, spends, spends, doomed}
}

func (c *client) submitNew(ctx context.Context) error {
	c.n++
	kinds := kindsDrawn()
	x := known{kind: kinds[c.random.IntN(len(kinds))], key: fmt.Sprintf("%s-%d", c.name, c.n)}
	x.in = input{Key: x.key}
	if x.kind == spends {
		x.in.Amount = 1 + c.random.Int64N(estimate)
	}
	for {
		outcome, err := c.submit(ctx, x)
		if err != nil || outcome != history.Unknown || c.random.Float64() > keepTrying || !pause(ctx, think) {
			return err
		}
	}
}

func (c *client) submit(ctx context.Context, x known) (history.Outcome, error) {
	return c.call(ctx, history.Call{Name: history.Submit, Key: x.key}, func(ctx context.Context, h *history.Call) error {
		run, err := x.kind.Submit(ctx, c.Client, x.in, options(x.kind, x.key))
		if err != nil {
			return err
		}
		h.Execution = string(run.ID())
		x.id = run.ID()
		c.load.mu.Lock()
		defer c.load.mu.Unlock()
		c.load.known = append(c.load.known, x)
		return nil
	})
}

// submitAgain repeats a submit that was acknowledged.
func (c *client) submitAgain(ctx context.Context) error {
	x, found := c.some("")
	if !found {
		return nil
	}
	_, err := c.submit(ctx, x)
	return err
}

func (c *client) submitFlow(ctx context.Context) error {
	c.n++
	key := fmt.Sprintf("%s-flow-%d", c.name, c.n)
	for {
		outcome, err := c.call(ctx, history.Call{Name: history.Flow, Key: key}, func(ctx context.Context, h *history.Call) error {
			run, err := c.Flows().Submit(ctx, diamond(key))
			if err == nil {
				h.Execution = string(run.ID)
			}
			return err
		})
		if err != nil || outcome != history.Unknown || c.random.Float64() > keepTrying || !pause(ctx, think) {
			return err
		}
	}
}

// some draws a known execution. If it is for a deed, it is one with which nothing else was tried.
func (c *client) some(deed string) (known, bool) {
	c.load.mu.Lock()
	defer c.load.mu.Unlock()
	all := c.load.known
	if len(all) == 0 {
		return known{}, false
	}
	x := all[c.random.IntN(len(all))]
	if deed == history.Cancel { // a recent one, which may not have ended
		x = all[len(all)-1-c.random.IntN(min(len(all), 20))]
	}
	if was := c.load.spoiled[x.id]; deed == "" {
		return x, true
	} else if was != "" && was != deed {
		return known{}, false
	}
	c.load.spoiled[x.id] = deed
	return x, true
}

func (c *client) get(ctx context.Context) error {
	x, found := c.some("")
	if !found {
		return nil
	}
	_, err := c.call(ctx, history.Call{Name: history.Get, Execution: string(x.id)}, func(ctx context.Context, h *history.Call) error {
		got, err := c.Get(ctx, x.id)
		if err == nil {
			h.Value, h.Result = string(got.Status), string(got.Result.Data)
		}
		return err
	})
	return err
}

func (c *client) cancelSome(ctx context.Context) error {
	x, found := c.some(history.Cancel)
	if !found {
		return nil
	}
	_, err := c.call(ctx, history.Call{Name: history.Cancel, Execution: string(x.id)}, func(ctx context.Context, h *history.Call) error {
		got, err := c.Cancel(ctx, x.id, "crash")
		if err == nil {
			h.Value = string(got.Status)
		}
		return err
	})
	return err
}

// replaySome replays work that neither waits for a signal nor reports usage nor has children: what is counted about those is per run.
func (c *client) replaySome(ctx context.Context) error {
	x, found := c.some(history.Replay)
	if !found || x.kind == waits || x.kind == spends || x.kind == spawns {
		return nil
	}
	_, err := c.call(ctx, history.Call{Name: history.Replay, Execution: string(x.id)}, func(ctx context.Context, _ *history.Call) error {
		_, err := c.Operate().Replay(ctx, x.id)
		return err
	})
	return err
}

// follow reads the event log from its start until ctx ends and it has seen the end.
func (c *client) follow(ctx, last context.Context, first bool) {
	after := api.FromStart
	var seen []string
	for {
		reading, cancel := context.WithTimeout(last, callLimit)
		page, err := c.Events().Read(reading, ops.ReadOptions{After: after, Limit: 1000, Wait: 2 * time.Second})
		cancel()
		if err != nil {
			if !pause(last, think) {
				break
			}
			continue
		}
		for _, e := range page.Events {
			seen = append(seen, e.ID)
			if !first {
				continue
			}
			switch e.Kind {
			case "execution.submitted", "execution.replayed":
				c.load.open.Add(1)
			case "execution.completed":
				c.load.open.Add(-1)
			}
		}
		if after = page.Next; page.AtEnd && ctx.Err() != nil {
			break
		}
	}
	c.load.mu.Lock()
	defer c.load.mu.Unlock()
	c.load.followed[c.name] = seen
}

// deliver sends a signal to each execution that waits, as workers write their tokens down, until ctx ends.
func (c *client) deliver(ctx context.Context) error {
	offsets := map[string]int64{}
	var waiting []token
	sent := map[string]bool{}
	for pause(ctx, 100*time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(c.load.run.dir, "*.tokens"))
		if err != nil {
			return err
		}
		for _, file := range files {
			fresh, err := readTokens(file, offsets)
			if err != nil {
				return err
			}
			waiting = append(waiting, fresh...)
		}
		var again []token
		for _, t := range waiting {
			if sent[t.Execution] {
				continue
			}
			outcome, err := c.signal(ctx, t)
			if err != nil {
				return err
			}
			if outcome == history.Unknown {
				again = append(again, t)
				continue
			}
			sent[t.Execution] = outcome == history.Done
			if c.random.Float64() < 0.1 {
				if _, err := c.signal(ctx, t); err != nil {
					return err
				}
			}
		}
		waiting = again
	}
	return nil
}

func (c *client) signal(ctx context.Context, t token) (history.Outcome, error) {
	key := "signal for " + t.Execution
	return c.call(ctx, history.Call{Name: history.Sign, Execution: t.Execution, Key: key}, func(ctx context.Context, h *history.Call) error {
		receipt, err := c.Signal(ctx, flowfabric.Signal{
			WaitpointID: t.Waitpoint, Token: flowfabric.TokenOf(t.Token), Name: "go", IdempotencyKey: key, Payload: flowfabric.Text(answerTo(t.Execution)),
		})
		h.Value = receipt.SignalID
		return err
	})
}

// readTokens reads the whole lines that were added to a file.
func readTokens(path string, offsets map[string]int64) (fresh []token, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.NewSectionReader(file, offsets[path], 1<<30))
	if err != nil {
		return nil, err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	offsets[path] += int64(whole)
	for lines := bufio.NewScanner(bytes.NewReader(text[:whole])); lines.Scan(); {
		var t token
		if err := json.Unmarshal(lines.Bytes(), &t); err != nil {
			return nil, errors.Join(err, fmt.Errorf("%s: %q", path, lines.Text()))
		}
		fresh = append(fresh, t)
	}
	return fresh, nil
}
