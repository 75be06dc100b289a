package scenario

import (
	"context"
	"log/slog"
	"time"

	"github.com/flowfabric/flowfabric/bench/measure"
)

// Scenario is something that can be measured. To add one, append it to All.
type Scenario struct {
	Name  string
	Rule  string // of the specification
	About string

	processes bool // it runs over a server and workers that are processes of their own
	plan      func(cfg Config) (plan, error)
}

// plan is a scenario with all its sizes. Its JSON is what the report says about them.
type plan interface {
	take(ctx context.Context, t *trial) error
}

// All lists the scenarios.
func All() []Scenario {
	return []Scenario{
		{Name: "cycle", Rule: "U253", About: "submit, start, complete: the whole path as fast as it goes", plan: planCycle},
		{Name: "resume", Rule: "U254", About: "suspend for a signal and go on: alone, then many at a time", plan: planResume},
		{Name: "steady", Rule: "U255", About: "arrivals at a steady rate, whatever the engine does: latency, backlog, growth", plan: planSteady},
		{Name: "chain", Rule: "U256", About: "flows of ten nodes in a line: one alone, then many at a time", plan: planChain},
		{Name: "fan-in", Rule: "F28", About: "a thousand members that one join waits for, beside as many executions without a flow", plan: planFanIn},
		{Name: "routing", Rule: "U257", About: "work that requires capabilities finds workers that have them", plan: planRouting},
		{Name: "losers", Rule: "U258", About: "one of many has an answer: time until the others are cancelled and their handlers know", plan: planLosers},
		{Name: "keys", Rule: "S24", About: "a backlog with a fairness key or a key of a quota for each execution, against the same with a hundred keys", plan: planKeys},
		{Name: "events", Rule: "E35", About: "the events of single executions, in a short log and in a long one", plan: planEvents},
		{Name: "streams", Rule: "E17", About: "frames: until a reader has one, from many writers, and read from a long stream", plan: planStreams},
		{Name: "webhooks", Rule: "E43", About: "events posted to a receiver of this host: as many as come, one at a time, and beside receivers that do not answer", plan: planWebhooks},
		{Name: "recovery", Rule: "U259", About: "a worker is killed with -9, then the server, then its connections to the store: time until work is completed again", processes: true, plan: planRecovery},
		{Name: "idle", Rule: "U260", About: "what it costs to have nothing to do", plan: planIdle},
	}
}

// Config says where and how to measure. The zero value of every size is the scenario's own.
type Config struct {
	Store   string // sqlite:PATH or postgres://…: a fresh store is made beside it for each sample
	Server  string // instead of Store: a server whose address this is, on which a fresh namespace is used
	Key     string // API key for Server
	Via     string // "embedded" (default) or "http": how Store is reached
	Program string // the flowfabric program, which is started for servers and worker processes
	Environ []string
	Build   measure.Build

	Samples int           // 0: 3, of a quick run 1
	Quick   bool          // tiny sizes, for trying things out: no figures
	Stall   time.Duration // when nothing has happened for so long the rest counts as lost; 0: a minute
	Workers int           // 0: as many as the scenario says; keys: slots of its one worker

	N         int           // cycle, routing, keys, events: executions; streams: frames; webhooks: events; chain: flows; fan-in, losers: members that a join waits for; recovery: tasks
	InFlight  int           // chain: flows at a time; 0: all at once; webhooks: requests at a time
	Batch     int           // cycle: executions a call of SubmitMany; 0: single calls
	Drain     bool          // cycle: submit first, time only the rest
	Admission bool          // cycle: each execution has a budget and a quota
	Rate      float64       // steady: arrivals a second; 0: half of what cycle reaches
	Duration  time.Duration // steady, idle: how long; recovery: of a task
	Work      time.Duration // steady: how long a handler waits
	Variants  []string      // routing: happy, partial, scarce; keys: fairness, quota; nil: all
	Lease     time.Duration // recovery
	Kept      int           // idle: finished executions; 0: a million

	// Progress hears of work that takes a while: it begins one and gets back how to tell how far it is, and that it is over.
	Progress func(what string, total int) (at func(done int), end func())
	Log      *slog.Logger // of engine and workers; nil: nowhere
}

// The ways to reach a store.
const (
	viaEmbedded = "embedded"
	viaHTTP     = "http"
	viaServer   = "server"
)

const (
	defaultSamples = 3
	defaultStall   = time.Minute
)

func (cfg Config) withDefaults(s Scenario) Config {
	if cfg.Via == "" {
		cfg.Via = viaEmbedded
		if s.processes {
			cfg.Via = viaHTTP
		}
	}
	if cfg.Server != "" {
		cfg.Via = viaServer
	}
	if cfg.Samples == 0 {
		cfg.Samples = defaultSamples
		if cfg.Quick {
			cfg.Samples = 1
		}
	}
	if cfg.Stall == 0 {
		cfg.Stall = defaultStall
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string, int) (func(int), func()) { return func(int) {}, func() {} }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return cfg
}

// pick is what was asked for, or the scenario's own size, or that of a quick run.
func pick[T comparable](cfg Config, asked, own, quick T) T {
	var none T
	switch {
	case asked != none:
		return asked
	case cfg.Quick:
		return quick
	default:
		return own
	}
}
