package core

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// puzzle is an execution with everything around it that may keep it waiting.
type puzzle struct {
	*story
	c  *scene
	in ExplainInput
}

const puzzlePolicy = `{"quotas":[{"quota":"a"},{"quota":"b","key":"k"}],"routing_requirements":{"required_capabilities":["gpu","eu"]}}`

// newPuzzle is a ready execution that nothing keeps waiting but that was not claimed yet.
func newPuzzle(t tester) *puzzle {
	s := begin(t, puzzlePolicy)
	c := newScene(quotaOf("a", 2, 0), quotaOf("b", 0, 1))
	lane := &Lane{Name: "default", Settings: LaneSettings{State: LaneActive, MaxConcurrent: 2}}
	p := &puzzle{story: s, c: c, in: ExplainInput{Lane: lane, Room: c.room, Leases: map[string]int{}, Holders: map[string][]base.ID{}}}
	p.in.Workers = []Worker{p.worker("w-1", "eu", "gpu")}
	return p
}

func (p *puzzle) worker(instance string, capabilities ...string) Worker {
	return Worker{
		WorkerID: "w", InstanceID: instance, Lanes: []string{"default"}, Capabilities: capabilities, MaxConcurrent: 2,
		LivenessTTLMS: 30 * base.Second, LastSeen: p.now,
	}
}

func (p *puzzle) explain() Explanation {
	p.t.Helper()
	p.in.Now, p.in.Execution = p.now, p.x
	view, err := p.x.SuspendedView(&p.d)
	if err != nil {
		p.t.Fatalf("%v", err)
	}
	p.in.Suspended = view
	return Explain(p.in)
}

func codesOf(e *Explanation) (codes []string) {
	for _, b := range e.Blockers {
		codes = append(codes, b.Code)
	}
	return codes
}

// hindrance is one cause of S57: how it comes about, and what the explanation says of it.
type hindrance struct {
	code    string
	make    func(p *puzzle)
	message string
	data    string
	since   base.Millis // after the story's beginning; -1: absent
	until   base.Millis
}

func hindrances() []hindrance {
	return []hindrance{
		{
			BlockerSuspended, func(p *puzzle) {
				const condition = `{"type":"single","waitpoint_key":"boss","name":"go"}`
				must[SuspendAnswer](p.t)(p.suspendFor(p.claim(), condition, bound(fresh("boss")...)))
			},
			`It is suspended and waits for signal "go" at waitpoint boss (0 of 1).`, `"signals":[{"name":"go","waitpoint_keys":["boss"],"present":0,"missing":1}]`, 0, -1,
		},
		{
			BlockerDelay, func(p *puzzle) { p.delayFor(base.Minute) },
			`It goes on after a delay until 2023-11-14T22:14:20.000Z.`, `{"reason":"waiting_for_resume_delay"}`, 0, base.Minute,
		},
		{
			BlockerOperatorHold, func(p *puzzle) { _, _ = p.hold() },
			`holds it back since 2023-11-14T22:13:20.000Z`, `"by":`, 0, -1,
		},
		{
			BlockerGrant, func(p *puzzle) { p.c.grant(p.story, 5*base.Second) },
			`It is granted to worker w, instance w-1, who may claim it until 2023-11-14T22:13:25.000Z.`, `{"worker_id":"w","worker_instance_id":"w-1"}`, 0, 5 * base.Second,
		},
		{
			BlockerLaneState, func(p *puzzle) { p.in.Lane.Settings.State, p.in.Lane.Since = LanePaused, p.now },
			`Lane "default" is paused since 2023-11-14T22:13:20.000Z: nothing is taken from it.`, `{"lane":"default","state":"paused"}`, 0, -1,
		},
		{
			BlockerLaneCap, func(p *puzzle) { p.in.LaneInUse = 2 },
			`Lane "default" is at its cap: 2 of 2 are granted or running.`, `{"lane":"default","in_use":2,"limit":2}`, -1, -1,
		},
		{
			BlockerNoLiveWorker, func(p *puzzle) { p.in.Workers[0].LastSeen = p.now.Add(-base.Hour) },
			`No live worker takes work from lane "default".`, `{"lane":"default","on_lane":0,"draining":0}`, -1, -1,
		},
		{
			BlockerBudget, func(p *puzzle) {
				hard := int64(10)
				p.c.room.Budgets.Add(&Budget{ID: base.UUID{9}, Name: "month", NextResetAt: p.now.Add(base.Day), Dimensions: map[string]*BudgetDimension{
					"tokens": {Hard: &hard, Used: 8, Reserved: 2},
				}})
				p.in.Set = []base.UUID{{9}}
				p.in.Holders[BudgetKey(base.UUID{9})] = []base.ID{p.x.ID}
			},
			`Budget "month" has 0 tokens left and it needs 1: of 10, 8 are used and 2 reserved; it resets at 2023-11-15T22:13:20.000Z.`,
			`"dimension":"tokens","need":1,"available":0,"used":8,"reserved":2,"limit":10,"next_reset_at":"2023-11-15T22:13:20.000Z","resets_at":"2023-11-15T22:13:20.000Z","holders":["`, -1, base.Day,
		},
		{
			BlockerRate, func(p *puzzle) {
				if p.c.room.Rates["rate:a"] == nil {
					p.c.room.Rates["rate:a"] = &RateWindow{}
				}
				p.c.room.Rates["rate:a"].Take(p.now)
				p.c.room.Rates["rate:a"].Take(p.now)
			},
			`Quota "a" lets 2 start in 1m, and 2 did: it has room again at 2023-11-14T22:14:20.000Z.`,
			`{"key":"rate:a","quota":"a","admissions":2,"limit":2,"window_ms":60000,"next_free":"2023-11-14T22:14:20.000Z"}`, -1, base.Minute,
		},
		{
			BlockerConcurrency, func(p *puzzle) {
				p.c.room.Slots["slots:b/k"]++
				p.in.Holders["slots:b/k"] = []base.ID{p.x.ID}
			},
			`All slots of quota "b" for "k" are taken: 1 in use, 1 allowed.`, `"in_use":1,"limit":1,"holders":["`, -1, -1,
		},
		{
			BlockerWorkersBusy, func(p *puzzle) { p.in.Leases["w-1"] = 2 },
			`The only worker that could take it is busy: 2 of 2 places are taken.`, `{"matching":1,"max_concurrent":2,"leases":2}`, -1, -1,
		},
		{
			BlockerInLine, func(p *puzzle) { p.in.Line.Ahead = 3 },
			`There are 3 ready executions of lane "default" before it.`, `{"lane":"default","ahead":3}`, 0, -1,
		},
	}
}

func TestSC15_each_cause_alone_is_the_one_blocker_and_carries_its_numbers(t *testing.T) {
	t.Parallel()
	for _, h := range hindrances() {
		t.Run(h.code, func(t *testing.T) {
			t.Parallel()
			p := newPuzzle(t)
			h.make(p)
			e := p.explain()
			if diff := cmp.Diff([]string{h.code}, codesOf(&e)); diff != "" {
				t.Fatal(diff)
			}
			b := e.Blockers[0]
			if !strings.Contains(b.Message, h.message) || e.Summary != b.Message {
				t.Errorf("says %q, in short %q", b.Message, e.Summary)
			}
			if !json.Valid(b.Data) || !strings.Contains(string(b.Data), h.data) {
				t.Errorf("data %s", b.Data)
			}
			if want := momentAfter(h.since); b.Since != want {
				t.Errorf("since %s, want %s", b.Since, want)
			}
			if want := momentAfter(h.until); b.Until != want {
				t.Errorf("until %s, want %s", b.Until, want)
			}
		})
	}
}

func momentAfter(ms base.Millis) base.Time {
	if ms < 0 {
		return 0
	}
	return storyStart.Add(ms)
}

func TestSC15_pairs_of_causes_are_both_told_in_the_order_of_the_table(t *testing.T) {
	t.Parallel()
	all := hindrances()
	for i, first := range all {
		for _, second := range all[i+1:] {
			t.Run(first.code+" "+second.code, func(t *testing.T) {
				t.Parallel()
				exclusive := []string{BlockerSuspended, BlockerDelay, BlockerOperatorHold, BlockerGrant}
				if slices.Contains(exclusive, first.code) && (slices.Contains(exclusive, second.code) || second.code == BlockerInLine) {
					return // nothing is in two of these statuses, and only what is ready stands in line
				}
				if first.code == BlockerNoLiveWorker && second.code == BlockerWorkersBusy {
					return // who is gone is not busy
				}
				if first.code == BlockerSuspended && second.code == BlockerRate {
					return // to resume needs no admission of a rate
				}
				p := newPuzzle(t)
				first.make(p)
				second.make(p)
				e := p.explain()
				if diff := cmp.Diff([]string{first.code, second.code}, codesOf(&e)); diff != "" {
					t.Fatal(diff)
				}
				if !strings.HasSuffix(e.Summary, "And 1 other cause keeps it waiting.") {
					t.Error(e.Summary)
				}
			})
		}
	}
}

func TestS56_what_waits_has_always_a_blocker_and_what_runs_or_is_over_has_none(t *testing.T) {
	t.Parallel()
	inEveryStatus(t, `{}`, func(t *testing.T, s *story, status Status) {
		p := newPuzzle(t)
		p.story, p.in.Workers[0].LastSeen = s, s.now
		e := p.explain()
		if waits := status != Running && !status.Terminal(); (len(e.Blockers) > 0) != waits || e.Summary == "" {
			t.Errorf("%s: %v, %q", status, codesOf(&e), e.Summary)
		}
		if (e.Running != nil) != (status == Running) || (e.Outcome != "") != status.Terminal() {
			t.Errorf("%s: running %+v, outcome %q", status, e.Running, e.Outcome)
		}
	})
}

func TestS58_next_eligible_is_the_latest_known_time_and_absent_beside_causes_without_one(t *testing.T) {
	t.Parallel()
	by := map[string]hindrance{}
	for _, h := range hindrances() {
		by[h.code] = h
	}
	for _, c := range []struct {
		causes []string
		want   base.Millis
	}{
		{nil, -1},
		{[]string{BlockerRate}, base.Minute},
		{[]string{BlockerDelay, BlockerRate}, base.Minute},
		{[]string{BlockerBudget, BlockerRate}, base.Day},
		{[]string{BlockerGrant}, 5 * base.Second},
		{[]string{BlockerRate, BlockerWorkersBusy, BlockerInLine}, base.Minute},
		{[]string{BlockerRate, BlockerConcurrency}, -1},
		{[]string{BlockerDelay, BlockerLaneState}, -1},
		{[]string{BlockerSuspended}, -1},
		{[]string{BlockerNoLiveWorker, BlockerRate}, -1},
	} {
		p := newPuzzle(t)
		for _, code := range c.causes {
			by[code].make(p)
		}
		if e := p.explain(); e.NextEligibleAt != momentAfter(c.want) {
			t.Errorf("%v: %s", c.causes, e.NextEligibleAt)
		}
	}
}

func TestSI14_the_first_cause_of_a_refused_execution_is_the_one_that_the_next_claim_would_name(t *testing.T) {
	t.Parallel()
	for _, full := range []string{"rate:a", "slots:b/k"} {
		p := newPuzzle(t)
		p.c.room.Rates["rate:a"] = windowOf(p.now, p.now)
		if full != "rate:a" {
			p.c.room.Rates = map[string]*RateWindow{}
		}
		p.c.room.Slots["slots:b/k"] = 1
		if key := p.c.claim(p.story); key != full {
			t.Fatalf("refused by %q", key)
		}
		e := p.explain()
		if first := e.Blockers[0]; first.Key != full || first.Since != p.x.StatusSince {
			t.Errorf("refused by %s: %+v", full, first)
		}
	}
}

func TestS59_the_five_nearest_live_workers_are_shown_with_what_keeps_them_away(t *testing.T) {
	t.Parallel()
	p := newPuzzle(t)
	elsewhere, other, draining, full := p.worker("e", "eu", "gpu"), p.worker("o", "eu"), p.worker("d", "eu", "gpu"), p.worker("f", "eu", "gpu")
	elsewhere.Lanes, elsewhere.Kinds = []string{"slow"}, []string{"mail"}
	other.Namespaces = []string{"acme"}
	draining.Draining = true
	p.in.Leases["f"] = 2
	gone, unable := p.worker("g", "eu", "gpu"), p.worker("n")
	gone.LastSeen = p.now.Add(-base.Hour)
	p.in.Workers = []Worker{elsewhere, other, draining, full, gone, unable, p.worker("w-1", "eu", "gpu")}
	want := CandidateWorkers{Live: 6, OnLane: 5, Matching: 3, Nearest: []CandidateWorker{
		{"w", "w-1", nil},
		{"w", "d", []string{UnmetDraining}},
		{"w", "f", []string{UnmetNoPlace}},
		{"w", "e", []string{UnmetLane, UnmetKind}},
		{"w", "n", []string{UnmetCapability + "eu", UnmetCapability + "gpu"}},
	}}
	if diff := cmp.Diff(want, p.explain().Workers); diff != "" {
		t.Error(diff)
	}
}

func TestS57_a_fleet_that_cannot_take_it_is_told_with_what_is_missing(t *testing.T) {
	t.Parallel()
	p := newPuzzle(t)
	p.in.Workers = []Worker{p.worker("a", "eu"), p.worker("b", "gpu"), p.worker("c")}
	e := p.explain()
	if diff := cmp.Diff([]string{BlockerNoCapableWorker}, codesOf(&e)); diff != "" {
		t.Fatal(diff)
	}
	const data = `{"lane":"default","on_lane":3,"match_namespace":3,"match_kind":3,"match_capabilities":0,"missing_capabilities":["gpu"]}`
	if got := string(e.Blockers[0].Data); got != data {
		t.Error(got)
	}
	p.in.Workers = []Worker{p.worker("a", "eu", "gpu")}
	p.in.Workers[0].Draining = true
	e = p.explain()
	if got := e.Blockers[0].Message; got != `No live worker takes work from lane "default": 1 is draining.` {
		t.Error(got)
	}
}

func TestS45_an_unreadable_record_is_told_with_the_moment_of_the_next_try(t *testing.T) {
	t.Parallel()
	p := newPuzzle(t)
	p.c.room.Unreadable["rate:a"] = true
	p.c.claim(p.story)
	e := p.explain()
	b := e.Blockers[0]
	if b.Message != "The record of rate:a cannot be read; it is tried again at 2023-11-14T22:14:20.000Z." || e.NextEligibleAt != 0 {
		t.Errorf("%q, eligible at %s", b.Message, e.NextEligibleAt)
	}
}

func TestS57_a_grant_is_judged_by_what_its_end_would_leave(t *testing.T) {
	t.Parallel()
	p := newPuzzle(t)
	p.c.grant(p.story, 5*base.Second) // takes the only slot of b, and gives it back
	e := p.explain()
	if diff := cmp.Diff([]string{BlockerGrant}, codesOf(&e)); diff != "" {
		t.Error(diff)
	}
	again := p.explain()
	if diff := cmp.Diff(e, again); diff != "" {
		t.Error("to look has changed something: " + diff)
	}
}

func TestS57_the_history_tells_each_change_of_status(t *testing.T) {
	t.Parallel()
	s := begin(t, `{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":1000}}}`)
	s.claim()
	must[FailAnswer](t)(s.fail(s.fence(), ""))
	s.pass(1000)
	_, _ = s.hold()
	_, _ = s.releaseHold()
	s.grant(base.Second)
	s.pass(1000)
	s.claim()
	must[LeaveAnswer](t)(s.release(s.fence()))
	must[SuspendAnswer](t)(s.suspendFor(s.claim(), `{"type":"single","waitpoint_key":"boss"}`, bound(fresh("boss")...)))
	var told []string
	for _, change := range ChangesOf(s.events) {
		told = append(told, change.Status.String()+" "+change.Reason.String())
	}
	want := []string{
		"ready waiting_for_worker", "running none", "delayed waiting_for_retry_backoff", "ready waiting_for_worker", "blocked paused_by_operator",
		"ready waiting_for_worker", "granted waiting_for_worker", "ready waiting_for_worker", "running none", "ready waiting_for_worker", "running none",
		"suspended waiting_for_signal",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}
