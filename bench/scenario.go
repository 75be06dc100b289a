package bench

import (
	"context"
	"time"
)

// Scenario is something that can be measured again and again. To add one, append it to Scenarios; to compare it, add a Comparison.
type Scenario struct {
	Name  string
	About string
	// Run takes one sample on stores of its own, which it removes again. An error means that there is no sample; values that do
	// not add up are reported by Sample.Fail.
	Run func(ctx context.Context, env Env) (*Sample, error)
}

// Env is what a run gives to its scenarios.
type Env struct {
	Postgres string        // address of a database whose role may make databases and schemas
	Dir      string        // directory for files that are removed after the run
	Root     string        // root of the source tree, for peers that are modules of their own
	Quick    bool          // a tenth of the work: for trying things out, not for figures
	Part     string        // of FlowFabric's own scenarios only this part; "": all
	Hold     time.Duration // how long flowfabric-snapshot holds its snapshot; 0: two minutes
	Waiting  int           // how many executions wait in flowfabric-memory at the most; 0: 100,000

	share int // the part of the work that tests do; 0: as Quick says
}

// part is what sizes are divided by.
func (e Env) part() int {
	switch {
	case e.share > 0:
		return e.share
	case e.Quick:
		return 10
	default:
		return 1
	}
}

// Size is n, or a tenth of it in a quick run.
func (e Env) Size(n int) int { return n / e.part() }

// Span is d, or a tenth of it in a quick run.
func (e Env) Span(d time.Duration) time.Duration { return d / time.Duration(e.part()) }

// Scenarios lists what can be measured, in the order of a run.
func Scenarios() []Scenario {
	return []Scenario{
		{Name: "raw-postgres", About: "one narrow row inserted, claimed and completed in batches on two connections", Run: rawPostgres},
		{Name: "raw-sqlite", About: "the same on SQLite in WAL mode with synchronous=FULL, one writer", Run: rawSQLite},
		{Name: "flowfabric-postgres", About: "FlowFabric through its public API on Postgres: submit, backlog drain, whole cycle, latency", Run: ffPostgres},
		{Name: "flowfabric-sqlite", About: "the same on SQLite with synchronous=FULL", Run: ffSQLite},
		{Name: "flowfabric-http", About: "backlog drain and whole cycle on Postgres, worker and client remote over HTTP on loopback", Run: ffHTTP},
		{Name: "flowfabric-http-sqlite", About: "the same on SQLite", Run: ffHTTPSQLite},
		{Name: "flowfabric-admission", About: "backlog drain and whole cycle on Postgres without and with a quota, and 32 workers that report to one budget or to one each", Run: ffAdmission},
		{Name: "flowfabric-admission-sqlite", About: "the same on SQLite", Run: ffAdmissionSQLite},
		{Name: "flowfabric-idle", About: "an idle process on Postgres in which 100 claims wait for a minute", Run: ffIdle},
		{Name: "flowfabric-snapshot", About: "claims on Postgres before and while a reader holds an old snapshot for two minutes", Run: ffSnapshot},
		{Name: "flowfabric-held", About: "submits on Postgres before and while another session holds the row of a flow that 64 commands wait for", Run: ffHeld},
		{Name: "flowfabric-memory", About: "memory of a process on Postgres with few and with many executions that wait", Run: ffMemory},
		{Name: "river", About: "River on Postgres: inserts, backlog drain and latency, by default and tuned", Run: river},
	}
}

// Comparison is a ratio that the report prints when both sides were measured: Of / To, each "scenario/value".
type Comparison struct {
	About  string
	Of, To string
}

// Comparisons lists the ratios of the report.
func Comparisons() []Comparison {
	return append(comparisons(), admissionComparisons()...)
}

func comparisons() []Comparison {
	return []Comparison{
		{About: "backlog: FlowFabric against River tuned (bar: 1, aim 1.5)", Of: "flowfabric-postgres/drain", To: "river/drain.tuned"},
		{About: "whole cycle by 64 callers against the raw database (bar: 0.5, aim 0.7)", Of: "flowfabric-postgres/cycle.64", To: "raw-postgres/cycle.100"},
		{About: "whole cycle by 512 callers against the raw database (bar: 0.5, aim 0.7)", Of: "flowfabric-postgres/cycle.512", To: "raw-postgres/cycle.500"},
		{About: "single submits of 64 callers against River's (bar: 8)", Of: "flowfabric-postgres/submit.single", To: "river/insert.single"},
		{About: "bulk submit against River's (bar: 0.8)", Of: "flowfabric-postgres/submit.bulk", To: "river/insert.bulk"},
		{About: "SQLite, whole cycle by 512 callers against the raw database (bar: 0.6)", Of: "flowfabric-sqlite/cycle.512", To: "raw-sqlite/cycle.500"},
		{About: "claim p99 under an old snapshot against before (bar: 3)", Of: "flowfabric-snapshot/claim.during.p99", To: "flowfabric-snapshot/claim.before.p99"},
		{About: "submit p99 while others hold a flow that 64 commands wait for against before (bar: 2)", Of: "flowfabric-held/submit.held.p99", To: "flowfabric-held/submit.quiet.p99"},
		{About: "over HTTP, backlog against in-process (bar: 0.5)", Of: "flowfabric-http/drain", To: "flowfabric-postgres/drain"},
		{About: "over HTTP, whole cycle by 64 callers against in-process (bar: 0.5)", Of: "flowfabric-http/cycle.64", To: "flowfabric-postgres/cycle.64"},
		{About: "over HTTP, whole cycle by 512 callers against in-process (bar: 0.5)", Of: "flowfabric-http/cycle.512", To: "flowfabric-postgres/cycle.512"},
		{About: "over HTTP on SQLite, backlog against in-process (bar: 0.5)", Of: "flowfabric-http-sqlite/drain", To: "flowfabric-sqlite/drain"},
		{About: "over HTTP on SQLite, whole cycle by 64 callers against in-process (bar: 0.5)", Of: "flowfabric-http-sqlite/cycle.64", To: "flowfabric-sqlite/cycle.64"},
		{About: "over HTTP on SQLite, whole cycle by 512 callers against in-process (bar: 0.5)", Of: "flowfabric-http-sqlite/cycle.512", To: "flowfabric-sqlite/cycle.512"},
		{About: "heap with many executions that wait against few (bar: flat)", Of: "flowfabric-memory/heap.many", To: "flowfabric-memory/heap.few"},
		{About: "resident memory with many executions that wait against few (bar: flat)", Of: "flowfabric-memory/rss.many", To: "flowfabric-memory/rss.few"},
		{About: "River tuned, working off a backlog, against the raw database", Of: "river/drain.tuned", To: "raw-postgres/drain.500"},
		{About: "River's bulk insert against the raw database", Of: "river/insert.bulk", To: "raw-postgres/insert.1000"},
		{About: "SQLite against Postgres, whole cycle in hundreds", Of: "raw-sqlite/cycle.100", To: "raw-postgres/cycle.100"},
	}
}
