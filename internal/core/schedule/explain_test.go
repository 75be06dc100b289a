package schedule

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/schedule/cron"
)

// wantBlockers fails unless these are the codes, and returns the blockers.
func wantBlockers(t tester, e Explanation, codes ...string) []Blocker {
	t.Helper()
	var got []string
	for _, b := range e.Blockers {
		got = append(got, b.Code)
		if !strings.HasSuffix(b.Text, ".") && b.Reason == "" {
			t.Fatalf("%q is no sentence", b.Text)
		}
	}
	want(t, "blockers", got, codes)
	if len(e.Blockers) > 0 && e.Sentence != e.Blockers[0].Text || e.Sentence == "" {
		t.Fatalf("the sentence is %q", e.Sentence)
	}
	return e.Blockers
}

func TestT45_what_is_in_the_way_now(t *testing.T) {
	t.Parallel()
	d := valid("0 * * * *")
	d.StartAt, d.EndAt, d.MaxRuns, d.Overlap = at(t, "2026-01-01"), at(t, "2026-01-01 12:30"), 3, OverlapQueue
	w := newWorld(t, at(t, "2025-12-31"), d)
	explain := func(change func(*Question), codes ...string) []Blocker {
		t.Helper()
		q := &Question{Now: w.now}
		if change != nil {
			change(q)
		}
		return wantBlockers(t, Explain(&w.rec, w.spec, q), codes...)
	}
	got := explain(nil, BlockBeforeStart, BlockNotDue)
	want(t, "start", []base.Time{got[0].At, got[1].At}, []base.Time{d.StartAt, at(t, "2026-01-01")})
	w.now = at(t, "2026-01-01")
	explain(nil) // it is due, and nothing is in its way
	explain(func(q *Question) { q.NoEngine, q.EngineSeen = true, w.now-5 }, BlockNoEngine)
	got = explain(func(q *Question) { q.Lane, q.LaneShut = "slow", true }, BlockLane)
	want(t, "lane", got[0].Lane, "slow")
	w.settle()
	got = explain(nil, BlockNotDue, BlockOverlap)
	want(t, "open", got[1].Firings[0].Target, w.rec.Open[0].Target)
	w.to("2026-01-01 01:00")
	w.to("2026-01-01 02:00")
	got = explain(nil, BlockNotDue, BlockOverlap, BlockQueued)
	want(t, "place", []any{got[2].Place, got[2].Firings[0].Moment}, []any{1, at(t, "2026-01-01 01:00")})
	p, _ := PauseSchedule(&w.rec, w.spec, w.facts(), "ana", "holiday")
	w.apply(p)
	got = explain(nil, BlockPaused, BlockOverlap, BlockQueued)
	want(t, "pause", []string{got[0].By, got[0].Reason}, []string{"ana", "holiday"})
	p, _ = Resume(&w.rec, w.spec, w.facts(), "ana", "")
	w.apply(p)
	for range 3 {
		w.end(0, StatusSucceeded)
		w.settle()
	}
	explain(nil, BlockRunsUsedUp)
	w.now = at(t, "2026-01-02")
	explain(nil, BlockAfterEnd, BlockRunsUsedUp)
}

func TestT45_what_became_of_a_moment(t *testing.T) {
	t.Parallel()
	d := valid("0 * * * *")
	d.JitterMS, d.Except = 30*base.Minute, []cron.Calendar{{Hour: "3"}, {Hour: "4"}}
	w := newWorld(t, at(t, "2026-01-01 00:30"), d)
	w.to("2026-01-01 02:59")
	w.to("2026-01-01 06:10")
	explain := func(moment string, codes ...string) []Blocker {
		t.Helper()
		q := &Question{Now: w.now, At: at(t, moment)}
		for _, f := range w.history {
			if f.Moment <= q.At && q.At <= max(f.Moment, f.Last) {
				q.Row = &f
			}
		}
		return wantBlockers(t, Explain(&w.rec, w.spec, q), codes...)
	}
	explain("2026-01-01 00:00", BlockNotYetCreated)
	got := explain("2026-01-01 04:00", BlockNoSuchMoment)
	want(t, "nearest", []any{got[0].Before, got[0].After, got[0].Except}, []any{at(t, "2026-01-01 02:00"), at(t, "2026-01-01 05:00"), "except[1]"})
	explain("2026-01-01 05:17", BlockNoSuchMoment)
	got = explain("2026-01-01 07:00", BlockNotDue)
	want(t, "due", got[0].At, w.spec.due(at(t, "2026-01-01 07:00"), w.rec.jitter()))
	got = explain("2026-01-01 01:00", BlockMissed)
	want(t, "policy", []any{got[0].Policy, got[0].WindowMS, got[0].Limit, got[0].LateMS}, []any{CatchUpLatest, base.Day, 100, 119 * base.Minute})
	got = explain("2026-01-01 02:00", BlockAlreadySubmitted)
	want(t, "target", got[0].Firings[0].Target, w.rec.Open[0].Target)
	explain("2026-01-01 05:00", BlockOverlap)
	w.end(0, StatusSucceeded)
	w.settle()
	w.refuse = func(*Start) Verdict { return Verdict{Err: base.Errorf(base.CodeBudgetClosed, "no"), Retryable: true} }
	w.to("2026-01-01 07:30")
	got = explain("2026-01-01 07:00", BlockQueued)
	want(t, "retry", []any{got[0].Reason, got[0].Tries, got[0].NotBefore}, []any{"budget_closed", 1, w.now + 2000})
	w.to("2026-01-03")
	got = explain("2026-01-01 07:00", BlockRefused)
	want(t, "refusal", []any{got[0].Reason, got[0].Tries}, []any{"budget_closed", 1})
}

func TestT45_a_reading_that_comes_twice_fires_at_the_earlier_instant(t *testing.T) {
	t.Parallel()
	d := valid("30 2 * * *")
	d.Timezone = "Europe/Berlin"
	w := newWorld(t, at(t, "2026-10-01"), d)
	got := wantBlockers(t, Explain(&w.rec, w.spec, &Question{Now: w.now, At: at(t, "2026-10-25 01:30")}), BlockNoSuchMoment)
	want(t, "change", []base.Time{got[0].Change, got[0].Before}, []base.Time{at(t, "2026-10-25 01:00"), at(t, "2026-10-25 00:30")})
}
