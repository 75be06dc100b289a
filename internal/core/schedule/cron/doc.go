// Package cron reads the texts by which schedules name their moments: cron lines, the fields of calendars, and intervals.
//
// A pattern is compared with readings, what the clocks of some time zone show: seconds from 1970-01-01T00:00:00 on these clocks. The package knows neither
// time zones nor changes of the clock. Its files:
//
//   - field: one field of a line or calendar, its values and its marks L, W and #
//   - parse: lines of five or six fields, and the names such as @daily
//   - pattern: a set of readings, and the next and previous one of it
//   - days: the days of a month that a pattern allows
//   - interval: @every, and durations
package cron
