// Package bench measures FlowFabric beside its alternatives in one run: the database alone (the raw ceiling), other systems on the
// same database, and the engine through its public API. Figures of different machines cannot be compared, so what counts are the
// ratios of medians of several samples, the alternatives taking turns.
//
// Scenarios are entries of Scenarios; Run takes turns over them, Report carries what they measured. The package uses nothing of the
// engine's inside: a private path would measure what no user gets.
package bench
