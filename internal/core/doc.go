// Package core holds the rules of FlowFabric: what may happen to an execution, and what follows from it.
//
// Everything here is a pure function of a record, a command and a time. Core performs no I/O, reads no clock, draws no random numbers, starts no
// goroutines and imports only the standard library: identifiers, time and randomness are arguments. Stores keep the records and the engine connects
// the two; neither makes decisions that belong here. Rule numbers in comments (L14, S20, ...) are those of the specification; tests cite them.
package core
