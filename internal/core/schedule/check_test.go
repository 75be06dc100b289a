package schedule

import (
	"maps"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/schedule/cron"
)

func many[V any](n int, v V) []V {
	all := make([]V, n)
	for i := range all {
		all[i] = v
	}
	return all
}

// tags is a set of so many.
func tags(n int) base.Tags {
	all := base.Tags{}
	for i := range n {
		all["t"+strings.Repeat("a", i)] = "v"
	}
	return all
}

// boundary is a definition at a bound.
type boundary struct {
	name  string
	set   func(*Definition)
	field string // at fault; "": none is
}

func (b *boundary) check(t *testing.T) {
	t.Helper()
	d := valid("0 0 * * *")
	b.set(&d)
	_, err := Parse(d)
	if b.field == "" && err != nil || b.field != "" && (base.CodeOf(err) != base.CodeInvalidSchedule || wantCode(t, err, base.CodeInvalidSchedule, "").Field != b.field) {
		t.Errorf("%s: %v, want %q at fault", b.name, err, b.field)
	}
}

func TestT1_T3_TC2_every_field_at_its_bounds(t *testing.T) {
	t.Parallel()
	const latest = base.Time(7_258_118_399_000)
	for _, row := range []boundary{
		{"no entry", func(d *Definition) { d.Cron = nil }, "cron"},
		{"16 lines", func(d *Definition) { d.Cron = many(16, "* * * * *") }, ""},
		{"17 lines", func(d *Definition) { d.Cron = many(17, "* * * * *") }, "cron"},
		{"a bad line", func(d *Definition) { d.Cron = []string{"* * * * *", "* * * * 8"} }, "cron[1]"},
		{"16 calendars", func(d *Definition) { d.Calendars = many(16, cron.Calendar{}) }, ""},
		{"17 calendars", func(d *Definition) { d.Calendars = many(17, cron.Calendar{}) }, "calendars"},
		{"a bad calendar", func(d *Definition) { d.Calendars = []cron.Calendar{{Year: "1969"}} }, "calendars[0].year"},
		{"17 exceptions", func(d *Definition) { d.Except = many(17, cron.Calendar{}) }, "except"},
		{"a bad exception", func(d *Definition) { d.Except = []cron.Calendar{{Month: "13"}} }, "except[0].month"},
		{"1 s", func(d *Definition) { d.EveryMS = 1000 }, ""},
		{"999 ms", func(d *Definition) { d.EveryMS = 999 }, "every_ms"},
		{"-1 s", func(d *Definition) { d.EveryMS = -1000 }, "every_ms"},
		{"1.5 s", func(d *Definition) { d.EveryMS = 1500 }, "every_ms"},
		{"10 years", func(d *Definition) { d.EveryMS = 10 * base.Year }, ""},
		{"more than 10 years", func(d *Definition) { d.EveryMS = 10*base.Year + 1000 }, "every_ms"},
		{"a last anchor", func(d *Definition) { d.EveryMS, d.AnchorAt = 1000, latest }, ""},
		{"a late anchor", func(d *Definition) { d.EveryMS, d.AnchorAt = 1000, latest+1000 }, "anchor_at"},
		{"an anchor between seconds", func(d *Definition) { d.EveryMS, d.AnchorAt = 1000, 1 }, "anchor_at"},
		{"100 instants", func(d *Definition) { d.At = many(100, latest) }, ""},
		{"101 instants", func(d *Definition) { d.At = many(101, latest) }, "at"},
		{"an instant between seconds", func(d *Definition) { d.At = []base.Time{0, 1500} }, "at[1]"},
		{"an instant before 1970", func(d *Definition) { d.At = []base.Time{-1000} }, "at[0]"},
		{"a start before 1970", func(d *Definition) { d.StartAt = -1 }, "start_at"},
		{"an end after 2199", func(d *Definition) { d.EndAt = latest + 1 }, "end_at"},
		{"an end at the start", func(d *Definition) { d.StartAt, d.EndAt = 5, 5 }, "end_at"},
		{"an end after the start", func(d *Definition) { d.StartAt, d.EndAt = 5, 6 }, ""},
	} {
		row.check(t)
	}
}

func TestT1_T3_TC2_every_setting_at_its_bounds(t *testing.T) {
	t.Parallel()
	for _, row := range []boundary{
		{"10^9 runs", func(d *Definition) { d.MaxRuns = 1_000_000_000 }, ""},
		{"more runs", func(d *Definition) { d.MaxRuns = 1_000_000_001 }, "max_runs"},
		{"fewer runs", func(d *Definition) { d.MaxRuns = -1 }, "max_runs"},
		{"a day of jitter", func(d *Definition) { d.JitterMS = 86_400_000 }, ""},
		{"more jitter", func(d *Definition) { d.JitterMS = 86_400_001 }, "jitter_ms"},
		{"another overlap", func(d *Definition) { d.Overlap = "wait" }, "overlap"},
		{"another catch-up", func(d *Definition) { d.CatchUp.Policy = "some" }, "catch_up.policy"},
		{"a minute of window", func(d *Definition) { d.CatchUp.WindowMS = 60_000 }, ""},
		{"less window", func(d *Definition) { d.CatchUp.WindowMS = 59_999 }, "catch_up.window_ms"},
		{"a year of window", func(d *Definition) { d.CatchUp.WindowMS = base.Year }, ""},
		{"more window", func(d *Definition) { d.CatchUp.WindowMS = base.Year + 1 }, "catch_up.window_ms"},
		{"a limit of 1000", func(d *Definition) { d.CatchUp.Limit = 1000 }, ""},
		{"a limit of 1001", func(d *Definition) { d.CatchUp.Limit = 1001 }, "catch_up.limit"},
		{"a limit below 1", func(d *Definition) { d.CatchUp.Limit = -1 }, "catch_up.limit"},
		{"1000 failures", func(d *Definition) { d.PauseAfterFailures = 1000 }, ""},
		{"1001 failures", func(d *Definition) { d.PauseAfterFailures = 1001 }, "pause_after_failures"},
		{"neither submission nor flow", func(d *Definition) { d.Action.Kind = "" }, "submission"},
		{"no digest", func(d *Definition) { d.Action.Digest = strings.Repeat("G", 64) }, "submission"},
		{"10 000 rows", func(d *Definition) { d.HistoryLimit = 10_000 }, ""},
		{"10 001 rows", func(d *Definition) { d.HistoryLimit = 10_001 }, "history_limit"},
		{"a long description", func(d *Definition) { d.Description = strings.Repeat("a", 1024) }, ""},
		{"a longer one", func(d *Definition) { d.Description = strings.Repeat("a", 1025) }, "description"},
		{"a long manager", func(d *Definition) { d.ManagedBy = strings.Repeat("a", 128) }, ""},
		{"a longer one", func(d *Definition) { d.ManagedBy = strings.Repeat("a", 129) }, "managed_by"},
		{"62 tags", func(d *Definition) { d.Tags = tags(62) }, ""},
		{"63 tags", func(d *Definition) { d.Tags = tags(63) }, "tags"},
		{"a long tag", func(d *Definition) { d.Tags = base.Tags{"a": strings.Repeat("a", 257)} }, "tags.a"},
	} {
		row.check(t)
	}
	d := valid("0 0 * * *")
	d.Tags = base.Tags{"ff.a": ""}
	_, err := Parse(d)
	wantCode(t, err, base.CodeInvalidTagKey, "")
}

func TestT1_names_and_numbers(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{"nightly.report:1_a-b": true, "": false, strings.Repeat("a", 128): true, strings.Repeat("a", 129): false, "-a": false, "a b": false} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		} else if err != nil {
			wantCode(t, err, base.CodeInvalidSchedule, "name")
		}
	}
	want(t, "room", CheckNumber(9, 10), nil)
	wantCode(t, CheckNumber(10, 10), base.CodeScheduleLimitExceeded, "")
}

func TestT1_a_submission_does_not_say_when_it_is_made(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"execution_id", "flow_id", "idempotency_key", "delay_ms", "delay_until", "deadline_at", "dry_run", "empty"} {
		wantCode(t, CheckFields(ActionExecution, []string{"kind", field}), base.CodeInvalidSchedule, "submission."+field)
		wantCode(t, CheckFields(ActionFlow, []string{field}), base.CodeInvalidSchedule, "flow."+field)
	}
	want(t, "others", CheckFields(ActionExecution, []string{"kind", "input", "lane", "tags"}), nil)
}

func TestT13_a_zone_is_refused_with_the_nearest_name(t *testing.T) {
	t.Parallel()
	for name, near := range map[string]string{
		"europe/berlin": "Europe/Berlin", "Europe/Berln": "Europe/Berlin", "Berlin": "Europe/Berlin", "New York": "America/New_York", "Local": "", "+02:00": "",
		"CET-1CEST,M3.5.0,M10.5.0/3": "", "Asia/Calcuta": "Asia/Calcutta",
	} {
		d := valid("0 0 * * *")
		d.Timezone = name
		_, err := Parse(d)
		if hint := wantCode(t, err, base.CodeInvalidSchedule, "timezone").Hint; near != "" && !strings.HasSuffix(hint, " "+near) {
			t.Errorf("%s: %s", name, hint)
		}
	}
}

func TestT15_a_definition_that_never_fires_is_refused(t *testing.T) {
	t.Parallel()
	now := at(t, "2026-06-01")
	set := map[string]func(*Definition){
		"February 30":    func(d *Definition) { d.Cron = []string{"0 0 30 2 *"} },
		"all is removed": func(d *Definition) { d.Except = []cron.Calendar{{}} },
		"a window without a moment": func(d *Definition) {
			d.Cron, d.EndAt = []string{"0 0 1 1 *"}, at(t, "2026-12-31")
			d.StartAt = at(t, "2026-02-01")
		},
		"the fifth Friday of February 100": func(d *Definition) { d.Cron = nil; d.Calendars = []cron.Calendar{{DayOfMonth: "31", Month: "feb,apr"}} },
	}
	for name, change := range set {
		d := valid("0 0 * * *")
		change(&d)
		_, err := must[*Spec](t)(Parse(d)).CheckMoments(now, 0)
		if e := wantCode(t, err, base.CodeInvalidSchedule, ""); e.Details[DetailReason] != ReasonNever {
			t.Errorf("%s: %v", name, e.Details)
		}
	}
	over := map[string]func(*Definition){
		"end_at has passed": func(d *Definition) { d.EndAt = at(t, "2026-01-01") },
		"end_at has passed before any": func(d *Definition) {
			d.Cron, d.StartAt, d.EndAt = []string{"0 0 1 12 *"}, at(t, "2026-02-01"), at(t, "2026-03-01")
		},
		"the instants of at have passed": func(d *Definition) { d.Cron, d.At = nil, []base.Time{at(t, "2026-05-31")} },
	}
	for name, change := range over {
		d := valid("0 0 * * *")
		change(&d)
		spec := must[*Spec](t)(Parse(d))
		if is, err := spec.CheckMoments(now, 0); !is || err != nil {
			t.Errorf("%s: %v, %v", name, is, err)
		}
		if r := Create(Naming{ID: base.UUID{1}, Namespace: "n", Name: "a"}, spec, now).After; r.State != Ended {
			t.Errorf("%s: %s", name, r.State)
		}
	}
}

func TestT53_moments_that_are_too_close_are_refused(t *testing.T) {
	t.Parallel()
	now := at(t, "2026-06-01")
	check := func(d Definition, least base.Millis) error {
		_, err := must[*Spec](t)(Parse(d)).CheckMoments(now, least)
		return err
	}
	d := valid("* * * * *")
	want(t, "at the bound", check(d, base.Minute), nil)
	e := wantCode(t, check(d, base.Minute+1), base.CodeInvalidSchedule, "")
	want(t, "detail", e.Details[DetailReason], any(ReasonTooFrequent))
	d = valid("0 0 * * *")
	d.At = []base.Time{at(t, "2026-12-01 00:00:01")}
	wantCode(t, check(d, 2*base.Second), base.CodeInvalidSchedule, "")
	d.At = []base.Time{at(t, "2027-12-01 00:00:01")} // after the next 256 moments
	want(t, "far away", check(d, 2*base.Second), nil)
}

func TestT5_the_search_has_bounds(t *testing.T) {
	t.Parallel()
	d := valid()
	d.At = []base.Time{at(t, "2080-01-01")}
	s := must[*Spec](t)(Parse(d))
	if m, ok := s.Next(at(t, "2029-12-30")); ok {
		t.Errorf("%s is more than fifty years away", m)
	}
	if m, ok := s.Next(at(t, "2030-01-02")); !ok || m != d.At[0] {
		t.Errorf("%s, %v", m, ok)
	}
	if m, ok := s.Prev(at(t, "2130-01-03")); ok {
		t.Errorf("%s is more than fifty years ago", m)
	}
	d = valid("* * * * * *")
	d.Except = []cron.Calendar{{Year: "2026", Month: "6", DayOfMonth: "1,2"}} // 172,800 moments
	s = must[*Spec](t)(Parse(d))
	if m, ok := s.Next(at(t, "2026-05-31 23:59:59")); ok {
		t.Errorf("%s comes after more than 100,000 that are removed", m)
	}
	if m, ok := s.Next(at(t, "2026-06-02 12:00")); !ok || m != at(t, "2026-06-03") {
		t.Errorf("%s, %v", m, ok)
	}
	for _, line := range []string{"* * * * * *", "0 0 1 1 *"} {
		s = must[*Spec](t)(Parse(valid(line)))
		if m, ok := s.Next(at(t, "2199-12-31T23:59:59Z")); ok {
			t.Errorf("%s is after 2199", m)
		}
		if m, ok := s.Prev(0); ok {
			t.Errorf("%s is before 1970", m)
		}
	}
}

func TestT11_T12_intervals_are_anchored_and_exceptions_read_the_zone(t *testing.T) {
	t.Parallel()
	d := valid()
	d.EveryMS, d.AnchorAt = 90*base.Minute, at(t, "2026-01-01 00:15")
	s := must[*Spec](t)(Parse(d))
	want(t, "before the anchor", texts(between(s, at(t, "2025-12-31 21:00"), at(t, "2026-01-01 02:00"))), []string{"2025-12-31T21:15:00", "2025-12-31T22:45:00", "2026-01-01T00:15:00", "2026-01-01T01:45:00"})
	d = valid("0 8 * * *")
	d.Timezone = "Asia/Tokyo" // 23:00 UTC of the day before
	d.Except = []cron.Calendar{{DayOfWeek: "sat,sun"}, {DayOfMonth: "1", Month: "1"}}
	s = must[*Spec](t)(Parse(d))
	want(t, "workdays in Tokyo", texts(between(s, at(t, "2025-12-30"), at(t, "2026-01-06"))), []string{"2025-12-30T23:00:00", "2026-01-01T23:00:00", "2026-01-04T23:00:00", "2026-01-05T23:00:00"})
}

func TestT8_T10_days_of_month_and_week_are_either_in_a_line_and_both_in_a_calendar(t *testing.T) {
	t.Parallel()
	d := valid("0 0 13 * fri")
	got := texts(between(must[*Spec](t)(Parse(d)), at(t, "2026-02-01"), at(t, "2026-03-01")))
	want(t, "every 13th and every Friday", got, []string{"2026-02-06T00:00:00", "2026-02-13T00:00:00", "2026-02-20T00:00:00", "2026-02-27T00:00:00"})
	got = texts(between(must[*Spec](t)(Parse(d)), at(t, "2026-04-11"), at(t, "2026-04-18")))
	want(t, "a 13th that is no Friday", got, []string{"2026-04-13T00:00:00", "2026-04-17T00:00:00"})
	d = valid()
	d.Calendars = []cron.Calendar{{DayOfMonth: "13", DayOfWeek: "fri", Comment: "Friday the 13th"}}
	want(t, "Friday the 13th", texts(between(must[*Spec](t)(Parse(d)), at(t, "2026-01-01"), at(t, "2027-01-01"))), []string{"2026-02-13T00:00:00", "2026-03-13T00:00:00", "2026-11-13T00:00:00"})
}

func TestT43_a_preview_marks_changes_of_the_clock(t *testing.T) {
	t.Parallel()
	s := inZone(t, "Europe/Berlin", "30 2 * * *")
	for from, want := range maps.All(map[string]Upcoming{
		"2026-03-29": {ScheduledAt: at(t, "2026-03-29 01:00"), Local: "2026-03-29T03:00:00+02:00", DueAt: at(t, "2026-03-29 01:00"), Shift: ShiftGap},
		"2026-10-25": {ScheduledAt: at(t, "2026-10-25 00:30"), Local: "2026-10-25T02:30:00+02:00", DueAt: at(t, "2026-10-25 00:30"), Shift: ShiftFirstOfTwo},
		"2026-06-01": {ScheduledAt: at(t, "2026-06-01 00:30"), Local: "2026-06-01T02:30:00+02:00", DueAt: at(t, "2026-06-01 00:30")},
	}) {
		got := must[[]Upcoming](t)(s.Preview(base.UUID{}, at(t, from), 1))
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: %+v, want %+v", from, got, want)
		}
	}
	for count, want := range map[int]int{0: 10, 1: 1, 1000: 1000, 1001: -1, -1: -1} {
		got, err := s.Preview(base.UUID{}, at(t, "2026-01-01"), count)
		if err == nil && len(got) != want || err != nil && want >= 0 {
			t.Errorf("%d: %d moments, %v", count, len(got), err)
		}
	}
	s.Definition.JitterMS = 1000
	want(t, "no id yet", must[[]Upcoming](t)(s.Preview(base.UUID{}, 0, 1))[0].DueAt, 0)
}

func TestT43_next_lists_what_will_fire(t *testing.T) {
	t.Parallel()
	d := valid("0 * * * *")
	d.MaxRuns, d.EndAt = 5, at(t, "2026-01-01 05:30")
	w := newWorld(t, at(t, "2026-01-01 00:30"), d)
	next := func() int {
		return len(must[[]Upcoming](t)(w.rec.Upcoming(w.spec, w.now, 0, 100)))
	}
	want(t, "until end_at", next(), 5)
	w.to("2026-01-01 01:00")
	want(t, "after one", next(), 4)
	w.change(func(d *Definition) { d.EndAt, d.MaxRuns = 0, 3 })
	want(t, "until max_runs", next(), 2)
	p, _ := PauseSchedule(&w.rec, w.spec, w.facts(), "ana", "")
	w.apply(p)
	want(t, "paused", next(), 0)
}
