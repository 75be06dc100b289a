package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func searchTests() []test {
	return []test{
		{"I18: an execution that was removed since it was loaded is not shown", removedBeforeShown, anyStore},
		{"I18: an execution that is being shown is removed after that", removedWhileShown, shared},
		{"L131 L133: Find and Count answer what a look at every row answers", findAgainstOracle, anyStore},
		{"L135: pages put together are the whole list, over ties, in every order", pagesOverTies, anyStore},
		{"L131: every filter alone finds what it names", everyFilterAlone, anyStore},
		{"I14: an empty list of namespaces finds nothing, an absent one everything", noNamespaces, anyStore},
		{"S39: an empty list of classes finds nothing, an absent one everything, and they may be many", noClasses, anyStore},
		{"L136: Count counts no further than its limit", countUpToALimit, anyStore},
		{"S2 U100: FirstOfLanes answers what a look at every row answers, of the first rows alone", firstOfLanes, anyStore},
		{"U35 L136: CountBy answers what a look at every row answers, no further than its limit", countByValue, anyStore},
		{"L131: a projection replaces rows and removes those gone", projectionReplaces, anyStore},
		{"a projection that does not stand where it should is stale and changes nothing", staleProjection, anyStore},
		{"of concurrent projections from one position one happens", oneProjectionWins, anyStore},
	}
}

// vocabulary of the drawn executions: no word is part of another.
func vocabulary() (kinds, values, words []string) {
	return []string{"mail", "render", "charge"}, []string{"", "gold", "silver"}, []string{"timeout", "refused", "Broken"}
}

// population makes executions that share many sort keys and differ in everything that filters use.
func (w *world) population(ctx context.Context, n int) oracle {
	kinds, values, words := vocabulary()
	var lanes []core.Lane
	var classes []core.Class
	for _, lane := range []string{"default", "second"} {
		lanes = append(lanes, w.newLane(lane))
		for _, kind := range kinds {
			for _, namespace := range []string{"default", "other"} {
				classes = append(classes, core.Class{Namespace: namespace, Lane: lane, Kind: kind})
			}
		}
	}
	_, registered := w.register(ctx, lanes, classes)
	statuses := core.Statuses()
	list := w.executions(n)
	for i, x := range list {
		x.Class = registered[i%len(registered)]
		if i%5 == 4 {
			*x = *claimed(x, w.now)
			x.Lease.InstanceID = fmt.Sprint("w-", i%2)
			x.Attempt.InstanceID = x.Lease.InstanceID
		} else {
			x.Status = statuses[i%len(statuses)]
			if x.Status == core.Running {
				x.Status = core.Suspended
			}
			x.Reason = core.ReasonsOf(x.Status)[i%len(core.ReasonsOf(x.Status))]
			if x.Next = core.NextNone; !x.Status.Terminal() {
				x.Next = core.Next(1 + i%5)
			}
		}
		x.CreatedAt, x.LastMutationAt = w.now.Add(int64(i%4)), w.now.Add(int64(i%6))
		if x.Status.Terminal() {
			x.CompletedAt = w.now.Add(int64(i % 3))
		}
		x.Priority, x.Creator, x.IdempotencyKey = i%3, fmt.Sprint("c", i%3), []string{"", "key-1", "key-2"}[i%3]
		x.FlowID.UUID[0], x.ParentID.UUID[0] = byte(i%3), byte(i%2)
		x.Tags = base.Tags{}
		if i%2 == 0 {
			x.Tags["tier.level"] = values[i/2%3]
		}
		if i%3 == 0 {
			x.Tags["team"] = values[i/3%3]
		}
		if i%4 == 0 {
			x.Failure = &core.Failure{Class: "transient", Message: words[i/4%3] + " twice", At: w.now}
		}
	}
	w.insert(ctx, list...)
	w.project(ctx, list, nil)
	return list
}

// project updates search rows without moving the projection.
func (w *world) project(ctx context.Context, rows []*core.Execution, gone []base.UUID) {
	w.t.Helper()
	at := w.poll(ctx).Projected
	if err := w.s.Project(ctx, store.Projection{From: at, To: at, Rows: rows, Gone: gone}); err != nil {
		w.t.Fatalf("Project: %v", err)
	}
}

func (w *world) find(ctx context.Context, q store.Query) []store.Hit {
	w.t.Helper()
	hits, err := w.s.Find(ctx, q)
	if err != nil {
		w.t.Fatalf("Find: %v", err)
	}
	return hits
}

// checkQuery compares Find and Count with the oracle.
func (w *world) checkQuery(ctx context.Context, what string, o oracle, q store.Query) int {
	w.t.Helper()
	q.Limit = len(o)
	want := o.find(q)
	w.equal(what, want, w.find(ctx, q))
	n, err := w.s.Count(ctx, q, len(o)+1)
	if err != nil {
		w.t.Fatalf("Count: %v", err)
	}
	if q.Order != store.CompletedDesc && n != len(want) {
		w.t.Fatalf("%s: Count says %d, want %d", what, n, len(want))
	}
	return len(want)
}

func drawQuery(t *rapid.T, w *world, o oracle) store.Query {
	kinds, values, _ := vocabulary()
	sometimes := func(name string) bool { return rapid.IntRange(0, 4).Draw(t, name) == 0 }
	span := func(name string) store.Range {
		r := store.Range{}
		if sometimes(name + " from") {
			r.From = w.now.Add(rapid.Int64Range(0, 6).Draw(t, name+" from"))
		}
		if sometimes(name + " to") {
			r.To = w.now.Add(rapid.Int64Range(0, 6).Draw(t, name+" to"))
		}
		return r
	}
	q := store.Query{Order: store.Order(rapid.IntRange(0, 3).Draw(t, "order")), Created: span("created"), Completed: span("completed"), Updated: span("updated")}
	q.Statuses, q.Later = drawSome(t, "statuses", core.Statuses()), drawSome(t, "later", core.Statuses())
	q.Reasons = drawSome(t, "reasons", []core.Reason{core.WaitingForWorker, core.Completed, core.ReasonNone, core.WaitingForDelay, core.Permanent})
	q.Nexts = drawSome(t, "nexts", []core.Next{core.NextNone, core.NextInitial, core.NextRetry, core.NextResume})
	q.Lanes = drawSome(t, "lanes", []string{"default", "second", "absent"})
	q.Kinds = drawSome(t, "kinds", append(kinds, "absent"))
	q.Namespaces = drawSome(t, "namespaces", []string{"default", "other", "absent"})
	q.Classes = drawSome(t, "classes", []int32{o[0].Class.ID, o[1].Class.ID, o[5].Class.ID, 1 << 30})
	q.Instances = drawSome(t, "instances", []string{"w-0", "w-1", "absent"})
	q.Creators = drawSome(t, "creators", []string{"c0", "c1", "absent"})
	q.Keys = drawSome(t, "keys", []string{"key-1", "key-2", "absent"})
	q.Flows = drawSome(t, "flows", []base.UUID{{1}, {2}, {9}})
	q.Parents = drawSome(t, "parents", []base.UUID{{1}, {9}})
	if sometimes("minimum") {
		q.PriorityMin = new(rapid.IntRange(0, 3).Draw(t, "minimum"))
	}
	if sometimes("maximum") {
		q.PriorityMax = new(rapid.IntRange(0, 3).Draw(t, "maximum"))
	}
	if sometimes("text") {
		q.Text = drawSearchText(t, o)
	}
	for _, key := range drawSome(t, "tags", []string{"team", "tier.level", "absent"}) {
		term := store.TagTerm{Key: key}
		if rapid.Bool().Draw(t, "tag value") {
			term.Value = new(rapid.SampledFrom(values).Draw(t, "value"))
		}
		q.Tags = append(q.Tags, term)
	}
	return q
}

// drawSearchText draws a free text with some of its meanings, possibly none.
func drawSearchText(t *rapid.T, o oracle) *store.Text {
	text := &store.Text{
		Key:   rapid.SampledFrom([]string{"", "key-1", "absent"}).Draw(t, "key in the text"),
		Words: drawSome(t, "words", []string{"mail", "charge", "gold", "timeout", "broken", "twice", "absent"}),
	}
	if rapid.Bool().Draw(t, "id in the text") {
		id := rapid.SampledFrom(o).Draw(t, "id").ID.UUID.String()
		text.IDPrefix = id[:rapid.SampledFrom([]int{1, 8, 9, 14, 20, 36}).Draw(t, "length")]
	}
	return text
}

// drawSome draws a few of the values, and mostly none, in which case the filter is absent.
func drawSome[V comparable](t *rapid.T, name string, values []V) []V {
	if rapid.IntRange(0, 5).Draw(t, name+" present") > 0 {
		return nil
	}
	return rapid.SliceOfNDistinct(rapid.SampledFrom(values), 1, min(3, len(values)), rapid.ID[V]).Draw(t, name)
}

func findAgainstOracle(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	o := w.population(ctx, 90)
	testseed.Check(t, func(rt *rapid.T) {
		w := w.on(rt)
		q := drawQuery(rt, w, o)
		w.checkQuery(ctx, "whole list", o, q)
		q.Limit = rapid.IntRange(1, 7).Draw(rt, "limit")
		if rapid.Bool().Draw(rt, "after present") { // a cursor stays valid if its row is gone or never matched (L134)
			x := rapid.SampledFrom(o).Draw(rt, "after")
			q.After = &store.Hit{ID: x.ID.UUID, Created: x.CreatedAt, Completed: x.CompletedAt}
		}
		w.equal("page", o.find(q), w.find(ctx, q))
	})
}

func pagesOverTies(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	o := w.population(ctx, 90)
	for order := store.CreatedDesc; order <= store.IDAsc; order++ {
		for _, limit := range []int{1, 7, 90} {
			whole := o.find(store.Query{Order: order, Limit: len(o)})
			var walked []store.Hit
			q := store.Query{Order: order, Limit: limit}
			for {
				page := w.find(ctx, q)
				if len(page) == 0 {
					break
				}
				walked = append(walked, page...)
				q.After = &page[len(page)-1]
			}
			w.equal(fmt.Sprintf("order %d, pages of %d", order, limit), whole, walked)
		}
	}
}

func everyFilterAlone(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	o := w.population(ctx, 90)
	gold, empty := "gold", ""
	low, high := 1, 1
	for _, one := range []struct {
		what string
		q    store.Query
	}{
		{"status", store.Query{Statuses: []core.Status{core.Ready, core.Failed}}},
		{"reason", store.Query{Reasons: []core.Reason{core.WaitingForWorker, core.Completed}}},
		{"next", store.Query{Nexts: []core.Next{core.NextNone}}},
		{"lane", store.Query{Lanes: []string{"second"}}},
		{"kind", store.Query{Kinds: []string{"mail", "charge"}}},
		{"namespace", store.Query{Namespaces: []string{"other"}}},
		{"class", store.Query{Classes: []int32{o[1].Class.ID, o[5].Class.ID, 1 << 30}}},
		{"class and status", store.Query{Classes: []int32{o[0].Class.ID, o[1].Class.ID}, Statuses: []core.Status{core.Blocked, core.Running, core.Failed}}},
		{"tag key", store.Query{Tags: []store.TagTerm{{Key: "team"}}}},
		{"tag value", store.Query{Tags: []store.TagTerm{{Key: "team", Value: &gold}}}},
		{"empty tag value", store.Query{Tags: []store.TagTerm{{Key: "team", Value: &empty}}}},
		{"two tags", store.Query{Tags: []store.TagTerm{{Key: "team"}, {Key: "tier.level"}}}},
		{"created", store.Query{Created: store.Range{From: w.now.Add(1), To: w.now.Add(3)}}},
		{"completed before", store.Query{Completed: store.Range{To: w.now.Add(2)}}},
		{"completed from", store.Query{Completed: store.Range{From: w.now.Add(2)}}},
		{"updated", store.Query{Updated: store.Range{From: w.now.Add(5)}}},
		{"updated, or running", store.Query{Updated: store.Range{From: w.now.Add(5)}, Later: []core.Status{core.Running}}},
		{"flow", store.Query{Flows: []base.UUID{{1}, {9}}}},
		{"parent", store.Query{Parents: []base.UUID{{1}}}},
		{"instance", store.Query{Instances: []string{"w-1"}}},
		{"creator", store.Query{Creators: []string{"c1", "c2"}}},
		{"key", store.Query{Keys: []string{"key-1"}}},
		{"priority", store.Query{PriorityMin: &low, PriorityMax: &high}},
		{"id prefix", store.Query{Text: &store.Text{IDPrefix: o[0].ID.UUID.String()[:20]}}},
		{"whole id", store.Query{Text: &store.Text{IDPrefix: o[0].ID.UUID.String()}}},
		{"key in a text", store.Query{Text: &store.Text{Key: "key-2"}}},
		{"word of the kind", store.Query{Text: &store.Text{Words: []string{"render"}}}},
		{"word of a tag", store.Query{Text: &store.Text{Words: []string{"silver"}}}},
		{"word of a failure", store.Query{Text: &store.Text{Words: []string{"broken", "twice"}}}},
		{"all meanings of a text", store.Query{Text: &store.Text{IDPrefix: o[0].ID.UUID.String(), Key: "key-1", Words: []string{"broken"}}}},
		{"a text and a lane", store.Query{Lanes: []string{"second"}, Text: &store.Text{Key: "key-1", Words: []string{"broken"}}}},
		{"completed order", store.Query{Order: store.CompletedDesc}},
	} {
		if n := w.checkQuery(ctx, one.what, o, one.q); n == 0 || n == len(o) {
			t.Fatalf("%s: %d of %d rows match, the test shows nothing", one.what, n, len(o))
		}
	}
	for _, pattern := range []string{"%", "_", "0%", ""} {
		w.equal("a prefix is no pattern: "+pattern, 0, len(w.find(ctx, store.Query{Text: &store.Text{IDPrefix: pattern}, Limit: 9})))
	}
}

func noNamespaces(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	o := w.population(ctx, 20)
	w.equal("all", len(o), len(w.find(ctx, store.Query{Limit: 100})))
	w.equal("none", 0, len(w.find(ctx, store.Query{Namespaces: []string{}, Limit: 100})))
	n, err := w.s.Count(ctx, store.Query{Namespaces: []string{}}, 100)
	if err != nil || n != 0 {
		t.Fatalf("Count without a namespace: %d, %v", n, err)
	}
}

func noClasses(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	o := w.population(ctx, 20)
	many := make([]int32, 50_000)
	for i := range many {
		many[i] = int32(i)
	}
	for _, one := range []struct {
		classes []int32
		want    int
	}{{nil, len(o)}, {[]int32{}, 0}, {many, len(o)}} {
		q := store.Query{Classes: one.classes, Limit: 100}
		w.equal("found", one.want, len(w.find(ctx, q)))
		n, err := w.s.Count(ctx, q, 100)
		if err != nil || n != one.want {
			t.Fatalf("Count of %d classes: %d, %v", len(one.classes), n, err)
		}
	}
}

func countUpToALimit(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	o := w.population(ctx, 50)
	for limit, want := range map[int]int{1: 1, 49: 49, 50: 50, 51: 50, 10_000: 50} {
		n, err := w.s.Count(ctx, store.Query{}, limit)
		if err != nil || n != want {
			t.Fatalf("Count of %d rows up to %d: %d, %v", len(o), limit, n, err)
		}
	}
}

func countByValue(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	o := w.population(ctx, 90)
	fields := []store.GroupBy{{Field: store.ByState}, {Field: store.ByLane}, {Field: store.ByKind}, {Field: store.ByTag, Tag: "team"}, {Field: store.ByTag, Tag: "absent"}, {Field: store.ByInstance}, {Field: store.ByLaneStatus}}
	testseed.Check(t, func(rt *rapid.T) {
		w := w.on(rt)
		q := drawQuery(rt, w, o)
		q.Order = store.CreatedDesc
		by := rapid.SampledFrom(fields).Draw(rt, "by")
		if by.Field == store.ByInstance && len(q.Instances) == 0 {
			q.Instances = []string{"w-0", "w-1"}
		}
		want := o.countBy(q, by)
		w.equal("groups", want, w.countBy(ctx, q, by, len(o)))
		all := 0
		for _, n := range want {
			all += n
		}
		limit, found := rapid.IntRange(1, 60).Draw(rt, "limit"), 0
		for group, n := range w.countBy(ctx, q, by, limit) {
			if n > want[group] {
				rt.Fatalf("%+v: %d of %d", group, n, want[group])
			}
			found += n
		}
		w.equal("rows looked at", min(limit, all), found)
	})
}

func firstOfLanes(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	o := w.population(ctx, 90)
	testseed.Check(t, func(rt *rapid.T) {
		w := w.on(rt)
		q := drawQuery(rt, w, o)
		q.After, q.Order, q.Limit = nil, store.CreatedAsc, rapid.IntRange(1, 100).Draw(rt, "limit")
		each := rapid.IntRange(1, 5).Draw(rt, "each")
		hits, err := w.s.FirstOfLanes(ctx, q, each)
		if err != nil {
			rt.Fatalf("FirstOfLanes: %v", err)
		}
		w.equal("hits", o.firstOfLanes(q, each), hits)
	})
}

// countBy returns the result of CountBy by value.
func (w *world) countBy(ctx context.Context, q store.Query, by store.GroupBy, limit int) map[store.Group]int {
	w.t.Helper()
	groups, err := w.s.CountBy(ctx, q, by, limit)
	if err != nil {
		w.t.Fatalf("CountBy: %v", err)
	}
	counts := map[store.Group]int{}
	for _, group := range groups {
		n := group.Rows
		group.Rows = 0
		counts[group] += n
	}
	return counts
}

func projectionReplaces(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	o := w.population(ctx, 30)
	changed := make(oracle, 0, 10)
	for _, x := range o[:10] {
		y := claimed(x, w.now.Add(50))
		y.CompletedAt, y.Priority, y.Tags, y.Failure = 0, 9000, base.Tags{"team": "silver", "fresh": "1"}, nil
		changed = append(changed, y)
	}
	gone := idsOf(o[10:20])
	w.project(ctx, changed, append(gone, newUUID(w.now)))
	now := slices.Concat(changed, o[20:])
	priority := 9000
	for _, q := range []store.Query{
		{},
		{Statuses: []core.Status{core.Running}},
		{PriorityMin: &priority},
		{Tags: []store.TagTerm{{Key: "fresh"}}},
		{Tags: []store.TagTerm{{Key: "tier.level"}}},
		{Text: &store.Text{Words: []string{"timeout"}}},
		{Text: &store.Text{Words: []string{"silver"}}},
		{Instances: []string{"w-1"}},
		{Order: store.CompletedDesc},
		{Order: store.IDAsc},
	} {
		w.checkQuery(ctx, fmt.Sprintf("%+v", q), now, q)
	}
}

func staleProjection(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	w.insert(ctx, x)
	at := w.poll(ctx).Projected
	if err := w.s.Project(ctx, store.Projection{From: at, To: at + 5}); err != nil {
		t.Fatal(err)
	}
	w.equal("projected", at+5, w.poll(ctx).Projected)
	for _, from := range []int64{at, at + 4, at + 6} {
		w.expectFault(w.s.Project(ctx, store.Projection{From: from, To: from + 1, Rows: []*core.Execution{x}}), store.Stale)
	}
	w.equal("projected", at+5, w.poll(ctx).Projected)
	w.equal("search rows", 0, len(w.find(ctx, store.Query{Limit: 9})))
}

func oneProjectionWins(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	at := w.poll(ctx).Projected
	won := make([]bool, crowd)
	err := together(crowd, func(i int) error {
		for {
			err := w.s.Project(ctx, store.Projection{From: at, To: at + int64(i) + 1})
			if err != nil && passing(err) && ctx.Err() == nil {
				continue
			}
			won[i] = err == nil
			if err != nil && store.FaultOf(err) != store.Stale {
				return err
			}
			return nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	winner := slices.Index(won, true)
	if winner < 0 || slices.Contains(won[winner+1:], true) {
		t.Fatalf("projections from one position that happened: %v", won)
	}
	w.equal("projected", at+int64(winner)+1, w.poll(ctx).Projected)
}

func removedBeforeShown(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x, kept := claimed(w.execution(), w.now), claimed(w.execution(), w.now)
	w.insert(ctx, x, kept)
	at := w.poll(ctx).Projected
	w.put(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}}, &store.Changes{Remove: []base.UUID{x.ID.UUID}})
	shown := store.Projection{From: at, To: at, Rows: []*core.Execution{x, kept}, Doubted: []base.UUID{kept.ID.UUID, x.ID.UUID, x.ID.UUID}}
	if err := w.s.Project(ctx, shown); err != nil {
		t.Fatal(err)
	}
	hits, err := w.s.Find(ctx, store.Query{Limit: 10})
	if err != nil || len(hits) != 1 || hits[0].ID != kept.ID.UUID {
		t.Fatalf("%v are shown: %v", hits, err)
	}
}

func removedWhileShown(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	at := w.poll(ctx).Projected
	for range 20 {
		x := claimed(w.execution(), w.now)
		w.insert(ctx, x)
		removed := make(chan error, 1)
		go func() {
			removed <- insist(ctx, w.s, store.Want{Executions: []base.UUID{x.ID.UUID}}, func(*store.Loaded) *store.Changes {
				return &store.Changes{Remove: []base.UUID{x.ID.UUID}}
			})
		}()
		if err := w.s.Project(ctx, store.Projection{From: at, To: at, Rows: []*core.Execution{x}, Doubted: []base.UUID{x.ID.UUID}}); err != nil && !passing(err) {
			t.Fatal(err)
		}
		if err := <-removed; err != nil {
			t.Fatal(err)
		}
	}
	if hits, err := w.s.Find(ctx, store.Query{Limit: 10}); err != nil || len(hits) != 0 {
		t.Fatalf("%v are shown: %v", hits, err)
	}
}
