// Package schedule holds the rules of schedules: at which moments work is started by the clock, and what becomes of each moment.
//
// Everything here is a pure function of values: it performs no I/O, reads no clock and starts no goroutine. It submits nothing itself and knows
// nothing of executions and flows but their ids and how they ended. Two packages lie below it: cron reads texts, zone has the time zones. Its files:
//
//   - definition, check: what a caller states, its bounds and refusals
//   - entry, spec, due: the moments of a definition, forwards and backwards, the changes of the clock, and when moments are due
//   - preview: the next moments, as they are shown
//   - record, firing: what is kept of a schedule, the rows of its history, its events
//   - settle: what is due becomes a plan: rows, events, the next alarm
//   - judge, queue: which moments fire, are missed, skipped, refused, or wait
//   - change, fire: what people do: put, sync, pause, resume, delete, run by hand, backfill
//   - started, template: what a handler learns of the moment
//   - explain: why a schedule does not fire
//   - history, stored: rows that are deleted, and the stored forms
//
// A moment is an instant in whole seconds. Times are base.Time; inside, moments are seconds since the Unix epoch.
package schedule
