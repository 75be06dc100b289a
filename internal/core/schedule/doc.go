// Package schedule holds the rules of schedules: at which moments work is started by the clock, and what becomes of each moment.
//
// Everything here is a pure function of values: it performs no I/O, reads no clock and starts no goroutine. It submits nothing itself and knows
// nothing of executions and flows but their ids and how they ended. Two packages lie below it: cron reads texts, zone has the time zones. Its files:
//
//   - definition, check: what a caller states, its bounds and refusals
//   - entry, spec: the moments of a definition, forwards and backwards, and the changes of the clock
//
// A moment is an instant in whole seconds. Times are base.Time; inside, moments are seconds since the Unix epoch.
package schedule
