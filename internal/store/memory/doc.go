// Package memory is a store that keeps everything in the memory of the process. It is for the simulator and for tests, not for users: what it keeps
// ends with the process.
//
// It behaves as Postgres does where the contract leaves room: row locks that are waited for in the order of arrival, statements that see what was
// committed before they began, a clock and a dictionary that are carried from one transaction to the next, positions of the log that are drawn
// before their commit is visible. Unlike a database it is deterministic: the same calls in the same order give the same answers, no order of a map
// is visible, and random bits come from a seed. So an engine on it can be run under virtual time, one call after the other.
//
// A Database is what survives: Open gives a process its handle on it. A process that is killed loses its handle (Store.Close) and with it its open
// transactions and their locks; what was committed is there for the next one.
package memory
