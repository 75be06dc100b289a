package bench

import "context"

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
	Postgres string // address of a database in which schemas may be made
	Dir      string // directory for files that are removed after the run
	Root     string // root of the source tree, for peers that are modules of their own
	Quick    bool   // a tenth of the work: for trying things out, not for figures
	Part     string // of FlowFabric's own scenarios only this part; "": all
}

// Size is n, or a tenth of it in a quick run.
func (e Env) Size(n int) int {
	if e.Quick {
		return n / 10
	}
	return n
}

// Scenarios lists what can be measured, in the order of a run.
func Scenarios() []Scenario {
	return []Scenario{
		{Name: "raw-postgres", About: "one narrow row inserted, claimed and completed in batches on two connections", Run: rawPostgres},
		{Name: "raw-sqlite", About: "the same on SQLite in WAL mode with synchronous=FULL, one writer", Run: rawSQLite},
		{Name: "flowfabric-postgres", About: "FlowFabric through its public API on Postgres: submit, backlog drain, whole cycle, latency", Run: ffPostgres},
		{Name: "flowfabric-sqlite", About: "the same on SQLite with synchronous=FULL", Run: ffSQLite},
		{Name: "flowfabric-idle", About: "an idle process on Postgres in which 100 claims wait for a minute", Run: ffIdle},
		{Name: "flowfabric-snapshot", About: "claims on Postgres before and while a reader holds an old snapshot for two minutes", Run: ffSnapshot},
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
	return []Comparison{
		{About: "backlog: FlowFabric against River tuned (bar: 1, aim 1.5)", Of: "flowfabric-postgres/drain", To: "river/drain.tuned"},
		{About: "whole cycle by 64 callers against the raw database (bar: 0.5, aim 0.7)", Of: "flowfabric-postgres/cycle.64", To: "raw-postgres/cycle.100"},
		{About: "whole cycle by 512 callers against the raw database (bar: 0.5, aim 0.7)", Of: "flowfabric-postgres/cycle.512", To: "raw-postgres/cycle.500"},
		{About: "single submits of 64 callers against River's (bar: 8)", Of: "flowfabric-postgres/submit.single", To: "river/insert.single"},
		{About: "bulk submit against River's (bar: 0.8)", Of: "flowfabric-postgres/submit.bulk", To: "river/insert.bulk"},
		{About: "SQLite, whole cycle by 512 callers against the raw database (bar: 0.6)", Of: "flowfabric-sqlite/cycle.512", To: "raw-sqlite/cycle.500"},
		{About: "claim p99 under an old snapshot against before (bar: 3)", Of: "flowfabric-snapshot/claim.p99.during", To: "flowfabric-snapshot/claim.p99.before"},
		{About: "River tuned, working off a backlog, against the raw database", Of: "river/drain.tuned", To: "raw-postgres/drain.500"},
		{About: "River's bulk insert against the raw database", Of: "river/insert.bulk", To: "raw-postgres/insert.1000"},
		{About: "SQLite against Postgres, whole cycle in hundreds", Of: "raw-sqlite/cycle.100", To: "raw-postgres/cycle.100"},
	}
}
