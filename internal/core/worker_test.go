package core

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// someone is who registers in these tests.
var someone = Registrant{Name: "w"}

func at(now base.Time) *Effects { return &Effects{Now: now, Actor: Actor{"worker", "w"}} }

func sampleRegistration(t *testing.T) Registration {
	t.Helper()
	r := Registration{WorkerID: "render", InstanceID: "render-1", Lanes: []string{"b", "a"}, Capabilities: []string{"gpu"}, LivenessTTLMS: 3000}
	if err := r.Normalize(); err != nil {
		t.Fatal(err)
	}
	return r
}

func registeredWorker(t *testing.T, now base.Time) *Worker {
	t.Helper()
	w, outcome, changed, err := RegisterWorker(at(now), nil, sampleRegistration(t), someone)
	if err != nil || outcome != WorkerRegistered || !changed {
		t.Fatalf("%q, %v, %v", outcome, changed, err)
	}
	return &w
}

func kinds(fx *Effects) string {
	var all []string
	for _, e := range fx.Events {
		all = append(all, e.Kind)
	}
	return strings.Join(all, " ")
}

func TestS49_registrations_are_checked_and_get_their_defaults(t *testing.T) {
	t.Parallel()
	r := Registration{WorkerID: "w", InstanceID: "w-1", Capabilities: []string{"b", "a", "b"}, Kinds: []string{"y", "x", "y"}}
	expect(t, r.Normalize(), "", "")
	want := Registration{
		WorkerID: "w", InstanceID: "w-1", Lanes: []string{"default"}, LivenessTTLMS: 30_000,
		Capabilities: []string{"a", "b"}, Kinds: []string{"x", "y"},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	labels := func(n int) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprint("l", i)] = ""
		}
		return all
	}
	cases := []struct {
		field  string
		code   base.Code
		change func(*Registration)
	}{
		{"worker_id", base.CodeInvalidArgument, func(r *Registration) { r.WorkerID = "" }},
		{"worker_instance_id", base.CodeInvalidArgument, func(r *Registration) { r.InstanceID = "a b" }},
		{"namespaces[1]", base.CodeInvalidArgument, func(r *Registration) { r.Namespaces = []string{"a", "-"} }},
		{"lanes[0]", base.CodeInvalidArgument, func(r *Registration) { r.Lanes = []string{""} }},
		{"lanes", base.CodeInvalidArgument, func(r *Registration) { r.Lanes = make([]string, 65) }},
		{"kinds[0]", base.CodeInvalidArgument, func(r *Registration) { r.Kinds = []string{"a b"} }},
		{"max_concurrent", base.CodeInvalidArgument, func(r *Registration) { r.MaxConcurrent = -1 }},
		{"liveness_ttl_ms", base.CodeInvalidArgument, func(r *Registration) { r.LivenessTTLMS = 999 }},
		{"liveness_ttl_ms", base.CodeInvalidArgument, func(r *Registration) { r.LivenessTTLMS = 3_600_001 }},
		{"version", base.CodeInvalidArgument, func(r *Registration) { r.Version = strings.Repeat("v", 129) }},
		{"labels", base.CodeInvalidArgument, func(r *Registration) { r.Labels = labels(65) }},
		{"labels.a", base.CodeInvalidArgument, func(r *Registration) { r.Labels = map[string]string{"a": "\xff"} }},
		{"capabilities", base.CodeInvalidCapabilities, func(r *Registration) { r.Capabilities = []string{"a,b"} }},
		{"", "", func(r *Registration) { r.LivenessTTLMS = 1000 }},
		{"", "", func(r *Registration) { r.LivenessTTLMS = 3_600_000 }},
		{"", "", func(r *Registration) { r.Labels = labels(64) }},
	}
	for _, c := range cases {
		r := sampleRegistration(t)
		c.change(&r)
		expect(t, r.Normalize(), c.code, c.field)
	}
}

func TestS49_a_new_instance_is_registered_and_told(t *testing.T) {
	t.Parallel()
	fx := at(noon)
	w, _, _, err := RegisterWorker(fx, nil, sampleRegistration(t), someone)
	expect(t, err, "", "")
	if w.RegisteredAt != noon || w.LastSeen != noon || !w.Live(noon) || w.ExpiresAt() != noon+3000 {
		t.Errorf("%+v", w)
	}
	want := []Event{{
		Kind: "worker.registered", At: noon, AttemptIndex: -1, InstanceID: "render-1", Actor: fx.Actor,
		Data: eventdata.OfJSON([]byte(`{"worker_id":"render","worker_instance_id":"render-1","lanes":["a","b"],"capabilities":["gpu"]}`)),
	}}
	if diff := cmp.Diff(want, fx.Events, cmp.Comparer(sameText)); diff != "" {
		t.Error(diff)
	}
}

func TestS49_a_known_instance_is_refreshed(t *testing.T) {
	t.Parallel()
	w := registeredWorker(t, noon)
	w.Draining = true

	fx := at(noon + 100)
	same, outcome, changed, err := RegisterWorker(fx, w, sampleRegistration(t), someone)
	if err != nil || outcome != WorkerRefreshed || changed || kinds(fx) != "" || !cmp.Equal(same, *w) {
		t.Errorf("a repeat: %q, changed %v, %v, events %q", outcome, changed, err, kinds(fx))
	}

	r := sampleRegistration(t)
	r.MaxConcurrent = 9
	fx = at(noon + 100)
	other, outcome, changed, _ := RegisterWorker(fx, w, r, someone)
	if outcome != WorkerRefreshed || !changed || kinds(fx) != "worker.registered" {
		t.Errorf("other settings: %q, changed %v, events %q", outcome, changed, kinds(fx))
	}
	if other.MaxConcurrent != 9 || other.RegisteredAt != noon || other.LastSeen != noon+100 || !other.Draining {
		t.Errorf("%+v", other)
	}
}

func TestS49_an_instance_live_under_another_worker_is_taken(t *testing.T) {
	t.Parallel()
	w := registeredWorker(t, noon)
	r := sampleRegistration(t)
	r.WorkerID = "thief"
	fx := at(noon + 2999)
	_, _, _, err := RegisterWorker(fx, w, r, someone)
	expect(t, err, base.CodeInstanceIDTaken, "worker_instance_id")
	if kinds(fx) != "" {
		t.Errorf("a refusal emits %q", kinds(fx))
	}
	heir, outcome, _, err := RegisterWorker(at(noon+3000), w, r, someone)
	if err != nil || outcome != WorkerRegistered || heir.RegisteredAt != noon+3000 {
		t.Errorf("after the lapse: %+v, %q, %v", heir, outcome, err)
	}
}

func TestS50_last_seen_is_written_at_most_once_in_a_third_of_the_ttl(t *testing.T) {
	t.Parallel()
	w := registeredWorker(t, noon)
	for _, step := range []struct {
		now     base.Time
		changed bool
	}{{noon, false}, {noon - 5, false}, {noon + 999, false}, {noon + 1000, true}, {noon + 1999, false}, {noon + 4999, false}, {noon + 3999, true}} {
		if got := w.Seen(step.now); got != step.changed {
			t.Fatalf("seen at +%d: changed %v", step.now-noon, got)
		}
	}
}

func TestS51_a_lapsed_or_dead_instance_is_not_seen_until_it_registers_again(t *testing.T) {
	t.Parallel()
	w := registeredWorker(t, noon)
	if !w.Live(noon+2999) || w.Live(noon+3000) || w.Seen(noon+3000) {
		t.Error("liveness does not end at last_seen + ttl")
	}
	w.MarkDead(at(noon+10), "")
	if w.Live(noon+11) || w.Seen(noon+2000) {
		t.Error("a dead instance is live")
	}
	fx := at(noon + 20)
	back, outcome, changed, err := RegisterWorker(fx, w, sampleRegistration(t), someone)
	if err != nil || outcome != WorkerRefreshed || !changed || !back.Live(noon+20) || back.RegisteredAt != noon || kinds(fx) != "worker.registered" {
		t.Errorf("%+v, %q, %v, %q", back, outcome, err, kinds(fx))
	}
}

func TestS50_a_claim_brings_a_lapsed_instance_back_and_a_marked_one_never(t *testing.T) {
	t.Parallel()
	w := registeredWorker(t, noon)
	w.Draining = true
	fx := at(noon + 1000)
	if w.Claimed(at(noon+999), someone) || !w.Claimed(fx, someone) || kinds(fx) != "" || w.LastSeen != noon+1000 {
		t.Errorf("a live instance: %+v, events %q", w, kinds(fx))
	}
	w.Lapse(at(noon + 5000))
	fx = at(noon + 6000)
	if !w.Claimed(fx, someone) || !w.Live(noon+6000) || w.LastSeen != noon+6000 || w.RegisteredAt != noon || !w.Draining || kinds(fx) != "worker.registered" {
		t.Errorf("a lapsed instance: %+v, events %q", w, kinds(fx))
	}
	w.MarkDead(at(noon+6001), "")
	if w.Claimed(at(noon+9999), someone) || w.Live(noon+9999) {
		t.Errorf("a marked instance: %+v", w)
	}
}

func TestSI13_an_instance_claims_for_its_worker_while_it_is_live(t *testing.T) {
	t.Parallel()
	w := registeredWorker(t, noon)
	expect(t, w.CheckClaim(noon, "render", someone), "", "")
	expect(t, w.CheckClaim(noon+2999, "thief", someone), base.CodeInstanceIDTaken, "worker_instance_id")
	expect(t, w.CheckClaim(noon+3000, "thief", someone), "", "")
	w.MarkDead(at(noon+10), "")
	expect(t, w.CheckClaim(noon+20, "render", someone), base.CodeWorkerNotRegistered, "")
}

func TestS52_marking_dead_is_told_once(t *testing.T) {
	t.Parallel()
	w := registeredWorker(t, noon)
	fx := at(noon + 7)
	if !w.MarkDead(fx, "node lost") || w.MarkDead(fx, "again") || w.Lapse(at(noon+9999)) || !w.Marked() {
		t.Error("a second death changed something")
	}
	want := `{"worker_id":"render","worker_instance_id":"render-1","reason":"marked","detail":"node lost","last_seen":"2026-01-01T00:00:00.000Z"}`
	if kinds(fx) != "worker.dead" || string(fx.Events[0].Data.JSON()) != want {
		t.Errorf("%q: %s", kinds(fx), fx.Events[0].Data.JSON())
	}
}

func TestS55_a_lapse_is_told_once_and_marking_afterwards_is_silent(t *testing.T) {
	t.Parallel()
	w := registeredWorker(t, noon)
	fx := at(noon + 2999)
	if w.Lapse(fx) {
		t.Error("a live instance lapsed")
	}
	fx.Now = noon + 3500
	if !w.Lapse(fx) || w.Lapse(fx) || w.Marked() || w.Dead.At != noon+3000 {
		t.Errorf("%+v", w.Dead)
	}
	if !w.MarkDead(fx, "") || !w.Marked() {
		t.Error("a lapsed instance cannot be marked")
	}
	if kinds(fx) != "worker.dead" || !strings.Contains(string(fx.Events[0].Data.JSON()), `"reason":"lapsed"`) {
		t.Errorf("%q", kinds(fx))
	}
}

func TestS53_drain_changes_and_is_told_once_each_way(t *testing.T) {
	t.Parallel()
	w := registeredWorker(t, noon)
	fx := at(noon)
	if w.SetDrain(fx, false, "") || !w.SetDrain(fx, true, "") || w.SetDrain(fx, true, "") || !w.SetDrain(fx, false, "") {
		t.Error("drain does not follow the switch")
	}
	if kinds(fx) != "worker.draining worker.draining" || !strings.HasSuffix(string(fx.Events[0].Data.JSON()), `"on":true}`) {
		t.Errorf("%q %s", kinds(fx), fx.Events[0].Data.JSON())
	}
}

func TestS53_an_instance_that_leaves_drains_until_it_registers_again(t *testing.T) {
	t.Parallel()
	w := registeredWorker(t, noon)
	fx := at(noon)
	if !w.Leave(fx) || w.Leave(fx) || !w.Draining || kinds(fx) != "worker.draining" {
		t.Errorf("leaving: %+v, %q", w, kinds(fx))
	}
	back, _, changed, err := RegisterWorker(at(noon+1), w, sampleRegistration(t), someone)
	if err != nil || !changed || back.Draining || back.Leaving {
		t.Errorf("registered again: %+v, changed %v, %v", back, changed, err)
	}
	lapsed := *w
	if late := at(noon + 5000); !lapsed.Claimed(late, someone) || lapsed.Draining || lapsed.Leaving {
		t.Errorf("live again by a claim: %+v", lapsed)
	}

	if !w.SetDrain(fx, true, "") || kinds(fx) != "worker.draining" {
		t.Errorf("an operator's drain of one that leaves: %+v, %q", w, kinds(fx))
	}
	if w.Leave(fx) || w.Leaving {
		t.Error("leaving takes the place of an operator's drain")
	}
	if back, _, _, _ := RegisterWorker(at(noon+1), w, sampleRegistration(t), someone); !back.Draining {
		t.Error("a registration ends an operator's drain")
	}
}

func TestS53_U103_an_owners_drain_ends_when_the_instance_changes_hands_and_an_operators_stays(t *testing.T) {
	t.Parallel()
	first, second := Registrant{Name: "w", KeyID: "first"}, Registrant{Name: "w", KeyID: "second"}
	const operator = ""
	for name, c := range map[string]struct {
		drains []string // by whom, one after the other
		kept   bool
	}{
		"by the owner":                      {[]string{first.Credential()}, false},
		"by an operator":                    {[]string{operator}, true},
		"by the owner, then by an operator": {[]string{first.Credential(), operator}, true},
		"by an operator, then by the owner": {[]string{operator, first.Credential()}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, _, err := RegisterWorker(at(noon), nil, sampleRegistration(t), first)
			if err != nil {
				t.Fatal(err)
			}
			for _, by := range c.drains {
				w.SetDrain(at(noon), true, by)
			}
			lapse := at(noon.Add(base.Hour))
			if !w.Lapse(lapse) {
				t.Fatal("it does not lapse")
			}
			claimed := w
			if back, _, _, err := RegisterWorker(lapse, &w, sampleRegistration(t), first); err != nil || !back.Draining {
				t.Errorf("its owner came back to %+v, %v", back, err)
			}
			if taken, _, _, err := RegisterWorker(lapse, &w, sampleRegistration(t), second); err != nil || taken.Draining != c.kept {
				t.Errorf("another took it over: %+v, %v", taken, err)
			}
			if claimed.Claimed(lapse, second); claimed.Draining != c.kept {
				t.Errorf("another took it over by a claim: %+v", claimed)
			}
		})
	}
}

func TestS54_the_record_is_looked_at_when_it_lapses_and_goes_a_day_after_it_was_seen(t *testing.T) {
	t.Parallel()
	w := registeredWorker(t, noon)
	if w.NextLook() != noon+3000 {
		t.Errorf("first look %v", w.NextLook())
	}
	w.Lapse(at(noon + 3000))
	if w.NextLook() != noon.Add(base.Day) || w.Removable(noon.Add(base.Day)-1) || !w.Removable(noon.Add(base.Day)) {
		t.Errorf("second look %v", w.NextLook())
	}
	long := registeredWorker(t, noon)
	long.LivenessTTLMS = 2 * base.Day
	if long.Removable(noon.Add(base.Day)) {
		t.Error("a live instance is removable")
	}
}

func TestS11_a_worker_serves_what_matches_lane_namespace_kind_and_capabilities(t *testing.T) {
	t.Parallel()
	w := registeredWorker(t, noon)
	class := Class{Namespace: "acme", Lane: "a", Kind: "k", Capabilities: []string{"gpu"}}
	if !w.Serves(&class) {
		t.Error("a matching class is not served")
	}
	for _, change := range []func(*Class, *Worker){
		func(c *Class, _ *Worker) { c.Lane = "c" },
		func(c *Class, _ *Worker) { c.Capabilities = []string{"gpu", "x"} },
		func(_ *Class, w *Worker) { w.Kinds = []string{"other"} },
		func(_ *Class, w *Worker) { w.Namespaces = []string{"other"} },
	} {
		c, v := class, *w
		change(&c, &v)
		if v.Serves(&c) {
			t.Errorf("%+v serves %+v", v, c)
		}
	}
}

func TestSI13_an_instance_is_live_iff_it_was_seen_in_time_and_is_not_dead(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		r := Registration{WorkerID: "w", InstanceID: "w-1", LivenessTTLMS: 3000}
		if err := r.Normalize(); err != nil {
			t.Fatal(err)
		}
		now, seen, dead := noon, noon, false
		w, _, _, _ := RegisterWorker(at(now), nil, r, someone)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(rapid.Int64Range(0, 2500).Draw(t, "pause"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				if w.Live(now) {
					seen = now
				}
				w.Seen(now)
			case 1:
				w, _, _, _ = RegisterWorker(at(now), &w, r, someone)
				seen, dead = now, false
			case 2:
				dead = w.MarkDead(at(now), "") || dead
			case 3:
				dead = w.Lapse(at(now)) || dead
			}
			certainlyLive := !dead && now < seen.Add(2000) // the write may lag by a third of the ttl
			certainlyNot := dead || now >= seen.Add(3000)
			if w.Live(now) && certainlyNot || !w.Live(now) && certainlyLive {
				t.Fatalf("live %v, dead %v, seen %d ms ago", w.Live(now), dead, now-seen)
			}
		}
	})
}

func TestL117_L5_leases_belong_to_the_owner_of_an_instance_though_the_clock_is_set_back(t *testing.T) {
	t.Parallel()
	first, second := Registrant{Name: "w", KeyID: "first"}, Registrant{Name: "w", KeyID: "second"}
	w, _, _, err := RegisterWorker(at(noon), nil, sampleRegistration(t), first)
	if err != nil {
		t.Fatal(err)
	}
	if !w.Acquired(noon) || !w.Acquired(noon.Add(-base.Hour)) {
		t.Error("a lease after the clock was set back is not its owner's")
	}
	if w.Acquired(noon.Add(-base.Day)) {
		t.Error("a lease of an owner whose record is gone is the present owner's")
	}
	w.Claimed(at(noon.Add(base.Hour)), first)
	back := at(noon)
	if !w.Lapse(at(noon.Add(2 * base.Hour))) {
		t.Fatal("it does not lapse")
	}
	taken, _, _, err := RegisterWorker(back, &w, sampleRegistration(t), second)
	if err != nil {
		t.Fatal(err)
	}
	if taken.Acquired(noon.Add(base.Hour)) || taken.Acquired(noon) {
		t.Error("a lease of the previous owner is the present owner's, because the clock was set back before it took the instance over")
	}
}
