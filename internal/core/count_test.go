package core

import (
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestU35_what_executions_can_be_counted_by(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]CountBy{
		"status": {Field: "status"}, "public_state": {Field: "public_state"}, "kind": {Field: "kind"}, "lane": {Field: "lane"},
		"tag.a.b": {Field: "tag", Tag: "a.b"},
	} {
		if got, err := ParseCountBy(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "tag", "tag.", "tag.A", "tags.a", "reason", "STATUS", "\xff"} {
		_, err := ParseCountBy(text)
		if err := wantCode(t, err, base.CodeInvalidArgument); err.Field != "by" || err.Hint == "" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestU35_a_filter_narrowed_to_a_value_matches_what_has_it(t *testing.T) {
	t.Parallel()
	x := &Execution{
		Status: Ready, Reason: WaitingForWorker, Next: NextInitial, Tags: base.Tags{"tier": "gold"},
		Class: &Class{Namespace: "default", Lane: "l", Kind: "k"},
	}
	for by, want := range map[string]string{"status": "ready", "public_state": "waiting", "kind": "k", "lane": "l", "tag.tier": "gold"} {
		field, err := ParseCountBy(by)
		if err != nil {
			t.Fatal(err)
		}
		if value, ok := field.Value(x); !ok || value != want {
			t.Errorf("%s: counts as %q, %v", by, value, ok)
		}
		f := Filter{Kind: []string{"k", "other"}, Tags: []TagFilter{{Key: "tier"}}}
		narrowed, ok := field.Narrow(f, want)
		if !ok || !narrowed.Matches(x, LaneActive) {
			t.Errorf("%s: %+v, %v", by, narrowed, ok)
		}
		if !slices.Equal(f.Kind, []string{"k", "other"}) || len(f.Tags) != 1 {
			t.Errorf("%s changed the filter that it was given: %+v", by, f)
		}
		if narrowed, ok := field.Narrow(f, "cancelled"); ok && narrowed.Matches(x, LaneActive) {
			t.Errorf("%s: %+v matches another value", by, narrowed)
		}
	}
	if _, ok := (CountBy{Field: CountByTag, Tag: "team"}).Value(x); ok {
		t.Error("an execution counts by a tag that it does not have")
	}
	if _, ok := (CountBy{Field: CountByKind}).Narrow(Filter{Kind: []string{"other"}}, "k"); ok {
		t.Error("a filter that excludes the value can be narrowed to it")
	}
}
