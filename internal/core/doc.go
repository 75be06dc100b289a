// Package core holds the rules of FlowFabric: what may happen to an execution, and what follows from it.
//
// Everything here is a pure function of a record, a command and a time. Core performs no I/O, reads no clock, draws no random numbers, starts no
// goroutines and imports only the standard library: identifiers, time and randomness are arguments. Stores keep the records and the engine connects
// the two; neither makes decisions that belong here. Rule numbers in comments (L14, S20, ...) are those of the specification; tests cite them.
//
// Eight packages lie below it, and none of them knows an execution: base (ids, time, errors, codes, bounds), keyring (signing keys, tokens, API keys),
// condition (when a suspended execution resumes), eventdata (the data of events), stream (frames of attempts), schedule (work that starts by the
// clock), unique (submits of one key) and collect (submits that become one execution). Core itself is one aggregate and stays flat. Its files, by the
// beginnings of their names:
//
//   - execution, status, public_state, transitions, derive, timers, clock_step, events: the record, its lifecycle and what each change emits
//   - submission, policy: how executions come in
//   - acquire, admission, gate, fairness, lane, needs, capabilities, targeted, grant: which execution a worker gets, and when
//   - fence, leave, answers, lease_history, retry, step, worker: what a worker does under its lease, and the worker itself
//   - suspend, wait, waits, waitpoint, signal, approve, link, observe: suspensions, waitpoints, signals and approvals
//   - flow, edge, join, children, subflow, membership: flows, their graph and children
//   - budget, usage, quota, rate, shared_limit: budgets and what is shared between executions
//   - operator_commands, replay, retention, erased: what operators do
//   - explain, count, filter, cursor: what is shown and searched
//   - audit, namespace: the audit log and namespaces
package core
