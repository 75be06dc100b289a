package schedule

import (
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// hourly is a schedule with that overlap which was made shortly before 2026-01-01T01:00.
func hourly(t tester, overlap Overlap) *world {
	d := valid("0 * * * *")
	d.Overlap = overlap
	return newWorld(t, at(t, "2026-01-01 00:30"), d)
}

func TestT22_moments_fire_when_they_are_due(t *testing.T) {
	t.Parallel()
	w := hourly(t, OverlapAllow)
	w.to("2026-01-01 00:59:59")
	w.wantRows()
	w.to("2026-01-01 01:00:00")
	w.wantRows("submitted 01T01:00:00")
	w.wantEvents(EventCreated, EventFired)
	w.to("2026-01-01 02:00:30")
	w.wantRows("submitted 01T01:00:00", "submitted 01T02:00:00")
	want(t, "late", w.events[len(w.events)-1].LateMS, 30*base.Second)
	want(t, "next", w.rec.NextAt, at(t, "2026-01-01 03:00"))
	start := w.submits[1]
	want(t, "what the second handler learns", []any{start.Run, start.PreviousAt, start.Firing.Cause}, []any{int64(2), at(t, "2026-01-01 01:00"), CauseTimer})
}

func TestT37_T38_T39_what_work_is_told_of_its_moment(t *testing.T) {
	t.Parallel()
	d := valid("0 * * * *")
	d.Timezone, d.JitterMS = "Asia/Tokyo", 600_000
	w := newWorld(t, at(t, "2026-01-01 00:30"), d)
	next := w.rec.NextStart(w.spec)
	want(t, "the first one", []any{next.Firing.Moment, next.Firing.DueAt, next.Run, next.PreviousAt}, []any{at(t, "2026-01-01 01:00"), w.rec.NextDueAt, int64(1), at(t, "2026-01-01")})
	w.to("2026-01-01 03:30")
	start := w.submits[0]
	moment := at(t, "2026-01-01 03:00")
	want(t, "origin", start.Origin(&w.rec), Origin{
		Name: "nightly", ScheduleID: w.rec.ID, ScheduledAt: moment, DueAt: moment.Add(w.rec.jitter()), Cause: CauseCatchUp, Run: 1,
		PreviousAt: at(t, "2026-01-01 02:00"), Timezone: "Asia/Tokyo",
	})
	own := base.Tags{"a": "b"}
	want(t, "tags", start.Tags(w.rec.Name, own), base.Tags{"a": "b", "ff.schedule": "nightly", "ff.scheduled_at": "2026-01-01T03:00:00.000Z"})
	want(t, "those of the submission", own, base.Tags{"a": "b"})
	text := must[string](t)(start.Values(&w.rec, w.spec).ExpandText("${schedule.name} ${schedule.scheduled_local} ${schedule.run} ${schedule.cause}"))
	want(t, "values", text, "nightly 2026-01-01T12:00:00+09:00 1 catch_up")
}

func TestT18_a_definition_that_only_lacks_time_is_checked_with_a_moment_too(t *testing.T) {
	t.Parallel()
	d := valid()
	d.At = []base.Time{at(t, "2026-01-01")}
	w := newWorld(t, at(t, "2026-01-02 00:00:00.5"), d)
	next := w.rec.NextStart(w.spec)
	want(t, "next", []any{w.rec.State, next.Firing.Moment, next.PreviousAt}, []any{Ended, at(t, "2026-01-02"), at(t, "2026-01-01")})
}

func TestT22_a_transaction_submits_a_hundred_executions_or_one_flow(t *testing.T) {
	t.Parallel()
	for kind, most := range map[ActionKind]int{ActionExecution: 100, ActionFlow: 1} {
		moments := most + 20
		d := valid("* * * * *")
		d.Overlap, d.CatchUp, d.Action.Kind = OverlapAllow, CatchUp{Policy: CatchUpAll, Limit: 1000}, kind
		w := newWorld(t, at(t, "2026-01-01"), d)
		w.now = at(t, "2026-01-01").Add(base.Millis(moments) * base.Minute)
		p := Settle(&w.rec, w.spec, w.facts())
		want(t, "submits of the first transaction", []any{len(w.submits), p.More, p.Arm}, []any{most, true, w.now})
		w.apply(p)
		w.settle()
		want(t, "submits", len(w.submits), moments)
		want(t, "submits at most", w.limit, most)
	}
}

func TestT25_TC5_what_becomes_of_a_downtime(t *testing.T) {
	t.Parallel()
	late := func(from, to, policy string, n int) string {
		return "missed " + from + ".." + to + " " + base.Element("", n) + " catch_up_" + policy
	}
	for _, row := range []struct {
		name   string
		policy CatchUpPolicy
		until  string
		set    func(*CatchUp)
		want   []string
	}{
		{"on time", CatchUpNone, "2026-01-01 01:00:00", nil, []string{"submitted 01T01:00:00"}},
		{"59 seconds late", CatchUpNone, "2026-01-01 01:00:59", nil, []string{"submitted 01T01:00:00"}},
		{"60 seconds late", CatchUpNone, "2026-01-01 01:01:00", nil, []string{"submitted 01T01:00:00"}},
		{"61 seconds late and none", CatchUpNone, "2026-01-01 01:01:01", nil, []string{late("01T01:00:00", "01T01:00:00", "none", 1)}},
		{"61 seconds late and latest", CatchUpLatest, "2026-01-01 01:01:01", nil, []string{"submitted 01T01:00:00 catch_up"}},
		{"61 seconds late and all", CatchUpAll, "2026-01-01 01:01:01", nil, []string{"submitted 01T01:00:00 catch_up"}},
		{"five hours and none", CatchUpNone, "2026-01-01 05:30", nil, []string{late("01T01:00:00", "01T05:00:00", "none", 5)}},
		{"five hours and latest", CatchUpLatest, "2026-01-01 05:30", nil, []string{late("01T01:00:00", "01T04:00:00", "latest", 4), "submitted 01T05:00:00 catch_up"}},
		{"five hours, latest, and one on time", CatchUpLatest, "2026-01-01 05:00:30", nil, []string{late("01T01:00:00", "01T04:00:00", "latest", 4), "submitted 01T05:00:00"}},
		{"five hours and all", CatchUpAll, "2026-01-01 03:30", nil, []string{"submitted 01T01:00:00 catch_up", "submitted 01T02:00:00 catch_up", "submitted 01T03:00:00 catch_up"}},
		{"a limit", CatchUpAll, "2026-01-01 05:30", func(c *CatchUp) { c.Limit = 2 }, []string{late("01T01:00:00", "01T03:00:00", "all", 3), "submitted 01T04:00:00 catch_up", "submitted 01T05:00:00 catch_up"}},
		{"a limit beside one on time", CatchUpAll, "2026-01-01 05:00", func(c *CatchUp) { c.Limit = 1 }, []string{late("01T01:00:00", "01T03:00:00", "all", 3), "submitted 01T04:00:00 catch_up", "submitted 01T05:00:00"}},
		{"the end of the window", CatchUpAll, "2026-01-01 03:30", func(c *CatchUp) { c.WindowMS = 90 * base.Minute }, []string{late("01T01:00:00", "01T01:00:00", "all", 1), "submitted 01T02:00:00 catch_up", "submitted 01T03:00:00 catch_up"}},
		{"out of the window", CatchUpLatest, "2026-01-01 03:30", func(c *CatchUp) { c.WindowMS = 30*base.Minute - 1 }, []string{late("01T01:00:00", "01T03:00:00", "latest", 3)}},
		{"just in the window", CatchUpLatest, "2026-01-01 03:30", func(c *CatchUp) { c.WindowMS = 30 * base.Minute }, []string{late("01T01:00:00", "01T02:00:00", "latest", 2), "submitted 01T03:00:00 catch_up"}},
		{"three days", CatchUpLatest, "2026-01-03 23:30", nil, []string{late("01T01:00:00", "03T22:00:00", "latest", 70), "submitted 03T23:00:00 catch_up"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d := valid("0 * * * *")
			d.Overlap, d.CatchUp.Policy = OverlapAllow, row.policy
			if row.set != nil {
				row.set(&d.CatchUp)
			}
			w := newWorld(t, at(t, "2026-01-01 00:30"), d)
			w.to(row.until)
			w.wantRows(row.want...)
		})
	}
}

func TestT25_the_missed_are_counted_up_to_a_hundred_thousand(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		until   string
		count   int64
		atLeast bool
	}{{"2026-01-02 03:46:40", 100_000, false}, {"2026-01-02 03:46:41", 100_000, true}, {"2026-02-01", 100_000, true}} {
		d := valid("* * * * * *")
		d.CatchUp.Policy, d.CatchUp.WindowMS = CatchUpNone, base.Minute
		w := newWorld(t, at(t, "2026-01-01"), d)
		w.now = at(t, row.until).Add(61 * base.Second)
		w.spec = must[*Spec](t)(Parse(d))
		p := Settle(&w.rec, w.spec, w.facts())
		missed := p.Rows[0]
		want(t, row.until, []any{missed.Outcome, missed.Count, missed.AtLeast, missed.Moment, missed.Last}, []any{Missed, row.count, row.atLeast, at(t, "2026-01-01 00:00:01"), at(t, row.until)})
	}
}

func TestT27_skip_names_the_open_one_and_a_run_is_one_row(t *testing.T) {
	t.Parallel()
	w := hourly(t, OverlapSkip)
	for _, now := range []string{"01:00", "02:00", "03:00:01", "04:00"} {
		w.to("2026-01-01 " + now)
	}
	w.wantRows("submitted 01T01:00:00", "skipped 01T02:00:00..01T04:00:00 [3] overlap")
	want(t, "the one in the way", w.history[w.rec.Run.Key].Blocker, w.rec.Open[0].Target)
	w.end(0, StatusSucceeded)
	w.to("2026-01-01 04:30")
	w.to("2026-01-01 05:00")
	w.to("2026-01-01 06:00")
	w.wantRows("submitted 01T01:00:00 succeeded", "skipped 01T02:00:00..01T04:00:00 [3] overlap", "submitted 01T05:00:00", "skipped 01T06:00:00..01T06:00:00 [1] overlap")
}

func TestT27_queue_latest_keeps_the_newest(t *testing.T) {
	t.Parallel()
	w := hourly(t, OverlapQueueLatest)
	for _, now := range []string{"01:00", "02:00", "03:00"} {
		w.to("2026-01-01 " + now)
	}
	w.wantRows("submitted 01T01:00:00", "skipped 01T02:00:00 superseded", "queued 01T03:00:00")
	w.end(0, StatusFailed)
	w.to("2026-01-01 03:10")
	w.wantRows("submitted 01T01:00:00 failed", "skipped 01T02:00:00 superseded", "submitted 01T03:00:00")
}

func TestT27_queue_waits_in_order_up_to_a_thousand(t *testing.T) {
	t.Parallel()
	d := valid("* * * * *")
	d.Overlap, d.CatchUp = OverlapQueue, CatchUp{Policy: CatchUpAll, Limit: 1000}
	w := newWorld(t, at(t, "2026-01-01"), d)
	w.to("2026-01-01 16:40")
	want(t, "open and waiting", []int{len(w.rec.Open), len(w.rec.Queue)}, []int{1, 999})
	w.to("2026-01-01 16:43")
	want(t, "queue", len(w.rec.Queue), MaxQueue)
	want(t, "run", []any{w.rec.Run.Reason, w.rec.Run.Count}, []any{ReasonQueueFull, int64(2)})
	for i := range 3 {
		w.end(0, StatusSucceeded)
		w.settle()
		want(t, "the one that starts", w.rec.Open[0].Moment, at(t, "2026-01-01").Add(base.Millis(i+2)*base.Minute))
	}
}

func TestT27_cancel_ends_the_open_ones_first(t *testing.T) {
	t.Parallel()
	w := hourly(t, OverlapCancel)
	w.to("2026-01-01 01:00")
	w.to("2026-01-01 02:00")
	w.wantRows("submitted 01T01:00:00 cancelled", "submitted 01T02:00:00")
	w.cancelled = func(*Firing) bool { return false } // as flows are
	w.to("2026-01-01 03:00")
	w.to("2026-01-01 04:00")
	w.wantRows("submitted 01T01:00:00 cancelled", "submitted 01T02:00:00", "skipped 01T03:00:00 superseded", "queued 01T04:00:00")
	w.end(0, "cancelled")
	w.to("2026-01-01 04:01")
	w.wantRows("submitted 01T01:00:00 cancelled", "submitted 01T02:00:00 cancelled", "skipped 01T03:00:00 superseded", "submitted 01T04:00:00")
}

func TestT27_allow_starts_beside_the_open_ones_up_to_a_thousand(t *testing.T) {
	t.Parallel()
	d := valid("* * * * *")
	d.Overlap, d.CatchUp = OverlapAllow, CatchUp{Policy: CatchUpAll, Limit: 1000}
	w := newWorld(t, at(t, "2026-01-01"), d)
	w.to("2026-01-01 16:40")
	w.to("2026-01-01 16:42")
	want(t, "open", len(w.rec.Open), MaxOpen)
	want(t, "skipped", []any{w.rec.Run.Reason, w.rec.Run.Count}, []any{ReasonTooManyOpen, int64(2)})
}

func TestT29_a_refusal_that_may_pass_is_retried_and_later_moments_do_not_wait(t *testing.T) {
	t.Parallel()
	w := hourly(t, OverlapSkip)
	w.refuse = func(*Start) Verdict {
		return Verdict{Err: base.Errorf(base.CodeLaneNotAccepting, "no"), Retryable: true}
	}
	p := w.to("2026-01-01 01:00")
	w.wantRows("retrying 01T01:00:00 lane_not_accepting")
	want(t, "alarm", p.After.TimerAt, at(t, "2026-01-01 01:00:02"))
	for i, wait := range []base.Millis{4, 8, 16, 32, 64, 128, 256, 300, 300} {
		w.now = w.rec.Queue[0].NotBefore
		w.settle()
		want(t, "wait", []any{w.rec.Queue[0].Tries, w.rec.Queue[0].NotBefore.Sub(w.now)}, []any{i + 2, wait * base.Second})
	}
	w.refuse = func(s *Start) Verdict {
		if s.Firing.Moment == at(t, "2026-01-01 01:00") {
			return Verdict{Err: base.Errorf(base.CodeLaneNotAccepting, "no"), Retryable: true}
		}
		return Verdict{}
	}
	w.to("2026-01-01 02:00")
	w.wantRows("retrying 01T01:00:00 lane_not_accepting", "submitted 01T02:00:00")
	w.end(0, StatusSucceeded)
	w.refuse = nil
	w.to("2026-01-01 02:10")
	w.wantRows("submitted 01T01:00:00", "submitted 01T02:00:00 succeeded")
}

func TestT29_a_refusal_is_final_after_the_window_or_at_once(t *testing.T) {
	t.Parallel()
	d := valid("0 * * * *")
	d.CatchUp.WindowMS = 10 * base.Minute
	w := newWorld(t, at(t, "2026-01-01 00:30"), d)
	retryable := true
	w.refuse = func(*Start) Verdict {
		return Verdict{Err: base.Errorf(base.CodeBudgetClosed, "no"), Retryable: retryable}
	}
	w.to("2026-01-01 01:00")
	w.to("2026-01-01 01:10:00")
	w.wantRows("retrying 01T01:00:00 budget_closed")
	want(t, "tries", w.rec.Queue[0].Tries, 2)
	w.to("2026-01-01 01:10:00.001")
	w.wantRows("refused 01T01:00:00 budget_closed")
	w.wantEvents(EventRefused)
	retryable = false
	w.to("2026-01-01 02:00")
	w.wantRows("refused 01T01:00:00 budget_closed", "refused 01T02:00:00 budget_closed")
	want(t, "state", w.rec.State, Active)
}

func TestT33_nothing_fires_until_a_clock_that_stepped_back_passes_through_at_again(t *testing.T) {
	t.Parallel()
	w := hourly(t, OverlapAllow)
	w.to("2026-01-01 03:00")
	submitted := len(w.submits)
	for _, now := range []string{"2026-01-01 01:00", "2026-01-01 02:00", "2026-01-01 03:00", "2026-01-01 02:59:59"} {
		w.to(now)
	}
	w.change(func(d *Definition) { d.Description = "other" })
	w.to("2026-01-01 03:30")
	want(t, "submits", len(w.submits), submitted)
	w.to("2026-01-01 04:00")
	want(t, "submits", len(w.submits), submitted+1)
}

func TestT34_failures_in_a_row_pause_the_schedule(t *testing.T) {
	t.Parallel()
	d := valid("0 * * * *")
	d.PauseAfterFailures = 3
	w := newWorld(t, at(t, "2026-01-01 00:30"), d)
	for i, status := range []string{StatusFailed, StatusExpired, StatusSucceeded, StatusFailed, "cancelled", "skipped", StatusExpired, StatusFailed} {
		w.now = at(t, "2026-01-01").Add(base.Millis(i+1) * base.Hour)
		w.settle()
		want(t, "state", w.rec.State, Active)
		w.end(0, status)
		w.now++
		w.settle()
	}
	want(t, "state", []any{w.rec.State, w.rec.Pause.By}, []any{Paused, "engine"})
	w.wantEvents(EventPaused)
	n := len(w.submits)
	w.to("2026-01-02 12:00")
	want(t, "submits", len(w.submits), n)
	p, changed := Resume(&w.rec, w.spec, w.facts(), "ana", "mended")
	w.apply(p)
	want(t, "resumed", []any{changed, w.rec.State, w.rec.FailuresInRow}, []any{true, Active, 0})
}

func TestT35_a_schedule_ends_when_its_runs_are_used_up(t *testing.T) {
	t.Parallel()
	d := valid("0 * * * *")
	d.MaxRuns, d.Overlap, d.CatchUp.Policy = 2, OverlapQueue, CatchUpAll
	w := newWorld(t, at(t, "2026-01-01 00:30"), d)
	w.to("2026-01-01 03:00")
	w.wantRows("submitted 01T01:00:00 catch_up", "queued 01T02:00:00", "queued 01T03:00:00")
	w.end(0, StatusSucceeded)
	w.to("2026-01-01 03:10")
	w.wantRows("submitted 01T01:00:00 catch_up succeeded", "submitted 01T02:00:00 catch_up", "skipped 01T03:00:00 runs_used_up")
	want(t, "state", []any{w.rec.State, w.rec.Runs, w.rec.NextAt}, []any{Ended, int64(2), base.Time(0)})
	w.wantEvents(EventSkipped, EventEnded)
	w.to("2026-01-01 10:00")
	want(t, "submits", len(w.submits), 2)
	w.change(func(d *Definition) { d.MaxRuns = 3 })
	want(t, "state", w.rec.State, Active)
}

func TestT21_a_schedule_without_moments_ends_and_is_removed_later(t *testing.T) {
	t.Parallel()
	d := valid()
	d.At = []base.Time{at(t, "2026-01-01 01:00"), at(t, "2026-01-01 02:00")}
	w := newWorld(t, at(t, "2026-01-01 00:30"), d)
	w.to("2026-01-01 01:00")
	want(t, "state", w.rec.State, Active)
	w.end(0, StatusSucceeded)
	p := w.to("2026-01-01 02:00")
	want(t, "ended", []any{p.After.State, p.After.EndedAt, p.Remove}, []any{Ended, w.now, false})
	want(t, "alarm", p.After.TimerAt, w.now.Add(DefaultKeep))
	if p := w.to("2026-01-31 01:59:59"); p.Remove {
		t.Error("it is removed too early")
	}
	if p := w.to("2026-01-31 02:00:00"); !p.Remove {
		t.Error("it is not removed")
	}
}

func TestT24_a_moment_that_a_backfill_submitted_or_queued_does_not_fire_again(t *testing.T) {
	t.Parallel()
	for _, overlap := range []Overlap{OverlapAllow, OverlapQueue} {
		w := hourly(t, overlap)
		for _, moment := range []string{"2026-01-01 01:00", "2026-01-01 02:00"} {
			p, _, ok, err := Fire(&w.rec, w.spec, w.facts(), &Request{Moment: at(t, moment), Cause: CauseBackfill}, false)
			if !ok || err != nil {
				t.Fatal(ok, err)
			}
			w.apply(p)
		}
		w.to("2026-01-01 02:30")
		if got := w.rows(); len(got) != 2 || !slices.Contains([]string{"submitted 01T02:00:00 backfill", "queued 01T02:00:00"}, got[1]) {
			t.Errorf("%s: %q", overlap, got)
		}
	}
}
