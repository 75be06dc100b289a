package schedule

import (
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/schedule/cron"
)

func TestT17_a_put_creates_updates_or_leaves_as_it_is(t *testing.T) {
	t.Parallel()
	w := hourly(t, OverlapSkip)
	same, other := valid("0 * * * *"), valid("0 0 * * *")
	revision := func(n int64) *int64 { return &n }
	for _, row := range []struct {
		name     string
		present  *Schedule
		d        *Definition
		expected *int64
		create   bool
		want     string
		code     base.Code
	}{
		{"new", nil, &same, nil, false, PutCreated, ""},
		{"new, and another is expected", nil, &same, revision(2), false, "", base.CodeStaleVersion},
		{"equal, with the defaults left out", &w.rec, &same, nil, false, PutUnchanged, ""},
		{"another", &w.rec, &other, revision(1), false, PutUpdated, ""},
		{"another, and another is expected", &w.rec, &other, revision(2), false, "", base.CodeStaleVersion},
		{"created again", &w.rec, &same, nil, true, PutUnchanged, ""},
		{"created otherwise", &w.rec, &other, nil, true, "", base.CodeScheduleAlreadyExists},
	} {
		got, err := Put(row.present, row.d, row.expected, row.create)
		if got != row.want || base.CodeOf(err) != row.code {
			t.Errorf("%s: %s, %v", row.name, got, err)
		}
	}
}

func TestT17_a_sync_creates_changes_and_deletes(t *testing.T) {
	t.Parallel()
	a, b := valid("0 * * * *"), valid("0 0 * * *")
	got := must[[]Step](t)(Sync([]Listed{{"changed", a}, {"gone", a}, {"same", a}}, []Listed{{"taken", a}}, []Listed{{"new", a}, {"same", a}, {"changed", b}, {"taken", b}}))
	want(t, "steps", got, []Step{{"new", PutCreated}, {"same", PutUnchanged}, {"changed", PutUpdated}, {"taken", PutUpdated}, {"gone", SyncDeleted}})
	_, err := Sync(nil, nil, []Listed{{"a", a}, {"a", b}})
	wantCode(t, err, base.CodeInvalidSchedule, "schedules[1].name")
	_, err = Sync(nil, nil, make([]Listed, 1001))
	wantCode(t, err, base.CodeInvalidSchedule, "schedules")
}

func TestT19_no_moment_of_the_past_fires_by_a_change(t *testing.T) {
	t.Parallel()
	w := hourly(t, OverlapAllow)
	w.now = at(t, "2026-01-01 02:30")
	w.change(func(d *Definition) { d.Cron = []string{"*/10 * * * *"} })
	w.wantRows("missed 01T01:00:00..01T01:00:00 [1] catch_up_latest", "submitted 01T02:00:00 catch_up")
	want(t, "revision and through_at", []any{w.rec.Revision, w.rec.ThroughAt, w.rec.By}, []any{int64(2), w.now, "ben"})
	w.wantEvents(EventMissed, EventFired, EventUpdated)
	w.to("2026-01-01 02:40")
	want(t, "submits", len(w.submits), 2)
}

func TestT19_a_moment_that_is_due_later_by_jitter_is_missed_by_a_change(t *testing.T) {
	t.Parallel()
	d := valid("0 * * * *")
	d.JitterMS = 30 * base.Minute
	w := newWorld(t, at(t, "2026-01-01 00:30"), d)
	due := w.rec.NextDueAt
	if due <= w.rec.NextAt {
		t.Fatalf("due at %s", due)
	}
	w.now = due - 1
	w.settle()
	w.wantRows()
	w.change(func(d *Definition) { d.Description = "other" })
	w.wantRows("missed 01T01:00:00..01T01:00:00 [1] changed")
	w.now = due
	w.settle()
	want(t, "submits", len(w.submits), 0)
}

func TestT19_queued_moments_start_with_the_new_definition_and_skip_drops_them(t *testing.T) {
	t.Parallel()
	w := hourly(t, OverlapQueue)
	w.to("2026-01-01 01:00")
	w.to("2026-01-01 02:00")
	w.to("2026-01-01 03:00")
	w.change(func(d *Definition) { d.Description = "other" })
	want(t, "queue", len(w.rec.Queue), 2)
	w.change(func(d *Definition) { d.Overlap = OverlapSkip })
	w.wantRows("submitted 01T01:00:00", "skipped 01T02:00:00 changed", "skipped 01T03:00:00 changed")
	want(t, "open", len(w.rec.Open), 1)
}

func TestT20_the_jitter_of_an_id(t *testing.T) {
	t.Parallel()
	id, _ := base.ParseUUID("0190f0c2-1111-7aaa-8bbb-0123456789ab")
	want(t, "vector", Jitter(id, 600_000), 204_006)
	want(t, "none", Jitter(id, 0), 0)
	d := valid("* * * * * *")
	d.JitterMS = 600_000
	all := must[[]Upcoming](t)(must[*Spec](t)(Parse(d)).Preview(id, at(t, "2026-01-01"), 3))
	for _, u := range all {
		want(t, "at most the distance to the next moment less 1 ms", u.DueAt, u.ScheduledAt+999)
	}
	d.Cron = []string{"0 * * * *"}
	for _, u := range must[[]Upcoming](t)(must[*Spec](t)(Parse(d)).Preview(id, at(t, "2026-01-01"), 3)) {
		want(t, "the same for every moment", u.DueAt, u.ScheduledAt+204_006)
	}
}

func TestT21_paused_time_does_not_count_as_missed(t *testing.T) {
	t.Parallel()
	w := hourly(t, OverlapQueue)
	w.to("2026-01-01 01:00")
	w.to("2026-01-01 02:00")
	pause := func() bool {
		p, changed := PauseSchedule(&w.rec, w.spec, w.facts(), "ana", "holiday")
		w.apply(p)
		return changed
	}
	want(t, "paused, and again", []bool{pause(), pause()}, []bool{true, false})
	want(t, "pause", w.rec.Pause, Pause{By: "ana", At: w.now, Reason: "holiday"})
	w.wantEvents(EventFired, EventPaused)
	w.end(0, StatusSucceeded)
	w.to("2026-01-05")
	w.wantRows("submitted 01T01:00:00 succeeded", "queued 01T02:00:00")
	w.now = at(t, "2026-01-06 00:30")
	p, changed := Resume(&w.rec, w.spec, w.facts(), "ben", "")
	w.apply(p)
	w.wantRows("submitted 01T01:00:00 succeeded", "submitted 01T02:00:00")
	want(t, "resumed", []any{changed, w.rec.State, w.rec.ThroughAt, w.rec.NextAt}, []any{true, Active, w.now, at(t, "2026-01-06 01:00")})
	_, changed = Resume(&w.rec, w.spec, w.facts(), "ben", "")
	want(t, "resumed again", changed, false)
	w.to("2026-01-06 01:00")
	want(t, "missed", w.rec.Counts.Missed, 0)
}

func TestT21_an_ended_schedule_becomes_active_if_moments_are_left(t *testing.T) {
	t.Parallel()
	d := valid("0 * * * *")
	d.EndAt = at(t, "2026-01-01 01:30")
	w := newWorld(t, at(t, "2026-01-01 00:30"), d)
	w.to("2026-01-01 01:00")
	want(t, "state", w.rec.State, Ended)
	p, changed := Resume(&w.rec, w.spec, w.facts(), "ana", "")
	w.apply(p)
	want(t, "resumed", changed, false)
	w.change(func(d *Definition) { d.EndAt = 0 })
	want(t, "state", []any{w.rec.State, w.rec.NextAt}, []any{Active, at(t, "2026-01-01 02:00")})
}

func TestT21_open_work_of_a_deleted_schedule_goes_on_unless_it_is_cancelled(t *testing.T) {
	t.Parallel()
	w := hourly(t, OverlapAllow)
	w.to("2026-01-01 01:00")
	kept, e := Delete(&w.rec, false, "ana")
	cancelled, _ := Delete(&w.rec, true, "ana")
	want(t, "deletion", []any{len(kept), len(cancelled), e.Type, e.By}, []any{0, 1, EventDeleted, "ana"})
}

func TestT41_a_run_by_hand_is_a_firing_of_its_own(t *testing.T) {
	t.Parallel()
	w := hourly(t, OverlapSkip)
	run := func(call byte, overlap Overlap) Firing {
		t.Helper()
		p, f, ok, err := Fire(&w.rec, w.spec, w.facts(), &Request{Call: base.UUID{call}, Cause: CauseManual, Overlap: overlap, By: "ana"}, false)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		before := w.rec
		w.apply(p)
		want(t, "through_at, runs and state", []any{w.rec.ThroughAt, w.rec.Runs, w.rec.State}, []any{before.ThroughAt, before.Runs, before.State})
		return f
	}
	want(t, "first", run(1, "").Outcome, Submitted)
	want(t, "while it is open", run(2, "").Outcome, Skipped)
	want(t, "beside it", run(3, OverlapAllow).Outcome, Submitted)
	want(t, "in the queue", run(4, OverlapQueue).Outcome, Queued)
	w.wantRows("submitted 01T00:30:00 manual", "skipped 01T00:30:00 overlap", "submitted 01T00:30:00 manual", "queued 01T00:30:00")
	w.to("2026-01-01 01:00")
	want(t, "the clock sees them open", w.rec.Run.Reason, ReasonOverlap)
	p, _ := PauseSchedule(&w.rec, w.spec, w.facts(), "ana", "")
	w.apply(p)
	want(t, "while it is paused", run(5, OverlapAllow).Outcome, Submitted)
	w.refuse = func(*Start) Verdict {
		return Verdict{Err: base.Errorf(base.CodeLaneNotAccepting, "no"), Retryable: true}
	}
	_, _, _, err := Fire(&w.rec, w.spec, w.facts(), &Request{Call: base.UUID{6}, Cause: CauseManual, Overlap: OverlapAllow}, false)
	wantCode(t, err, base.CodeLaneNotAccepting, "")
	_, _, _, err = Fire(&w.rec, w.spec, w.facts(), &Request{Moment: 1, Cause: CauseManual}, false)
	wantCode(t, err, base.CodeInvalidSchedule, "scheduled_at")
}

func TestT42_a_backfill_is_the_moments_of_a_range_whatever_the_bounds_say(t *testing.T) {
	t.Parallel()
	d := valid("0 0 * * *")
	d.StartAt, d.EndAt = at(t, "2026-02-01"), at(t, "2026-03-01")
	spec := must[*Spec](t)(Parse(d))
	b := must[*Backfill](t)(NewBackfill(spec, at(t, "2026-01-01"), at(t, "2026-04-11"), false))
	dry := b.DryRun(func(m base.Time) bool { return m < at(t, "2026-01-04") })
	want(t, "count", []any{dry.Count, len(dry.First), len(dry.Last), dry.Submitted}, []any{100, 20, 20, 3})
	want(t, "ends", []base.Time{dry.First[0], dry.First[19], dry.Last[0], dry.Last[19]}, []base.Time{at(t, "2026-01-01"), at(t, "2026-01-20"), at(t, "2026-03-22"), at(t, "2026-04-10")})
	for _, reverse := range []bool{false, true} {
		b := must[*Backfill](t)(NewBackfill(spec, at(t, "2026-01-01"), at(t, "2026-04-11"), reverse))
		var all []base.Time
		for part := b.After(0, 7); len(part) > 0; part = b.After(all[len(all)-1], 7) {
			all = append(all, part...)
		}
		whole := b.After(0, 1000)
		if !slices.Equal(all, whole) || len(all) != 100 || (all[0] > all[99]) != reverse {
			t.Errorf("reverse %v: %v, want %v", reverse, all, whole)
		}
	}
}

func TestT42_a_backfill_has_at_most_ten_thousand_moments(t *testing.T) {
	t.Parallel()
	spec := must[*Spec](t)(Parse(valid("* * * * * *")))
	from := at(t, "2026-01-01")
	if _, err := NewBackfill(spec, from, from+10_000_000, false); err != nil {
		t.Error(err)
	}
	_, err := NewBackfill(spec, from, from+10_000_001, false)
	want(t, "count", wantCode(t, err, base.CodeBackfillTooLarge, "to").Details["count"], any(10_001))
	_, err = NewBackfill(spec, from, from.Add(base.Year), false)
	want(t, "at least", wantCode(t, err, base.CodeBackfillTooLarge, "to").Details["at_least"], any(true))
	_, err = NewBackfill(spec, from, from-1, false)
	wantCode(t, err, base.CodeInvalidSchedule, "to")
	_, err = NewBackfill(spec, -1, from, false)
	wantCode(t, err, base.CodeInvalidSchedule, "from")
}

func TestT25_T42_T43_exceptions_cannot_make_a_walk_take_long(t *testing.T) {
	t.Parallel()
	d := valid("* * * * * *")
	d.Except = []cron.Calendar{{Hour: "1-23"}, {Minute: "1-59"}, {Second: "1-59"}} // one moment a day is left
	spec := must[*Spec](t)(Parse(d))
	from := at(t, "2026-01-01")
	if n := len(must[[]Upcoming](t)(spec.Preview(base.UUID{}, from, 1000))); n < 10 || n > 13 {
		t.Errorf("%d moments in a preview", n)
	}
	_, err := NewBackfill(spec, from, from.Add(100*base.Day), false)
	wantCode(t, err, base.CodeBackfillTooLarge, "to")
	want(t, "a shorter one", len(must[*Backfill](t)(NewBackfill(spec, from, from.Add(10*base.Day), false)).After(0, 100)), 10)
	d.Cron = many(16, "* * * * * *")
	if n := len(must[[]Upcoming](t)(must[*Spec](t)(Parse(d)).Preview(base.UUID{}, from, 1000))); n != 1 {
		t.Errorf("%d moments in a preview of many entries", n)
	}
	if m, ok := must[*Spec](t)(Parse(d)).Next(from); !ok || m != at(t, "2026-01-02") {
		t.Errorf("the next moment is %s, %v", m, ok)
	}
	d.Cron = d.Cron[:1]
	w := newWorld(t, from, d)
	w.to("2026-03-01 12:00")
	missed := w.history[Key{Moment: at(t, "2026-01-02"), Run: true}]
	want(t, "missed", []any{missed.AtLeast, missed.Last}, []any{true, at(t, "2026-02-28")})
}

func TestT42_moments_that_were_submitted_are_passed_over_unless_they_are_run_again(t *testing.T) {
	t.Parallel()
	w := hourly(t, OverlapAllow)
	w.to("2026-01-01 01:00")
	_, _, ok, err := Fire(&w.rec, w.spec, w.facts(), &Request{Moment: at(t, "2026-01-01 01:00"), Cause: CauseBackfill, Overlap: OverlapAllow}, true)
	want(t, "again", []any{ok, err}, []any{false, error(nil)})
	p, f, ok, err := Fire(&w.rec, w.spec, w.facts(), &Request{Moment: at(t, "2026-01-01 01:00"), Call: base.UUID{9}, Cause: CauseBackfill, Overlap: OverlapAllow}, false)
	want(t, "rerun", []any{ok, err, f.Outcome}, []any{true, error(nil), Submitted})
	w.apply(p)
	want(t, "runs", w.rec.Runs, 1)
}

func TestT47_history_is_trimmed_from_its_old_end(t *testing.T) {
	t.Parallel()
	d := valid("* * * * *")
	d.HistoryLimit, d.Overlap = 3, OverlapAllow
	w := newWorld(t, at(t, "2026-01-01"), d)
	var p Plan
	for i := range 6 {
		w.now = at(t, "2026-01-01").Add(base.Millis(i+1) * base.Minute)
		p = w.settle()
	}
	want(t, "rows above the limit", p.Trim, 3)
	for i := 5; i > 0; i-- {
		w.end(i, StatusSucceeded)
	}
	w.settle() // only the first is open
	var oldest []Key
	for _, k := range []string{"00:01", "00:02", "00:03", "00:04"} {
		oldest = append(oldest, Key{Moment: at(t, "2026-01-01 "+k)})
	}
	deleted, after := w.rec.Trim(oldest)
	want(t, "deleted", deleted, oldest[1:])
	want(t, "rows", after.Rows, 3)
}
