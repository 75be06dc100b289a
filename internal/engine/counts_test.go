package engine_test

import (
	"maps"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// countBy is the counts by value, which must add up.
func (w *world) countBy(f core.Filter, by string) map[string]int {
	w.t.Helper()
	answer := must(w.e.CountBy(w.ctx(), client, f, by))(w.t)
	same(w.t, "total by "+by, [2]any{answer.Total, answer.AtLeast}, [2]any{must(w.e.Count(w.ctx(), client, f))(w.t).Total, false})
	return answer.Counts
}

func TestU35_executions_are_counted_by_every_field(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.complete(w.started(core.Submission{Kind: "mail"}))
		w.started(core.Submission{Kind: "mail", Tags: base.Tags{"tier": "gold"}})
		w.release(w.started(core.Submission{Kind: "resumed"}))
		w.submitMany(3, core.Submission{Kind: "mail", Lane: "night", Tags: base.Tags{"tier": "silver", "team": ""}})
		w.hold(w.submit(core.Submission{Kind: "charge", Tags: base.Tags{"tier": "gold"}}))
		everything := core.Filter{}
		same(t, "status", w.countBy(everything, "status"), map[string]int{"succeeded": 1, "running": 1, "ready": 4, "blocked": 1})
		same(t, "public_state", w.countBy(everything, "public_state"), map[string]int{"completed": 1, "active": 1, "resumable": 1, "waiting": 4})
		same(t, "kind", w.countBy(everything, "kind"), map[string]int{"mail": 5, "resumed": 1, "charge": 1})
		same(t, "lane", w.countBy(everything, "lane"), map[string]int{"default": 4, "night": 3})
		same(t, "tag", w.countBy(everything, "tag.tier"), map[string]int{"gold": 2, "silver": 3})
		same(t, "empty tag", w.countBy(everything, "tag.team"), map[string]int{"": 3})
		same(t, "absent tag", w.countBy(everything, "tag.missing"), map[string]int{})
		several := core.Filter{Status: []string{"ready", "blocked"}, Kind: []string{"mail", "charge"}}
		same(t, "several statuses", w.countBy(several, "public_state"), map[string]int{"waiting": 4})
		same(t, "several statuses by kind", w.countBy(several, "kind"), map[string]int{"mail": 3, "charge": 1})
		same(t, "public state", w.countBy(core.Filter{PublicState: []string{"waiting"}}, "status"), map[string]int{"ready": 3, "blocked": 1})
		same(t, "a text is looked at row by row", w.countBy(core.Filter{Query: "gold"}, "kind"), map[string]int{"mail": 1, "charge": 1})
		same(t, "the same by tag", w.countBy(core.Filter{Query: "mail"}, "tag.tier"), map[string]int{"gold": 1, "silver": 3})
		same(t, "nothing", len(w.countBy(core.Filter{Status: []string{"ready"}, PublicState: []string{"active"}}, "status")), 0)
		stranger := engine.Caller{Principal: "s", Actor: "client", Namespaces: []string{"elsewhere"}}
		same(t, "another namespace", must(w.e.CountBy(w.ctx(), stranger, everything, "status"))(t).Total, 0)
		for _, by := range []string{"", "reason", "tag", "tag.", "tag.A", "Status"} {
			_, err := w.e.CountBy(w.ctx(), client, everything, by)
			same(t, by, refused(t, err, base.CodeInvalidArgument).Field, "by")
		}
	})
}

func TestU35_above_ten_thousand_each_value_is_counted_for_itself(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(12, core.Submission{Kind: "rare", Lane: "side", Tags: base.Tags{"tier": "gold"}})
		w.submitMany(10_000, core.Submission{Kind: "frequent", Tags: base.Tags{"tier": "tin"}})
		w.submit(core.Submission{Kind: "frequent", Tags: base.Tags{"tier": "tin"}})
		eventually(t, "the search rows are there", func() bool {
			return must(w.e.CountBy(w.ctx(), client, core.Filter{Kind: []string{"frequent"}}, "status"))(t).AtLeast
		})
		for by, want := range map[string]map[string]int{
			"status":       {"ready": 10_000},
			"public_state": {"waiting": 10_000},
			"kind":         {"frequent": 10_000, "rare": 12},
			"lane":         {"default": 10_000, "side": 12},
		} {
			answer := must(w.e.CountBy(w.ctx(), client, core.Filter{}, by))(t)
			same(t, by, [3]any{answer.Total, answer.AtLeast, answer.Counts}, [3]any{10_000, true, want})
		}
		answer := must(w.e.CountBy(w.ctx(), client, core.Filter{}, "tag.tier"))(t)
		same(t, "tag", [3]any{answer.Total, answer.AtLeast, answer.Counts["tin"]}, [3]any{10_000, true, 10_000})
		answer = must(w.e.CountBy(w.ctx(), client, core.Filter{Kind: []string{"rare"}}, "lane"))(t)
		same(t, "what is left of a filter", [3]any{answer.Total, answer.AtLeast, answer.Counts}, [3]any{12, false, map[string]int{"side": 12}})
		lane := must(w.e.GetLane(w.ctx(), client, "default"))(t)
		same(t, "lane", [2]any{lane.AtLeast, maps.Clone(lane.Counts)}, [2]any{true, map[core.Status]int{core.Ready: 10_000}})
	})
}
