// Package txn is the kernel of the engine: it runs the rules of package core against a store. It collects the commands of many callers into few
// transactions, decides each command with package core, writes the result through the store, and then notifies the calls that wait for it. It also
// runs the timers, follows the event log and removes finished work when its retention is over.
//
// Package core decides what may happen to an execution, and a store decides how rows are kept. The kernel knows neither SQL nor HTTP. Rooms above it
// register with it: phases of a transaction, at a place in the lock order, and state in it (phases.go); timers, follow-up work, gauges, loops
// (extensions.go). In order, each may use those before it: admin, limits, waits, work, flows, claims, inspect, bulk.
//
// Where to start reading:
//   - committer.go: how a batch of commands becomes one transaction, and what happens when that fails.
//   - tx.go: one transaction in memory, and the order in which rows are locked.
//   - row_cache.go: the cache of running executions, and how a stale entry is noticed.
//   - held_rows.go: what happens to commands whose rows another transaction holds.
//   - dispatch.go: what the kernel asks of, and passes to, the room that gives work to waiting claims.
//   - submit_gate.go, turn.go: why new work waits for a moment, and how claims are served between two commits.
package txn
