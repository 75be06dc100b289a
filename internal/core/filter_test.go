package core

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// everyState calls visit for every status with each of its reasons and every next.
func everyState(visit func(Status, Reason, Next)) {
	for _, status := range Statuses() {
		for _, reason := range ReasonsOf(status) {
			for _, next := range allNexts() {
				visit(status, reason, next)
			}
		}
	}
}

// publicStateByHand is the table of L20 once more, written as one reads it.
func publicStateByHand(status Status, reason Reason, next Next) string {
	switch {
	case (status == Ready || status == Granted) && next == NextResume:
		return "resumable"
	case status == Ready || status == Granted:
		return "waiting"
	case status == Blocked && (reason == WaitingForChildren || reason == WaitingForSubflow):
		return "waiting_children"
	case status == Blocked && (reason == WaitingForBudget || reason == WaitingForQuota):
		return "rate_limited"
	case status == Blocked:
		return "waiting"
	case status == Running:
		return "active"
	case status == Succeeded:
		return "completed"
	default:
		return status.String()
	}
}

func TestL20_every_state_shows_exactly_one_public_state(t *testing.T) {
	t.Parallel()
	everyState(func(status Status, reason Reason, next Next) {
		matching := 0
		for _, row := range publicStateTable {
			if row.holds(status, reason, next) {
				matching++
			}
		}
		if matching != 1 {
			t.Errorf("%v %v %v: %d rows", status, reason, next, matching)
		}
		want := publicStateByHand(status, reason, next)
		for _, lane := range []LaneState{LaneActive, LanePaused, LaneDraining, LaneDisabled} {
			x := &Execution{Class: &Class{}, Status: status, Reason: reason, Next: next}
			if shown, _ := Derive(x, lane); shown != want || !(&Filter{PublicState: []string{want}}).Matches(x, lane) {
				t.Errorf("%v %v %v in a lane that is %v shows %q, want %q", status, reason, next, lane, shown, want)
			}
		}
	})
	if got := len(PublicStates()); got != 12 {
		t.Errorf("%d public states", got)
	}
}

func TestL132_the_translation_of_a_filter_selects_exactly_what_the_filter_selects(t *testing.T) {
	t.Parallel()
	words := func(t *rapid.T, name string, all []string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(all), 0, 3, rapid.ID[string]).Draw(t, name)
	}
	var statuses, reasons, nexts []string
	for _, status := range Statuses() {
		statuses = append(statuses, status.String())
	}
	for reason := range reasonNames {
		reasons = append(reasons, Reason(reason).String())
	}
	for _, next := range allNexts() {
		nexts = append(nexts, next.String())
	}
	testseed.Check(t, func(t *rapid.T) {
		f := Filter{
			Status: words(t, "status", statuses), PublicState: words(t, "public", PublicStates()),
			Reason: words(t, "reason", reasons), Next: words(t, "next", nexts),
		}
		if err := f.Validate(); err != nil {
			t.Fatal(err)
		}
		conditions, bounded := f.States()
		everyState(func(status Status, reason Reason, next Next) {
			x := &Execution{Class: &Class{}, Status: status, Reason: reason, Next: next}
			holding := 0
			for _, c := range conditions {
				if c.holds(status, reason, next) {
					holding++
				}
			}
			if !bounded {
				holding = 1
			}
			if want := f.Matches(x, LaneActive); holding > 1 || (holding == 1) != want {
				t.Fatalf("%v %v %v: %d conditions hold, match %v", status, reason, next, holding, want)
			}
		})
	})
}

func sampleExecution() *Execution {
	return &Execution{
		ID:    base.ID{N: 7, UUID: base.UUID{0x01, 0x90, 0xf0}},
		Class: &Class{Namespace: "acme", Lane: "fast", Kind: "charge-Card"},
		Tags:  base.Tags{"tenant": "7", "city": "Zürich"}, Creator: "ada", IdempotencyKey: "order 17", Priority: 5,
		FlowID: base.ID{N: 3, UUID: base.UUID{3}}, ParentID: base.ID{N: 4, UUID: base.UUID{4}},
		Status: Failed, Reason: Permanent, Next: NextNone, Failure: &Failure{Message: "Card declined: code=51."},
		Attempt: &Attempt{InstanceID: "w-1"}, CreatedAt: 100, CompletedAt: 200, LastMutationAt: 300,
	}
}

func TestL131_every_filter_selects_by_its_field(t *testing.T) {
	t.Parallel()
	number := func(n int) *int { return &n }
	text := func(s string) *string { return &s }
	x := sampleExecution()
	cases := []struct {
		name string
		hit  Filter
		miss Filter
	}{
		{"status", Filter{Status: []string{"ready", "failed"}}, Filter{Status: []string{"ready"}}},
		{"public_state", Filter{PublicState: []string{"failed"}}, Filter{PublicState: []string{"waiting"}}},
		{"reason", Filter{Reason: []string{"permanent"}}, Filter{Reason: []string{"completed"}}},
		{"next", Filter{Next: []string{"none"}}, Filter{Next: []string{"retry"}}},
		{"lane", Filter{Lane: []string{"slow", "fast"}}, Filter{Lane: []string{"slow"}}},
		{"kind", Filter{Kind: []string{"charge-Card"}}, Filter{Kind: []string{"charge"}}},
		{"namespace", Filter{Namespace: []string{"acme"}}, Filter{Namespace: []string{"Acme"}}},
		{"tag", Filter{Tags: []TagFilter{{"tenant", text("7")}}}, Filter{Tags: []TagFilter{{"tenant", text("8")}}}},
		{"tag key", Filter{Tags: []TagFilter{{"tenant", nil}, {"city", nil}}}, Filter{Tags: []TagFilter{{"tenant", nil}, {"zip", nil}}}},
		{"created from", Filter{Created: TimeRange{From: 100}}, Filter{Created: TimeRange{From: 101}}},
		{"created to", Filter{Created: TimeRange{To: 101}}, Filter{Created: TimeRange{To: 100}}},
		{"completed", Filter{Completed: TimeRange{200, 201}}, Filter{Completed: TimeRange{201, 300}}},
		{"updated", Filter{Updated: TimeRange{300, 301}}, Filter{Updated: TimeRange{200, 300}}},
		{"flow", Filter{FlowID: []string{x.FlowID.Full()}}, Filter{FlowID: []string{(base.ID{N: 4, UUID: base.UUID{3}}).Full()}}},
		{"flow bare", Filter{FlowID: []string{x.FlowID.UUID.String()}}, Filter{FlowID: []string{base.UUID{9}.String()}}},
		{"parent", Filter{ParentID: []string{x.ParentID.Full()}}, Filter{ParentID: []string{x.FlowID.Full()}}},
		{"instance", Filter{InstanceID: []string{"w-1"}}, Filter{InstanceID: []string{"w-2"}}},
		{"creator", Filter{Creator: []string{"ada"}}, Filter{Creator: []string{"bob"}}},
		{"key", Filter{IdempotencyKey: []string{"order 17"}}, Filter{IdempotencyKey: []string{"order"}}},
		{"priority min", Filter{PriorityMin: number(5)}, Filter{PriorityMin: number(6)}},
		{"priority max", Filter{PriorityMax: number(5)}, Filter{PriorityMax: number(4)}},
		{"q id prefix", Filter{Query: "0190f0"}, Filter{Query: "0190f1"}},
		{"q full id prefix", Filter{Query: "{fp:7}:0190"}, Filter{Query: "{fp:8}:0190"}},
		{"q key", Filter{Query: "order 17"}, Filter{Query: "order 18"}},
		{"q word of the kind", Filter{Query: "CARD"}, Filter{Query: "car"}},
		{"q word of a tag", Filter{Query: "zürich tenant"}, Filter{Query: "zürich london"}},
		{"q words of the message", Filter{Query: "51, declined!"}, Filter{Query: "52 declined"}},
		{"q without words", Filter{}, Filter{Query: "?!"}},
		{"all at once", Filter{Lane: []string{"fast"}, Query: "card"}, Filter{Lane: []string{"fast"}, Query: "card", Creator: []string{"bob"}}},
	}
	for _, c := range cases {
		for _, f := range []*Filter{&c.hit, &c.miss} {
			if err := f.Validate(); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if !c.hit.Matches(x, LaneActive) || c.miss.Matches(x, LaneActive) {
			t.Errorf("%s: hit %v, miss %v", c.name, c.hit.Matches(x, LaneActive), c.miss.Matches(x, LaneActive))
		}
	}
}

func TestL131_absent_facts_match_no_filter_about_them(t *testing.T) {
	t.Parallel()
	x := &Execution{Class: &Class{}, CreatedAt: 1, LastMutationAt: 1}
	for _, f := range []Filter{
		{Completed: TimeRange{To: 1000}},
		{FlowID: []string{base.UUID{}.String()}},
		{InstanceID: []string{"w"}},
		{IdempotencyKey: []string{"k"}},
	} {
		if f.Matches(x, LaneActive) {
			t.Errorf("%+v matches", f)
		}
	}
	x.Attempt, x.Lease = &Attempt{InstanceID: "old"}, &Lease{InstanceID: "new"}
	if f := (Filter{InstanceID: []string{"new"}}); !f.Matches(x, LaneActive) {
		t.Error("the holder of the lease is not found")
	}
}

func TestL131_filters_that_no_execution_could_meet_are_refused(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		f     Filter
		field string
	}{
		{Filter{Status: []string{"done"}}, "status"},
		{Filter{Status: []string{""}}, "status"},
		{Filter{PublicState: []string{"ready"}}, "public_state"},
		{Filter{Reason: []string{"because"}}, "reason"},
		{Filter{Next: []string{"later"}}, "next"},
		{Filter{FlowID: []string{"7"}}, "flow_id"},
		{Filter{ParentID: []string{strings.ToUpper("0190f0c2-1111-7aaa-8bbb-0123456789ab")}}, "parent_id"},
		{Filter{Lane: []string{"\xff"}}, "lane"},
		{Filter{Lane: []string{"a\x00"}}, "lane"},
		{Filter{Kind: []string{"\x00"}}, "kind"},
		{Filter{Namespace: []string{"\x00a"}}, "namespace"},
		{Filter{Kind: make([]string, 1001)}, "kind"},
		{Filter{Tags: []TagFilter{{"A", nil}}}, "tags.A"},
		{Filter{Tags: []TagFilter{{"a", text("\xff")}}}, "tags.a"},
		{Filter{Tags: make([]TagFilter, 65)}, "tags"},
		{Filter{Query: "\xff"}, "q"},
		{Filter{Query: strings.Repeat("a", 1025)}, "q"},
	} {
		expect(t, c.f.Validate(), base.CodeInvalidFilter, c.field)
	}
}

func TestL137_only_a_filter_without_any_part_is_empty(t *testing.T) {
	t.Parallel()
	number := 1
	if !(&Filter{}).Empty() || !(&Filter{Status: []string{}}).Empty() {
		t.Error("an empty filter is not empty")
	}
	for _, f := range []Filter{
		{Status: []string{"ready"}},
		{IdempotencyKey: []string{"k"}},
		{Tags: []TagFilter{{"a", nil}}},
		{Created: TimeRange{From: 1}},
		{Completed: TimeRange{To: 1}},
		{Updated: TimeRange{To: 1}},
		{PriorityMin: &number},
		{PriorityMax: &number},
		{Query: "x"},
	} {
		if f.Empty() {
			t.Errorf("%+v is empty", f)
		}
	}
}

func TestL137_a_filter_survives_being_stored_with_its_job(t *testing.T) {
	t.Parallel()
	number, value := 3, ""
	f := Filter{
		Status: []string{"ready"}, Tags: []TagFilter{{"a", nil}, {"b", &value}}, Created: TimeRange{From: noon, To: noon + 1},
		FlowID: []string{"0190f0c2-1111-7aaa-8bbb-0123456789ab"}, PriorityMin: &number, Query: "q",
	}
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var back Filter
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, back); diff != "" {
		t.Error(diff)
	}
}

func TestU34_words_are_lower_case_runs_of_letters_and_digits(t *testing.T) {
	t.Parallel()
	if got := Words("Send_Email-2: Zürich\xffok"); !slices.Equal(got, []string{"send", "email", "2", "zürich", "ok"}) {
		t.Errorf("%q", got)
	}
	if got := sampleExecution().SearchWords(); !slices.Equal(got, []string{"51", "7", "card", "charge", "city", "code", "declined", "tenant", "zürich"}) {
		t.Errorf("%q", got)
	}
}
