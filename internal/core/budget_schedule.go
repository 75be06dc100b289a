package core

import (
	"time"
	_ "time/tzdata" // so that time zones do not depend on files of the host

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// The kinds and units of a reset (section 1).
const (
	ResetNone     = base.ResetNone
	ResetInterval = base.ResetInterval
	ResetCalendar = base.ResetCalendar

	UnitHour  = "hour"
	UnitDay   = "day"
	UnitWeek  = "week" // begins on Monday
	UnitMonth = "month"
)

// normalize brings equivalent schedules into one form; invalid_budget.
func (r *BudgetReset) normalize() error {
	switch r.Type {
	case "", ResetNone:
		*r = BudgetReset{}
		return nil
	case ResetInterval:
		if r.EveryMS < minResetEvery || r.EveryMS > maxResetEvery {
			return invalidBudget("reset.every_ms", "must be in %d..%d", minResetEvery, maxResetEvery)
		}
		if r.AnchorAt < 0 || r.AnchorAt > latestShown {
			return invalidBudget("reset.anchor_at", "must be a moment of the years 1970 to 9999")
		}
		*r = BudgetReset{Type: ResetInterval, EveryMS: r.EveryMS, AnchorAt: r.AnchorAt}
		return nil
	case ResetCalendar:
		return r.normalizeCalendar()
	default:
		return invalidBudget("reset.type", "%q is not a kind of reset", base.CutText(r.Type, 80)).WithHint("use none, interval or calendar")
	}
}

func (r *BudgetReset) normalizeCalendar() error {
	if !knownUnit(r.Unit) {
		return invalidBudget("reset.unit", "%q is not a unit", base.CutText(r.Unit, 80)).WithHint("use hour, day, week or month")
	}
	if r.Timezone == "" {
		r.Timezone = "UTC"
	}
	if _, err := zoneOf(r.Timezone); err != nil {
		return err
	}
	*r = BudgetReset{Type: ResetCalendar, Unit: r.Unit, Timezone: r.Timezone}
	return nil
}

func knownUnit(unit string) bool {
	return unit == UnitHour || unit == UnitDay || unit == UnitWeek || unit == UnitMonth
}

// zoneOf finds a time zone. The host's local zone is refused: it differs between servers.
func zoneOf(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, invalidBudget("reset.timezone", "%q is not a time zone", base.CutText(name, 80)).WithHint("use a name such as Europe/Berlin or UTC")
	}
	return zone, nil
}

// next returns the first boundary after now (B35), absent if there is none.
func (r *BudgetReset) next(now base.Time) base.Time {
	_, next := r.around(now)
	return next
}

// around returns the last boundary at or before now and the first one after it, each absent if there is none. Both follow from the schedule alone,
// so that a late reset does not shift later ones (B35).
func (r *BudgetReset) around(now base.Time) (last, next base.Time) {
	switch r.Type {
	case ResetInterval:
		return r.interval(now)
	case ResetCalendar:
		zone, err := zoneOf(r.Timezone)
		if err != nil {
			return 0, 0 // cannot happen: Normalize has found the zone
		}
		if r.Unit == UnitHour {
			return hoursAround(now, zone)
		}
		return r.daysAround(now, zone)
	default:
		return 0, 0
	}
}

// interval counts whole intervals from the anchor, also backwards from it.
func (r *BudgetReset) interval(now base.Time) (last, next base.Time) {
	since := now.Sub(r.AnchorAt)
	steps := since / r.EveryMS
	if since%r.EveryMS < 0 {
		steps-- // before the anchor the division rounds up
	}
	last = r.AnchorAt.Add(steps * r.EveryMS)
	return last, last.Add(r.EveryMS)
}

// daysAround is around for units that begin at midnight.
func (r *BudgetReset) daysAround(now base.Time, zone *time.Location) (last, next base.Time) {
	local := now.Std().In(zone)
	year, month, day := local.Date()
	switch r.Unit {
	case UnitWeek:
		day -= (int(local.Weekday()) + 6) % 7
	case UnitMonth:
		day = 1
	}
	last = midnight(year, month, day, zone)
	for step := 1; ; step++ {
		if next = r.later(year, month, day, step, zone); next > now {
			return last, next
		}
	}
}

// later returns the boundary the given number of units after the one on that date.
func (r *BudgetReset) later(year int, month time.Month, day, steps int, zone *time.Location) base.Time {
	switch r.Unit {
	case UnitWeek:
		return midnight(year, month, day+7*steps, zone)
	case UnitMonth:
		return midnight(year, month+time.Month(steps), day, zone)
	default:
		return midnight(year, month, day+steps, zone)
	}
}

// midnight returns the first moment at which the clocks of the zone show that date or a later one. If midnight is skipped, that is the moment of
// the change; if it occurs twice, the first one.
func midnight(year int, month time.Month, day int, zone *time.Location) base.Time {
	shown := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	for at := shown.Add(-26 * time.Hour).In(zone); ; { // no zone has a larger offset
		_, offset := at.Zone()
		end := clockChange(at)
		first := shown.Add(-time.Duration(offset) * time.Second)
		if first.Before(at) {
			first = at
		}
		if end.IsZero() || first.Before(end) {
			return base.TimeOf(first)
		}
		at = end
	}
}

// clockChange returns the first moment after at from which the clocks of its zone may show another offset; zero: there is none.
func clockChange(at time.Time) time.Time {
	_, end := at.ZoneBounds()
	if !end.IsZero() && !end.After(at) {
		// On the last day of a leap year from 2040 on, the standard library returns a moment of that day. No clock changes on it.
		return at.Add(24 * time.Hour)
	}
	return end
}

// hoursAround is around for hours: moments at which the clocks of the zone show a whole hour. An hour that is shown twice counts as two.
func hoursAround(now base.Time, zone *time.Location) (last, next base.Time) {
	at := now.Std().In(zone)
	begin, _ := at.ZoneBounds()
	end := clockChange(at)
	last = now.Add(-intoHour(at))
	if !begin.IsZero() && last < base.TimeOf(begin) {
		last = lastHour(base.TimeOf(begin), zone)
	}
	next = now.Add(base.Hour - intoHour(at))
	if !end.IsZero() && next >= base.TimeOf(end) {
		next = base.TimeOf(end)
		if into := intoHour(end.In(zone)); into > 0 {
			next = next.Add(base.Hour - into)
		}
	}
	return last, next
}

// lastHour returns the last whole hour at or before a clock change that may not itself be on the hour.
func lastHour(change base.Time, zone *time.Location) base.Time {
	if intoHour(change.Std().In(zone)) == 0 {
		return change
	}
	before := (change - 1).Std().In(zone)
	return (change - 1).Add(-intoHour(before))
}

// intoHour returns the time since the clocks last showed a whole hour.
func intoHour(at time.Time) base.Millis {
	return base.Millis(at.Minute())*base.Minute + base.Millis(at.Second())*base.Second + base.Millis(at.Nanosecond()/1_000_000)
}
