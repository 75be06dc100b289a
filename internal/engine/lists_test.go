package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// walk goes through a list page by page.
func (w *world) walk(r engine.ListRequest, each func(page int)) []*core.Execution {
	w.t.Helper()
	all := []*core.Execution{}
	for n := 0; ; n++ {
		page := must(w.e.List(w.ctx(), client, r))(w.t)
		for _, item := range page.Items {
			all = append(all, item.Execution)
		}
		if page.Next == "" {
			return all
		}
		r.Cursor = page.Next
		if each != nil {
			each(n)
		}
	}
}

func ids(all []*core.Execution) []string {
	texts := []string{}
	for _, x := range all {
		texts = append(texts, x.ID.String())
	}
	return texts
}

func TestLC3_LC19_every_filter_finds_exactly_what_matches(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		made := w.inEveryStatus()
		w.turn(1000)
		middle := w.now()
		r := ask()
		r.InstanceID, r.Lanes = "other", []string{"l2"}
		tagged := w.submit(core.Submission{
			Kind: "mail.send", Namespace: "n2", Lane: "l2", Priority: 50, Creator: "ann", IdempotencyKey: "order-7",
			Tags: base.Tags{"tenant": "7", "region": "eu"},
		})
		task := w.claimAs(r)
		must(w.e.Fail(w.ctx(), client, given(task), core.FailCommand{Fence: fence(task), Class: "permanent", Message: "Disk quota exceeded on node-9"}))(t)
		w.turn(1000)
		resumable := w.started(core.Submission{Priority: 40, Tags: base.Tags{"tenant": "8"}, Lane: "l3"})
		w.release(resumable)
		all := w.walk(engine.ListRequest{}, nil)
		same(t, "executions", len(all), len(made)+2)
		for name, c := range map[string]struct {
			f    core.Filter
			want func(x *core.Execution) bool
		}{
			"status":       {core.Filter{Status: []string{"ready", "failed"}}, func(x *core.Execution) bool { return x.Status == core.Ready || x.Status == core.Failed }},
			"public state": {core.Filter{PublicState: []string{"waiting"}}, func(x *core.Execution) bool { return w.public(x.ID.Given()) == "waiting" }},
			"public states": {core.Filter{PublicState: []string{"resumable", "completed"}}, func(x *core.Execution) bool {
				return x.Next == core.NextResume && x.Status != core.Suspended || x.Status == core.Succeeded
			}},
			"reason":         {core.Filter{Reason: []string{"permanent"}}, func(x *core.Execution) bool { return x.Reason == core.Permanent }},
			"next":           {core.Filter{Next: []string{"resume"}}, func(x *core.Execution) bool { return x.Next == core.NextResume }},
			"lane":           {core.Filter{Lane: []string{"l2", "l3"}}, func(x *core.Execution) bool { return x.Class.Lane != "default" }},
			"kind":           {core.Filter{Kind: []string{"mail.send"}}, func(x *core.Execution) bool { return x.Class.Kind == "mail.send" }},
			"namespace":      {core.Filter{Namespace: []string{"n2"}}, func(x *core.Execution) bool { return x.Class.Namespace == "n2" }},
			"tag":            {core.Filter{Tags: []core.TagFilter{{Key: "tenant", Value: ptr("7")}}}, func(x *core.Execution) bool { return x.Tags["tenant"] == "7" }},
			"tag key":        {core.Filter{Tags: []core.TagFilter{{Key: "tenant"}}}, func(x *core.Execution) bool { return x.Tags["tenant"] != "" }},
			"two tags":       {core.Filter{Tags: []core.TagFilter{{Key: "tenant"}, {Key: "region", Value: ptr("eu")}}}, func(x *core.Execution) bool { return x.Tags["region"] == "eu" }},
			"created":        {core.Filter{Created: core.TimeRange{From: middle, To: middle + 1}}, func(x *core.Execution) bool { return x.CreatedAt == middle }},
			"created before": {core.Filter{Created: core.TimeRange{To: middle}}, func(x *core.Execution) bool { return x.CreatedAt < middle }},
			"completed":      {core.Filter{Completed: core.TimeRange{From: middle}}, func(x *core.Execution) bool { return x.CompletedAt >= middle }},
			"updated":        {core.Filter{Updated: core.TimeRange{From: middle + 1}}, func(x *core.Execution) bool { return x.LastMutationAt > middle }},
			"instance":       {core.Filter{InstanceID: []string{"other"}}, func(x *core.Execution) bool { return x.ID == tagged.ID() }},
			"creator":        {core.Filter{Creator: []string{"ann"}}, func(x *core.Execution) bool { return x.Creator == "ann" }},
			"key":            {core.Filter{IdempotencyKey: []string{"order-7"}}, func(x *core.Execution) bool { return x.ID == tagged.ID() }},
			"priority":       {core.Filter{PriorityMin: ptr(40), PriorityMax: ptr(49)}, func(x *core.Execution) bool { return x.Priority == 40 }},
			"words":          {core.Filter{Query: "QUOTA disk"}, func(x *core.Execution) bool { return x.ID == tagged.ID() }},
			"query by key":   {core.Filter{Query: "order-7"}, func(x *core.Execution) bool { return x.ID == tagged.ID() }},
			"query by id":    {core.Filter{Query: tagged.UUID.String()[:30]}, func(x *core.Execution) bool { return x.ID == tagged.ID() }},
			"full id":        {core.Filter{Query: tagged.ID().String()}, func(x *core.Execution) bool { return x.ID == tagged.ID() }},
			"no such words":  {core.Filter{Query: "unheard of"}, func(*core.Execution) bool { return false }},
			"impossible":     {core.Filter{Status: []string{"ready"}, Reason: []string{"permanent"}}, func(*core.Execution) bool { return false }},
			"and":            {core.Filter{Status: []string{"failed"}, Lane: []string{"l2"}}, func(x *core.Execution) bool { return x.ID == tagged.ID() }},
			"flow":           {core.Filter{FlowID: []string{tagged.UUID.String()}}, func(*core.Execution) bool { return false }},
			"parent":         {core.Filter{ParentID: []string{tagged.UUID.String()}}, func(*core.Execution) bool { return false }},
		} {
			want := []*core.Execution{}
			for _, x := range all {
				if c.want(x) {
					want = append(want, x)
				}
			}
			same(t, name, ids(w.walk(engine.ListRequest{Filter: c.f}, nil)), ids(want))
			same(t, name+": count", must(w.e.Count(w.ctx(), client, c.f))(t).Total, len(want))
			same(t, name+": pages of one", ids(w.walk(engine.ListRequest{Filter: c.f, Limit: ptr(1)}, nil)), ids(want))
		}
	})
}

func TestU34_a_text_finds_the_union_of_its_meanings(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		id, err := base.ParseID("feed0001-0000-4000-8000-000000000001")
		ok(t, err)
		byID := w.submit(core.Submission{ID: &id})
		byKey := w.submit(core.Submission{IdempotencyKey: "feed"})
		byKind := w.submit(core.Submission{Kind: "feed.cats"})
		byTag := w.submit(core.Submission{Tags: base.Tags{"source": "rss feed"}})
		w.submit(core.Submission{IdempotencyKey: "feed-2", Tags: base.Tags{"source": "feeder"}})
		want := []string{byID.UUID.String(), byKey.UUID.String(), byKind.UUID.String(), byTag.UUID.String()}
		slices.Sort(want)
		for _, limit := range []int{1, 100} {
			var found []string
			for _, x := range w.walk(engine.ListRequest{Filter: core.Filter{Query: "feed"}, Limit: &limit}, nil) {
				found = append(found, x.ID.UUID.String())
			}
			slices.Sort(found)
			same(t, "found", found, want)
		}
		same(t, "count", must(w.e.Count(w.ctx(), client, core.Filter{Query: "feed"}))(t).Total, 4)
		same(t, "with another filter", must(w.e.Count(w.ctx(), client, core.Filter{Query: "feed", Kind: []string{"feed.cats"}}))(t).Total, 1)
	})
}

func TestL131_a_bad_filter_is_refused(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for field, f := range map[string]core.Filter{
			"status": {Status: []string{"odd"}}, "public_state": {PublicState: []string{"ready"}}, "reason": {Reason: []string{"odd"}},
			"next": {Next: []string{"odd"}}, "flow_id": {FlowID: []string{"odd"}}, "tags.Bad": {Tags: []core.TagFilter{{Key: "Bad"}}},
		} {
			_, err := w.e.List(w.ctx(), client, engine.ListRequest{Filter: f})
			same(t, "field", refused(t, err, base.CodeInvalidFilter).Field, field)
			_, err = w.e.Count(w.ctx(), client, f)
			refused(t, err, base.CodeInvalidFilter)
		}
	})
}

func TestLC19_every_order_and_its_ties(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for i := range 30 {
			w.submit(core.Submission{})
			if i%3 == 0 {
				w.turn(1)
			}
		}
		for i := range 12 {
			w.complete(w.claim())
			if i%2 == 0 {
				w.turn(1)
			}
		}
		byID := func(a, b *core.Execution) int { return slices.Compare(a.ID.UUID[:], b.ID.UUID[:]) }
		all := w.walk(engine.ListRequest{Order: store.IDAsc, Limit: ptr(7)}, nil)
		same(t, "id_asc", slices.IsSortedFunc(all, byID) && len(all) == 30, true)
		for _, c := range []struct {
			order   store.Order
			compare func(a, b *core.Execution) int
			keep    func(x *core.Execution) bool
		}{
			{store.CreatedAsc, func(a, b *core.Execution) int { return int(a.CreatedAt - b.CreatedAt) }, nil},
			{store.CreatedDesc, func(a, b *core.Execution) int { return int(b.CreatedAt - a.CreatedAt) }, nil},
			{store.CompletedDesc, func(a, b *core.Execution) int { return int(b.CompletedAt - a.CompletedAt) }, func(x *core.Execution) bool { return x.Status.Terminal() }},
		} {
			want := []*core.Execution{}
			for _, x := range all {
				if c.keep == nil || c.keep(x) {
					want = append(want, x)
				}
			}
			ascending := c.order == store.CreatedAsc
			slices.SortFunc(want, func(a, b *core.Execution) int {
				if n := c.compare(a, b); n != 0 {
					return n
				}
				if ascending {
					return byID(a, b)
				}
				return byID(b, a)
			})
			same(t, fmt.Sprint("order ", c.order), ids(w.walk(engine.ListRequest{Order: c.order, Limit: ptr(4)}, nil)), ids(want))
		}
	})
}

func TestL134_limits_and_cursors(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submitMany(1005, core.Submission{})
		page := func(limit *int, cursor string) engine.Page {
			t.Helper()
			return must(w.e.List(w.ctx(), client, engine.ListRequest{Limit: limit, Cursor: cursor}))(t)
		}
		eventually(t, "the default page is full", func() bool { return len(page(nil, "").Items) == 100 })
		zero := page(ptr(0), "")
		same(t, "0", [2]any{len(zero.Items), zero.Next}, [2]any{0, ""})
		same(t, "1000", len(page(ptr(1000), "").Items), 1000)
		above := page(ptr(1001), "")
		same(t, "1001 counts as 1000", len(above.Items), 1000)
		last := page(ptr(5), above.Next)
		same(t, "the last page has no cursor", [2]any{len(last.Items), last.Next}, [2]any{5, ""})
		_, err := w.e.List(w.ctx(), client, engine.ListRequest{Limit: ptr(-1)})
		refused(t, err, base.CodeInvalidArgument)
		for name, r := range map[string]engine.ListRequest{
			"nonsense":       {Cursor: "nonsense"},
			"another filter": {Cursor: above.Next, Filter: core.Filter{Kind: []string{"k"}}},
			"another order":  {Cursor: above.Next, Order: store.CreatedAsc},
		} {
			if _, err := w.e.List(w.ctx(), client, r); base.CodeOf(err) != base.CodeInvalidCursor {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestL135_a_walk_under_inserts_updates_and_deletes_shows_each_row_once(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		var kept, doomed []base.GivenID
		for i := range 40 {
			id := w.submit(core.Submission{Kind: "walked"})
			w.turn(1)
			if i%4 == 3 {
				doomed = append(doomed, id)
			} else {
				kept = append(kept, id)
			}
		}
		for _, id := range doomed {
			w.cancel(id)
		}
		for _, order := range []store.Order{store.CreatedDesc, store.CreatedAsc, store.IDAsc} {
			seen := map[string]int{}
			r := engine.ListRequest{Filter: core.Filter{Kind: []string{"walked"}}, Order: order, Limit: ptr(5)}
			for _, x := range w.walk(r, func(n int) {
				w.submit(core.Submission{Kind: "walked"})
				must(w.e.SetPriority(w.ctx(), operator, kept[n], 10*int(order)+n+1, engine.Operator{}))(t)
				if len(doomed) > 0 { // the row of the cursor may be among them
					ok(t, w.e.Delete(w.ctx(), operator, doomed[0], engine.Operator{}))
					doomed = doomed[1:]
				}
			}) {
				seen[x.ID.String()]++
			}
			for id, n := range seen {
				if n != 1 {
					t.Fatalf("%s appears %d times", id, n)
				}
			}
			for _, id := range kept {
				if seen[id.ID().String()] != 1 {
					t.Fatalf("order %d: %s is missing", order, id.ID())
				}
			}
		}
	})
}

func TestL134_a_cursor_stays_valid_when_its_row_is_gone(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		for range 4 {
			w.cancel(w.submit(core.Submission{}))
			w.turn(1)
		}
		r := engine.ListRequest{Limit: ptr(2), Order: store.CreatedAsc}
		first := must(w.e.List(w.ctx(), client, r))(t)
		ok(t, w.e.Delete(w.ctx(), operator, first.Items[1].Execution.ID.Given(), engine.Operator{}))
		r.Cursor = first.Next
		same(t, "rest", len(w.walk(r, nil)), 2)
	})
}

func TestL131_updated_finds_a_report_of_progress(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		task, other := w.started(core.Submission{}), w.started(core.Submission{})
		must(w.e.List(w.ctx(), client, engine.ListRequest{}))(t) // the search rows are as old as the claim
		w.turn(5000)
		moment := w.now()
		ok(t, w.e.Progress(w.ctx(), client, given(task), fence(task), ptr(50), nil))
		since, before := core.TimeRange{From: moment}, core.TimeRange{To: moment}
		for _, c := range []struct {
			updated core.TimeRange
			status  []string
			want    base.UUID
		}{
			{since, nil, task.Execution.ID.UUID},
			{since, []string{"running", "failed"}, task.Execution.ID.UUID},
			{before, nil, other.Execution.ID.UUID},
			{core.TimeRange{From: moment, To: moment + 1}, nil, task.Execution.ID.UUID},
		} {
			f := core.Filter{Updated: c.updated, Status: c.status}
			page := must(w.e.List(w.ctx(), client, engine.ListRequest{Filter: f}))(t)
			same(t, "found", len(page.Items), 1)
			same(t, "which", page.Items[0].Execution.ID.UUID, c.want)
			same(t, "counted", must(w.e.Count(w.ctx(), client, f))(t).Total, 1)
			same(t, "by status", must(w.e.CountBy(w.ctx(), client, f, "status"))(t).Counts, map[string]int{"running": 1})
		}
		ended := core.Filter{Updated: since, Status: []string{"succeeded"}}
		same(t, "ended", must(w.e.Count(w.ctx(), client, ended))(t).Total, 0)
		w.complete(task)
		same(t, "ended", must(w.e.Count(w.ctx(), client, ended))(t).Total, 1)
	})
}

func TestL131_a_principal_lists_only_its_namespaces(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.submit(core.Submission{Namespace: "a"})
		w.submit(core.Submission{Namespace: "b"})
		own := engine.Caller{Principal: "p", Actor: "client", Namespaces: []string{"a"}}
		same(t, "own", len(must(w.e.List(w.ctx(), own, engine.ListRequest{}))(t).Items), 1)
		foreign := core.Filter{Namespace: []string{"b"}}
		same(t, "foreign", len(must(w.e.List(w.ctx(), own, engine.ListRequest{Filter: foreign}))(t).Items), 0)
		same(t, "count", must(w.e.Count(w.ctx(), own, foreign))(t).Total, 0)
	})
}

func TestL131_a_list_shows_what_another_process_committed_before_it(t *testing.T) {
	t.Parallel()
	onShared(t, engine.Config{}, func(t *testing.T, w *world) {
		other := w.another()
		for i := range 10 {
			must(other.Submit(w.ctx(), client, core.Submission{Kind: "k"}))(t)
			same(t, "rows", len(must(w.e.List(w.ctx(), client, engine.ListRequest{}))(t).Items), i+1)
		}
	})
}

// overtaken is a store that refuses one round of the search rows, as it does when another process has brought them forward.
type overtaken struct {
	store.Store
	once atomic.Bool
}

func (o *overtaken) Project(ctx context.Context, p store.Projection) error {
	if o.once.CompareAndSwap(true, false) {
		return &store.Fault{Kind: store.Stale, Err: errors.New("another process was faster")}
	}
	return o.Store.Project(ctx, p)
}

func TestL131_a_process_whose_round_was_overtaken_looks_how_far_the_lists_are(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		closeEngine(t, w.e)
		faster := &overtaken{Store: w.store}
		w.e = w.openEngine(faster)
		faster.once.Store(true) // the other one came as far as before this submit
		w.submit(core.Submission{})
		eventually(t, "the round is refused", func() bool { return !faster.once.Load() })
		w.onlyStatus("k", core.Ready, 1)
	})
}
