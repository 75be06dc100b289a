// Package core holds the rules of FlowFabric: what may happen to an execution, and what follows from it.
//
// Everything here is a pure function of a record, a command and a moment. Core performs no I/O, reads no clock,
// draws no random number, starts no goroutine and imports nothing but the standard library: identifiers, time and
// randomness are arguments. Stores keep the records, the engine brings them together; neither decides anything that
// is decided here. Rule numbers in comments (L14, S20, ...) are those of the specification; tests cite them.
package core
