package condition

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// sameCondition compares whole trees, with what is kept of foreign nodes; no entries and no list are the same.
func sameCondition(a, b *Condition) bool {
	return a.Kind == b.Kind && a.Matcher == b.Matcher && a.N == b.N && a.CountKind == b.CountKind && string(a.foreign) == string(b.foreign) &&
		slices.Equal(a.Waitpoints, b.Waitpoints) && slices.Equal(a.SourceTypes, b.SourceTypes) &&
		slices.EqualFunc(a.Members, b.Members, func(x, y Condition) bool { return sameCondition(&x, &y) })
}

// wantReason expects invalid_suspend with that reason about that member.
func wantReason(t tester, err error, reason, field string) {
	t.Helper()
	refused := wantCode(t, err, base.CodeInvalidSuspend)
	if refused.Details["reason"] != reason || refused.Field != field {
		t.Fatalf("got %v at %s (%v), want %s at %s", refused.Details["reason"], refused.Field, refused, reason, field)
	}
}

// sampleConditions are one of each kind and some that are put together, as callers write them.
func sampleConditions() []string {
	return []string{
		`{"type":"single"}`,
		`{"type":"single","waitpoint_key":"a","name":"done"}`,
		`{"type":"operator_only"}`,
		`{"type":"timeout_only"}`,
		`{"type":"all_of","members":[{"type":"single","waitpoint_key":"a"},{"type":"single","waitpoint_key":"b","name":"x"}]}`,
		`{"type":"any_of","members":[{"type":"timeout_only"},{"type":"single","waitpoint_key":"b"}]}`,
		`{"type":"count","n":2,"count_kind":"distinct_sources","name":"approved","source_types":["operator","approver"],"waitpoints":["a"]}`,
		`{"type":"count","n":2,"count_kind":"distinct_waitpoints","waitpoints":["a","b","c"]}`,
		`{"type":"any_of","members":[{"type":"count","n":3,"count_kind":"distinct_signals","waitpoints":["a","b"]},{"type":"all_of","members":[{"type":"operator_only"}]}]}`,
	}
}

func TestU29_a_condition_is_read_whatever_the_order_of_its_fields(t *testing.T) {
	t.Parallel()
	count := &Condition{
		Kind: Count, N: 2, CountKind: CountDistinctSources, Matcher: ByName("ok"), SourceTypes: []string{"operator"}, Waitpoints: []string{"a", "b"},
	}
	for text, want := range map[string]*Condition{
		`{"type":"single"}`: {Kind: Single},
		`{"waitpoint_key":"a","name":"x","type":"single"}`:                        {Kind: Single, Waitpoints: []string{"a"}, Matcher: ByName("x")},
		`{"type":"single","waitpoint_key":"","name":""}`:                          {Kind: Single, Waitpoints: []string{""}, Matcher: ByName("")},
		` {"type":"single", "waitpoint_key":null, "name":null, "n":null} `:        {Kind: Single},
		`{"type":"operator_only"}`:                                                {Kind: OperatorOnly},
		"{\n\t\"type\": \"timeout_only\"\n}":                                      {Kind: TimeoutOnly},
		`{"type":"all_of"}`:                                                       {Kind: AllOf},
		`{"members":[{"type":"single"},{"type":"timeout_only"}],"type":"any_of"}`: {Kind: AnyOf, Members: []Condition{{Kind: Single}, {Kind: TimeoutOnly}}},
		`{"waitpoints":["a","b"],"source_types":["operator"],"name":"\u006fk","n":2,"count_kind":"distinct_sources","type":"count"}`: count,
	} {
		if got := parsed(t, text); !sameCondition(got, want) {
			t.Errorf("%s became %+v", text, got)
		}
	}
}

func TestU29_what_is_not_of_the_form_of_a_condition_is_refused_with_its_path(t *testing.T) {
	t.Parallel()
	for text, field := range map[string]string{
		"":         "",
		"null":     "",
		"{":        "",
		"[]":       "",
		`"single"`: "",
		"{\"type\":\"single\",\"name\":\"\xff\"}": "",
		`{}`:                                      ".type",
		`{"type":null}`:                           ".type",
		`{"type":""}`:                             ".type",
		`{"type":"Single"}`:                       ".type",
		`{"type":"not"}`:                          ".type",
		`{"type":1}`:                              ".type",
		`{"type":"single","type":"single"}`:       ".type",
		`{"type":"single","matcher":"x"}`:         ".matcher",
		`{"type":"single","matcher":null}`:        ".matcher",
		`{"type":"single","name":1}`:              ".name",
		`{"type":"single","waitpoint_key":["a"]}`: ".waitpoint_key",
		`{"type":"single","n":1}`:                 ".n",
		`{"type":"single","waitpoints":["a"]}`:    ".waitpoints",
		`{"type":"timeout_only","members":[]}`:    ".members",
		`{"type":"all_of","members":{}}`:          ".members",
		`{"type":"all_of","members":[null]}`:      ".members[0]",
		`{"type":"all_of","members":[{"type":"single"},{"type":"any_of","members":[{"type":"x"}]}]}`:  ".members[1].members[0].type",
		`{"type":"count","n":1,"waitpoints":["a"]}`:                                                   ".count_kind",
		`{"type":"count","n":1,"waitpoints":["a"],"count_kind":"distinct"}`:                           ".count_kind",
		`{"type":"count","n":1.5,"waitpoints":["a"],"count_kind":"distinct_signals"}`:                 ".n",
		`{"type":"count","n":"1","waitpoints":["a"],"count_kind":"distinct_signals"}`:                 ".n",
		`{"type":"count","n":1e3,"waitpoints":["a"],"count_kind":"distinct_signals"}`:                 ".n",
		`{"type":"count","n":9999999999,"waitpoints":["a"],"count_kind":"distinct_signals"}`:          ".n",
		`{"type":"count","n":1,"waitpoints":["a",2],"count_kind":"distinct_signals"}`:                 ".waitpoints[1]",
		`{"type":"count","n":1,"waitpoints":"a","count_kind":"distinct_signals"}`:                     ".waitpoints",
		`{"type":"count","n":1,"waitpoint_key":"a","count_kind":"distinct_signals"}`:                  ".waitpoint_key",
		`{"type":"count","n":1,"waitpoints":["a"],"source_types":[],"count_kind":"distinct_signals"}`: ".source_types",
	} {
		_, err := Parse([]byte(text))
		wantReason(t, err, "condition_malformed", "resume_condition"+field)
	}
}

func TestW4_equal_conditions_have_one_text(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{ "name":"x" ,"waitpoint_key":"a\u0062","type":"single"}`:                       `{"name":"x","type":"single","waitpoint_key":"ab"}`,
		`{"type":"single","name":null}`:                                                  `{"type":"single"}`,
		`{"type":"single","name":""}`:                                                    `{"name":"","type":"single"}`,
		`{"type":"any_of","members":null}`:                                               `{"members":[],"type":"any_of"}`,
		`{"type":"all_of","members":[{"type":"operator_only"},{"type":"timeout_only"}]}`: `{"members":[{"type":"operator_only"},{"type":"timeout_only"}],"type":"all_of"}`,
		`{"type":"count","waitpoints":["b","a"],"n":2,"count_kind":"distinct_sources","source_types":["z","y"],"name":"\"é"}`: `{"count_kind":"distinct_sources","n":2,"name":"\"é","source_types":["z","y"],"type":"count","waitpoints":["b","a"]}`,
	} {
		if got := string(parsed(t, text).Canonical()); got != want {
			t.Errorf("%s is stored as %s, want %s", text, got, want)
		}
	}
	for _, text := range sampleConditions() {
		c := parsed(t, text)
		stored, err := Decode(c.Canonical())
		if err != nil || !sameCondition(c, stored) {
			t.Errorf("%s came back as %+v: %v", text, stored, err)
		}
	}
}

func TestW10_a_stored_condition_that_cannot_be_read_is_corruption(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "null", "{", "[]", "{}", `{"type":7,"x":1}`, `{"type":"","x":1}`, `{"type":"count","n":1,"waitpoints":["a"]}`,
		`{"type":"single","name":7}`, `{"type":"all_of","members":[{"type":"count","count_kind":"distinct_signals","n":"2"}]}`,
		`{"type":"all_of","members":[3]}`,
	} {
		_, err := Decode([]byte(text))
		if refused := wantCode(t, err, base.CodeCorruption); refused.Field != "resume_condition" {
			t.Errorf("%s: %+v", text, refused)
		}
	}
	// What is foreign does not lead the message astray.
	_, err := Decode([]byte(`{"type":"all_of","members":[{"type":"newer","x":1},{"type":"single","name":7}]}`))
	if refused := wantCode(t, err, base.CodeCorruption); !strings.Contains(refused.Message, " resume_condition.members[1].name:") {
		t.Error(refused.Message)
	}
}

func TestW40_a_stored_node_of_a_newer_program_is_false_and_is_kept(t *testing.T) {
	t.Parallel()
	all := []Evidence{{WaitpointKey: "a", Name: "x", SourceType: "external"}}
	for _, foreign := range []string{
		`{"type":"weighted","n":"most","members":[{"weight":2,"of":{"type":"single"}}]}`,
		`{"type":"single","name_prefix":"x","waitpoint_key":"a"}`,
		`{"type":"single","n":1,"waitpoint_key":"a"}`,
		`{"count_kind":"distinct_payloads","n":1,"type":"count","waitpoints":["a"]}`,
		`{"type":"operator_only","team":["blue"]}`,
	} {
		for wrap, met := range map[string]bool{
			"NODE": false,
			`{"members":[{"type":"single","waitpoint_key":"a"},NODE],"type":"all_of"}`:                               false,
			`{"members":[NODE,{"type":"single","waitpoint_key":"a"}],"type":"any_of"}`:                               true,
			`{"members":[{"members":[NODE],"type":"any_of"},{"type":"single","waitpoint_key":"a"}],"type":"any_of"}`: true,
		} {
			text := strings.Replace(wrap, "NODE", foreign, 1)
			c := must[*Condition](t)(Decode([]byte(text)))
			if got := c.Evaluate(all).Satisfied(); got != met {
				t.Errorf("%s is %v", text, got)
			}
			if got := string(c.WithPrimary("p").Canonical()); got != text {
				t.Errorf("%s was stored again as %s", text, got)
			}
		}
		wantReason(t, must[*Condition](t)(Decode([]byte(foreign))).Check(), "condition_malformed", "resume_condition.type")
	}
}

func TestW42_required_names_are_those_of_the_key_first_seen_first(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`{"type":"single","waitpoint_key":"a"}`:                                     nil,
		`{"type":"single","waitpoint_key":"a","name":"x"}`:                          {"x"},
		`{"type":"single","waitpoint_key":"b","name":"x"}`:                          nil,
		`{"type":"operator_only"}`:                                                  {"__operator_only__"},
		`{"type":"timeout_only"}`:                                                   {"__timeout_only__"},
		`{"type":"count","n":1,"count_kind":"distinct_signals","waitpoints":["a"]}`: nil,
		`{"type":"any_of","members":[
			{"type":"single","waitpoint_key":"a","name":"z"},
			{"type":"all_of","members":[{"type":"timeout_only"},{"type":"single","waitpoint_key":"b","name":"other"}]},
			{"type":"count","n":1,"count_kind":"distinct_signals","name":"y","waitpoints":["b","a"]},
			{"type":"single","waitpoint_key":"a","name":"z"},
			{"type":"single","waitpoint_key":"a"},
			{"type":"operator_only"},{"type":"operator_only"}]}`: {"z", "__timeout_only__", "y", "__operator_only__"},
	} {
		if got := parsed(t, text).RequiredNames("a"); !slices.Equal(got, want) {
			t.Errorf("%s requires %q, want %q", text, got, want)
		}
	}
}

func TestW45_a_fresh_binding_takes_the_only_key_that_the_condition_names(t *testing.T) {
	t.Parallel()
	id := base.UUID{15: 7}
	own := "wpk:00000000-0000-0000-0000-000000000007"
	for text, want := range map[string]string{
		`{"type":"single"}`:                     own,
		`{"type":"operator_only"}`:              own,
		`{"type":"single","waitpoint_key":"a"}`: "a",
		`{"type":"all_of","members":[{"type":"single"},{"type":"single","waitpoint_key":"a"},{"type":"count","n":1,"count_kind":"distinct_signals","waitpoints":["a"]}]}`: "a",
		`{"type":"any_of","members":[{"type":"single","waitpoint_key":"b"},{"type":"single","waitpoint_key":"a"}]}`:                                                       own,
	} {
		c := parsed(t, text)
		if got := c.FreshKey(true, id); got != want {
			t.Errorf("%s: the only binding gets %q, want %q", text, got, want)
		}
		if got := c.FreshKey(false, id); got != own {
			t.Errorf("%s: one of several bindings gets %q", text, got)
		}
	}
}

func TestW39_a_single_without_key_means_that_of_the_primary_binding(t *testing.T) {
	t.Parallel()
	given := `{"members":[{"type":"single"},{"members":[{"name":"x","type":"single"},{"type":"single","waitpoint_key":"b"}],"type":"any_of"}],"type":"all_of"}`
	c := parsed(t, given)
	resolved := c.WithPrimary("p")
	want := `{"members":[{"type":"single","waitpoint_key":"p"},{"members":[{"name":"x","type":"single","waitpoint_key":"p"},{"type":"single","waitpoint_key":"b"}],"type":"any_of"}],"type":"all_of"}`
	if got := string(resolved.Canonical()); got != want {
		t.Errorf("became %s", got)
	}
	if got := string(c.Canonical()); got != given {
		t.Errorf("the condition itself became %s", got)
	}
	if diff := cmp.Diff([]string{"p", "b"}, resolved.Keys()); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(c.Keys(), []string{"b"}) {
		t.Errorf("names %q before the primary binding is known", c.Keys())
	}
}

func TestW47_keys_and_sentinels_of_a_tree(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		keys             string
		bindsNothing     bool
		needsATimeout    bool
		leavesInTheirRow string
	}{
		`{"type":"operator_only"}`:                               {bindsNothing: true},
		`{"type":"timeout_only"}`:                                {bindsNothing: true, needsATimeout: true},
		`{"type":"all_of","members":[{"type":"operator_only"}]}`: {},
		`{"type":"any_of","members":[{"type":"single","waitpoint_key":"b"},
			{"type":"all_of","members":[{"type":"count","n":1,"count_kind":"distinct_signals","waitpoints":["c","b"]},{"type":"timeout_only"}]},
			{"type":"single","waitpoint_key":"a"}]}`: {keys: "b c a", needsATimeout: true, leavesInTheirRow: "single count single"},
	} {
		c := parsed(t, text)
		var kinds []string
		for _, leaf := range c.Leaves() {
			kinds = append(kinds, leaf.Kind.String())
		}
		if strings.Join(c.Keys(), " ") != want.keys || c.BindsNothing() != want.bindsNothing || c.HasTimeoutOnly() != want.needsATimeout ||
			strings.Join(kinds, " ") != want.leavesInTheirRow {
			t.Errorf("%s: keys %q, binds nothing %v, needs a timeout %v, leaves %q", text, c.Keys(), c.BindsNothing(), c.HasTimeoutOnly(), kinds)
		}
	}
}

func FuzzParseCondition(f *testing.F) {
	for _, text := range sampleConditions() {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"type":"all_of","members":[{"type":"weighted","n":"\ud800"},{"type":"single","name":null,"waitpoint_key":"\u0000"}]}`))
	f.Add([]byte(strings.Repeat(`{"type":"any_of","members":[`, 9) + strings.Repeat(`]}`, 9)))
	f.Fuzz(func(t *testing.T, text []byte) {
		stored, err := Decode(text)
		if err != nil {
			wantCode(t, err, base.CodeCorruption)
		} else {
			wantSameAgain(t, stored, Decode)
			stored.Evaluate([]Evidence{{WaitpointKey: "a", Name: "x"}}).Satisfied()
		}
		c, err := Parse(text)
		if err != nil {
			wantCode(t, err, base.CodeInvalidSuspend)
			return
		}
		if stored == nil || !sameCondition(c, stored) {
			t.Fatalf("%q is one thing to a caller and another to a store", text)
		}
		wantSameAgain(t, c, Parse)
		if c.CheckKeys() == nil && c.Check() == nil && len(c.Keys()) > 0 {
			c.WithPrimary("p").Evaluate([]Evidence{{WaitpointKey: c.Keys()[0]}}).Progress()
		}
	})
}

// wantSameAgain writes the condition and reads it back.
func wantSameAgain(t *testing.T, c *Condition, read func([]byte) (*Condition, error)) {
	t.Helper()
	text := c.Canonical()
	again, err := read(text)
	if err != nil || !sameCondition(c, again) || string(again.Canonical()) != string(text) {
		t.Fatalf("%s came back as %+v: %v", text, again, err)
	}
}
