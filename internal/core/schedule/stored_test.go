package schedule

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/schedule/cron"
)

// fullRecord is a record with every part.
func fullRecord(t tester) Schedule {
	d := valid("0 * * * *")
	d.EveryMS, d.AnchorAt, d.Calendars, d.Except = 90_000, 5_000, []cron.Calendar{{Hour: "5", Comment: "x"}}, []cron.Calendar{{Year: "2030"}}
	d.At, d.StartAt, d.EndAt, d.MaxRuns, d.JitterMS = []base.Time{0, 1000}, 1, at(t, "2040-01-01"), 100, 1000
	d.Overlap, d.PauseAfterFailures, d.Template, d.Description, d.Tags, d.ManagedBy = OverlapQueue, 3, true, "text", base.Tags{"a": "b"}, "ci"
	d.CatchUp = CatchUp{Policy: CatchUpAll, WindowMS: base.Hour, Limit: 5}
	w := newWorld(t, at(t, "2026-01-01"), d)
	w.to("2026-01-01 01:00")
	w.to("2026-01-01 01:30")
	return w.rec
}

func TestW10_a_record_comes_back_and_another_is_refused(t *testing.T) {
	t.Parallel()
	full := fullRecord(t)
	want(t, "record", must[Schedule](t)(Decode(full.Encode())), full)
	if len(full.Queue) < 2 || len(full.Open) != 1 {
		t.Fatalf("%+v", full)
	}
	for name, change := range map[string]func(*Schedule){
		"no id":                      func(r *Schedule) { r.ID = base.UUID{} },
		"no namespace":               func(r *Schedule) { r.Namespace = "" },
		"a bad name":                 func(r *Schedule) { r.Name = " " },
		"no revision":                func(r *Schedule) { r.Revision = 0 },
		"no zone":                    func(r *Schedule) { r.Definition.Timezone = "" },
		"a bad definition":           func(r *Schedule) { r.Definition.JitterMS = -1 },
		"no state":                   func(r *Schedule) { r.State = "" },
		"paused without a principal": func(r *Schedule) { r.State, r.NextAt, r.NextDueAt = Paused, 0, 0 },
		"ended without time":         func(r *Schedule) { r.State, r.NextAt, r.NextDueAt = Ended, 0, 0 },
		"active without next":        func(r *Schedule) { r.NextAt, r.NextDueAt = 0, 0 },
		"a next that is settled":     func(r *Schedule) { r.NextAt = r.ThroughAt },
		"due before the moment":      func(r *Schedule) { r.NextDueAt = r.NextAt - 1 },
		"negative counts":            func(r *Schedule) { r.Counts.Missed = -1 },
		"more runs than submits":     func(r *Schedule) { r.Runs = r.Counts.Submitted + 1 },
		"an open one that waits":     func(r *Schedule) { r.Open[0] = r.Queue[0] },
		"a waiting one that is open": func(r *Schedule) { r.Queue[0] = r.Open[0] },
		"a queue out of order":       func(r *Schedule) { slices.Reverse(r.Queue) },
		"too much open":              func(r *Schedule) { r.Open = many(MaxOpen+1, r.Open[0]) },
		"too long a queue":           func(r *Schedule) { r.Queue = many(MaxQueue+1, r.Queue[0]) },
		"a run that is none":         func(r *Schedule) { r.Run = &Firing{Cause: CauseTimer, Outcome: Skipped} },
	} {
		r := must[Schedule](t)(Decode(full.Encode()))
		change(&r)
		if _, err := Decode(r.Encode()); base.CodeOf(err) != base.CodeCorruption {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, data := range []string{"", "null", "{}", "[]", strings.Replace(string(full.Encode()), `"v":1`, `"v":2`, 1)} {
		if _, err := Decode([]byte(data)); base.CodeOf(err) != base.CodeCorruption {
			t.Errorf("%.20s: %v", data, err)
		}
	}
}

func TestW10_a_row_comes_back_and_another_is_refused(t *testing.T) {
	t.Parallel()
	target := base.IDOf(base.UUID{1})
	good := []Firing{
		{Key: Key{Moment: 5000}, Cause: CauseTimer, Outcome: Submitted, Target: target, Status: "failed", EndedAt: 6},
		{Key: Key{Moment: 5000, Call: base.UUID{2}}, Cause: CauseManual, Outcome: Skipped, Reason: ReasonOverlap, Blocker: target, By: "ana", Overlap: OverlapSkip},
		{Key: Key{Moment: 5000, Run: true}, Cause: CauseTimer, Outcome: Missed, Last: 7000, Count: 3, AtLeast: true},
		{Key: Key{Moment: 5000}, Cause: CauseBackfill, Outcome: Retrying, NotBefore: 9, Tries: 2, Reason: "rate_limited"},
	}
	for _, f := range good {
		want(t, "row", must[Firing](t)(DecodeFiring(f.Encode())), f)
	}
	for name, f := range map[string]Firing{
		"no cause":                  {Outcome: Skipped},
		"no outcome":                {Cause: CauseTimer},
		"submitted without target":  {Cause: CauseTimer, Outcome: Submitted},
		"skipped with a target":     {Cause: CauseTimer, Outcome: Skipped, Target: target},
		"ended without time":        {Cause: CauseTimer, Outcome: Submitted, Target: target, Status: "failed"},
		"retried without time":      {Cause: CauseTimer, Outcome: Retrying},
		"a run of nothing":          {Key: Key{Run: true}, Cause: CauseTimer, Outcome: Missed},
		"a run of what was started": {Key: Key{Run: true}, Cause: CauseTimer, Outcome: Refused, Count: 1, Last: 1},
		"a moment before 1970":      {Key: Key{Moment: -1}, Cause: CauseTimer, Outcome: Skipped},
	} {
		if _, err := DecodeFiring(f.Encode()); base.CodeOf(err) != base.CodeCorruption {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestT24_keys_sort_as_their_texts(t *testing.T) {
	t.Parallel()
	var keys []Key
	for _, moment := range []base.Time{0, 999, 1000, 1_767_225_600_000, maxInstant} {
		for _, call := range []base.UUID{{}, {1}, {2}} {
			for _, run := range []bool{false, true} {
				keys = append(keys, Key{Moment: moment, Call: call, Run: run})
			}
		}
	}
	slices.SortFunc(keys, Key.Compare)
	for i, k := range keys {
		if back, ok := ParseKey(k.Text()); !ok || back != k {
			t.Errorf("%s is %+v", k.Text(), back)
		}
		if i > 0 && keys[i-1].Moment != k.Moment && keys[i-1].Text() >= k.Text() {
			t.Errorf("%s comes before %s", keys[i-1].Text(), k.Text())
		}
	}
	for _, text := range []string{"", "5", "0000000005000.", "0000000005000x", "-000000005000", "0000000005000.01890A5D-ac96-774b-bcce-b302099a8057"} {
		if k, ok := ParseKey(text); ok {
			t.Errorf("%q is %+v", text, k)
		}
	}
}

func FuzzDecode(f *testing.F) {
	r := fullRecord(f)
	f.Add(r.Encode())
	f.Add([]byte(`{"v":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode(data)
		if err != nil {
			wantCode(t, err, base.CodeCorruption, "")
			return
		}
		again := must[Schedule](t)(Decode(r.Encode()))
		if !reflect.DeepEqual(again, r) {
			t.Fatalf("%+v is read as %+v", r, again)
		}
		spec, err := Parse(r.Definition)
		if err != nil {
			wantCode(t, err, base.CodeInvalidSchedule, "")
			return
		}
		Settle(&r, spec, &Facts{Now: r.ThroughAt + 1000, Submit: func(*Start) Verdict { return Verdict{Target: base.IDOf(base.UUID{5})} }})
	})
}

func FuzzDecodeFiring(f *testing.F) {
	f.Add((&Firing{Cause: CauseTimer, Outcome: Skipped, Reason: ReasonOverlap}).Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		row, err := DecodeFiring(data)
		if err != nil {
			wantCode(t, err, base.CodeCorruption, "")
			return
		}
		want(t, "row", must[Firing](t)(DecodeFiring(row.Encode())), row)
	})
}
