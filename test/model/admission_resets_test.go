package model

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// schedule is when a budget begins anew (B35).
type schedule struct {
	every base.Millis // 0: by the calendar
	unit  string
	zone  *time.Location
}

// outset is when a case begins: shortly before a boundary of the calendar.
type outset struct {
	at    time.Time
	zone  *time.Location
	units []string // of which there is a boundary
}

// outsets are the ends of a leap February that is the end of a week too, and the eves of the days on which clocks are changed.
func outsets() []outset {
	const eve = -5 * time.Second
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	return []outset{
		{time.Date(2032, 3, 1, 0, 0, 0, 0, time.UTC).Add(eve), time.UTC, []string{core.UnitWeek, core.UnitMonth}},
		{time.Date(2031, 6, 1, 0, 0, 0, 0, berlin).Add(eve), berlin, []string{core.UnitMonth, core.UnitHour}},
		{time.Date(2031, 3, 30, 0, 0, 0, 0, berlin).Add(eve), berlin, []string{core.UnitDay}},
		{time.Date(2031, 10, 26, 0, 0, 0, 0, berlin).Add(eve), berlin, []string{core.UnitDay}},
	}
}

// plan draws the resets of a budget.
func (m *machine) plan(p *purse) core.BudgetReset {
	switch m.d.under("resets", 4) {
	case 0:
		return m.everyMinute(p)
	case 1, 2:
		p.schedule = schedule{unit: pickOne(m.d, "unit", m.outset.units...), zone: m.outset.zone}
		p.next = p.schedule.boundary(m.w.now())
		return core.BudgetReset{Type: core.ResetCalendar, Unit: p.schedule.unit, Timezone: p.schedule.zone.String()}
	default:
		return core.BudgetReset{}
	}
}

// everyMinute lets a budget begin anew at once, and then each minute.
func (m *machine) everyMinute(p *purse) core.BudgetReset {
	p.schedule = schedule{every: base.Minute}
	anchor := m.w.now().Add(-base.Hour + grid)
	p.next = anchor.Add(base.Hour)
	return core.BudgetReset{Type: core.ResetInterval, EveryMS: base.Minute, AnchorAt: anchor}
}

// boundary is the next one of the calendar: the clocks show a whole hour, or midnight, or that of a Monday or of the first of a month.
func (s schedule) boundary(now base.Time) base.Time {
	const quarter = 15 * time.Minute // clocks differ by no less
	for at := now.Std().Truncate(quarter).Add(quarter).In(s.zone); ; at = at.Add(quarter) {
		midnight := at.Hour() == 0 && at.Minute() == 0
		is := map[string]bool{
			core.UnitHour: at.Minute() == 0, core.UnitDay: midnight, core.UnitWeek: midnight && at.Weekday() == time.Monday, core.UnitMonth: midnight && at.Day() == 1,
		}
		if is[s.unit] {
			return base.TimeOf(at)
		}
	}
}

// nextReset is the first boundary of a purse after now. Those that were missed are one (B36).
func (w *account) nextReset(p *purse) base.Time {
	var next base.Time
	if p.schedule.every == 0 {
		next = p.schedule.boundary(w.now())
		w.did("reset: " + p.schedule.unit)
		if p.schedule.unit == core.UnitDay && p.next == w.now() && next.Sub(p.next) != base.Day {
			w.did("reset: a day of " + time.Duration(next.Sub(p.next)*int64(time.Millisecond)).String())
		}
		if p.schedule.boundary(p.next) <= w.now() {
			w.did("reset: missed ones")
		}
		return next
	}
	for next = p.next; next <= w.now(); {
		next = next.Add(p.schedule.every)
	}
	return next
}

// mostJumps bounds how much time goes by in a case: nothing is forgotten meanwhile.
const mostJumps = 1

// jump lets so much time pass at once that boundaries are missed. Before that all leases, grants and delays end.
func (m *machine) jump() {
	m.jumps++
	m.withdraw()
	for {
		var last base.Time
		for _, j := range m.w.jobs {
			last = max(last, j.due())
		}
		if last == 0 {
			break
		}
		m.pass(time.Duration(last.Sub(m.w.now())) * time.Millisecond)
	}
	at := m.w.now().Add(pickOne(m.d, "jump", 2*base.Hour, 30*base.Hour, 3*base.Day))
	m.d.t.Logf("jump to %s", at)
	m.step(at)
	known := m.crew
	m.crew = nil
	for _, i := range known { // they were not heard of for long
		m.register(i)
	}
}
