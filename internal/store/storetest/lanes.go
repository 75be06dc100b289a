package storetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func dictionaryTests() []test {
	return []test{
		{"a fresh store has no lanes and no classes", freshDictionary, anyStore},
		{"S2: Register adds what is missing and answers in the order given", registerAnswersInOrder, anyStore},
		{"Register changes nothing that is there", registerChangesNothing, anyStore},
		{"S73: concurrent registrations give every name one number", concurrentRegistrations, anyStore},
		{"S13: classes differ by lane, namespace, kind, capabilities, fairness key and needs", classIdentity, anyStore},
		{"the dictionary's version rises when something was added and not otherwise", dictionaryVersion, anyStore},
		{"what registrations return adds up to the dictionary", registrationsAddUp, anyStore},
		{"changes decided by an old dictionary are stale", staleDictionary, anyStore},
		{"a retired class keeps its executions and comes back when it is registered", retiredClass, anyStore},
		{"the classes without executions are known", unusedClasses, anyStore},
		{"a dropped class is gone and may be registered again", droppedClass, anyStore},
	}
}

func laneTests() []test {
	return []test{
		{"S2: every field of a lane comes back", laneRoundTrip, anyStore},
		{"S4: a lane that is shared is not changed before the transaction ends", sharedLaneIsNotLocked, anyStore},
		{"S4: a lane that is being changed is not shared", lockedLaneIsNotShared, anyStore},
		{"S4: transactions share a lane with each other", lanesAreShared, shared},
		{"S4: no claim commits after a pause was acknowledged", pauseIsABarrier, anyStore},
	}
}

func (w *world) dictionary(ctx context.Context) *store.Dictionary {
	w.t.Helper()
	d, err := w.s.Dictionary(ctx)
	if err != nil {
		w.t.Fatalf("Dictionary: %v", err)
	}
	return d
}

func freshDictionary(t *testing.T, f Factory) {
	s := f.Open(t)
	d, err := s.Dictionary(t.Context())
	if err != nil || len(d.Lanes) != 0 || len(d.Classes) != 0 {
		t.Fatalf("dictionary of a fresh store: %+v, %v", d, err)
	}
}

func registerAnswersInOrder(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	lanes := []core.Lane{w.newLane("b"), w.newLane("default"), w.newLane("a"), w.newLane("Z~!")}
	classes := []core.Class{newClass("b", "x"), newClass("default", "mail"), newClass("a", "x"), newClass("default", "other")}
	gotLanes, gotClasses := w.register(ctx, lanes, classes)
	laneNumbers, classNumbers := map[int32]bool{}, map[int32]bool{}
	for i, lane := range gotLanes {
		laneNumbers[lane.ID] = true
		lane.ID = 0
		w.equal("lane", lanes[i], lane)
	}
	for i, class := range gotClasses {
		classNumbers[class.ID] = true
		named := *class
		named.ID = 0
		w.equal("class", classes[i], named)
	}
	if len(laneNumbers) != 4 || len(classNumbers) != 4 || gotLanes[1].ID != w.lane.ID || gotClasses[1].ID != w.class.ID {
		t.Fatalf("numbers: %v and %v; the known ones %d and %d", gotLanes, gotClasses, w.lane.ID, w.class.ID)
	}
	d := w.dictionary(ctx)
	if len(d.Lanes) != 4 || len(d.Classes) != 4 {
		t.Fatalf("dictionary has %d lanes and %d classes", len(d.Lanes), len(d.Classes))
	}
	again, _ := w.register(ctx, []core.Lane{lanes[2], lanes[0], lanes[2]}, nil)
	w.equal("lanes named again, one twice", []core.Lane{gotLanes[2], gotLanes[0], gotLanes[2]}, again)
}

func registerChangesNothing(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	before := w.dictionary(ctx)
	other := w.newLane("default")
	other.Settings.State, other.Settings.MaxConcurrent, other.Revision, other.RegisteredBy = core.LaneDisabled, 9, 7, "put_lane"
	lanes, classes := w.register(ctx, []core.Lane{other}, []core.Class{newClass("default", "mail")})
	w.equal("lane", w.lane, lanes[0])
	w.equal("class", w.class, classes[0])
	w.equal("dictionary", before, w.dictionary(ctx))
}

func concurrentRegistrations(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	handles := []store.Store{w.s}
	if f.OpenAgain != nil {
		handles = append(handles, f.OpenAgain(t, w.s))
	}
	const names = 10
	laneNumbers, classNumbers := [crowd][names]int32{}, [crowd][names]int32{}
	err := together(crowd, func(i int) error {
		for n := range names {
			at := n
			if i%2 == 1 {
				at = names - 1 - n // in reverse order, so that they collide
			}
			name := fmt.Sprint("lane-", at)
			lanes, classes := []core.Lane{w.newLane(name), w.newLane("default")}, []core.Class{newClass(name, "k"), newClass("default", name)}
			known, err := handles[i%len(handles)].Register(ctx, lanes, classes)
			for err != nil && passing(err) && ctx.Err() == nil { // a store may give up waiting for the others
				known, err = handles[i%len(handles)].Register(ctx, lanes, classes)
			}
			if err != nil {
				return err
			}
			laneNumbers[i][at], classNumbers[i][at] = known.Lanes[0].ID, known.Classes[1].ID
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range crowd {
		if laneNumbers[i] != laneNumbers[0] || classNumbers[i] != classNumbers[0] {
			t.Fatalf("numbers differ: %v and %v, %v and %v", laneNumbers[i], laneNumbers[0], classNumbers[i], classNumbers[0])
		}
	}
	d := w.dictionary(ctx)
	if len(d.Lanes) != names+1 || len(d.Classes) != 2*names+1 {
		t.Fatalf("dictionary has %d lanes and %d classes", len(d.Lanes), len(d.Classes))
	}
}

func registrationsAddUp(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	want := *w.dictionary(ctx)
	for i := range 5 {
		name := fmt.Sprint("lane-", i)
		lanes := []core.Lane{w.newLane("default"), w.newLane(name), w.newLane(name)}
		classes := []core.Class{newClass("default", "mail"), newClass(name, "a"), newClass("default", name), newClass(name, "a")}
		known, err := w.s.Register(ctx, lanes, classes)
		if err != nil {
			t.Fatal(err)
		}
		w.equal("version", want.Version+1, known.Version)
		if known.Classes[1] != known.Classes[3] || known.Classes[0] != w.class {
			t.Fatal("a class has two pointers")
		}
		want.Version = known.Version
		want.Lanes = append(want.Lanes, known.Lanes[1])
		want.Classes = append(want.Classes, known.Classes[1:3]...)
		again, err := w.s.Register(ctx, lanes, classes)
		if err != nil {
			t.Fatal(err)
		}
		w.equal("nothing new", store.Registered{Lanes: known.Lanes, Classes: known.Classes, Incarnation: want.Incarnation}, again)
	}
	got := *w.dictionary(ctx)
	got.Classes = slices.Clone(got.Classes)
	for _, classes := range [][]*core.Class{want.Classes, got.Classes} {
		slices.SortFunc(classes, func(a, b *core.Class) int { return cmp.Compare(a.ID, b.ID) })
	}
	w.equal("dictionary", want, got)
}

func classIdentity(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	plain := core.Class{Namespace: "default", Lane: "default", Kind: "k"}
	variants := slices.Repeat([]core.Class{plain}, 10)
	variants[1].Namespace = "other"
	variants[2].Kind = "K"
	variants[3].Capabilities = []string{"gpu"}
	variants[4].Capabilities = []string{"gpu", "zone=ü"}
	variants[5].FairnessKey = "customer"
	variants[6].Lane = "second"
	variants[7].Needs = `{"q":[{"quota":"api","key":"ü'"}]}`
	variants[8].Needs = `{"q":[{"quota":"api"}]}`
	variants[9].Needs, variants[9].Capabilities = variants[8].Needs, variants[3].Capabilities
	_, classes := w.register(ctx, []core.Lane{w.newLane("second")}, variants)
	numbers := map[int32]bool{}
	for _, class := range classes {
		numbers[class.ID] = true
	}
	if len(numbers) != len(variants) {
		t.Fatalf("%d different classes got %d numbers", len(variants), len(numbers))
	}
	_, again := w.register(ctx, nil, variants)
	w.equal("the same classes", classes, again)
	stored := map[int32]*core.Class{}
	for _, class := range w.dictionary(ctx).Classes {
		stored[class.ID] = class
	}
	for i, class := range classes {
		variants[i].ID = class.ID
		w.equal("class", &variants[i], stored[class.ID])
	}
}

func dictionaryVersion(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	v := w.version(ctx)
	steps := []struct {
		what  string
		rises bool
		do    func()
	}{
		{"nothing new", false, func() {
			w.register(ctx, []core.Lane{w.newLane("default")}, []core.Class{newClass("default", "mail")})
		}},
		{"nothing named", false, func() { w.register(ctx, nil, nil) }},
		{"a new lane", true, func() { w.register(ctx, []core.Lane{w.newLane("second")}, nil) }},
		{"a new class", true, func() { w.register(ctx, nil, []core.Class{newClass("second", "k")}) }},
		{"an execution", false, func() { w.insert(ctx, w.execution()) }},
		{"a changed lane", true, func() {
			w.put(ctx, store.Want{LockLanes: []int32{w.lane.ID}}, &store.Changes{Lanes: []core.Lane{w.lane}})
		}},
		{"a retired class", true, func() { w.add(ctx, &store.Changes{RetireClasses: w.retired(w.class)}) }},
		{"a class that comes back", true, func() { w.register(ctx, nil, []core.Class{*w.class}) }},
		{"a class retired again", true, func() { w.add(ctx, &store.Changes{RetireClasses: w.retired(w.class)}) }},
		{"a dropped class", true, func() { w.add(ctx, &store.Changes{DropClasses: w.retired(w.class)}) }},
	}
	for _, step := range steps {
		step.do()
		next := w.version(ctx)
		if step.rises && next <= v || !step.rises && next != v {
			t.Fatalf("%s: version went from %d to %d", step.what, v, next)
		}
		v = next
		tx, got := w.begin(ctx, store.Want{LockLanes: []int32{w.lane.ID}})
		tx.Rollback(ctx)
		if read := w.read(ctx, store.Want{ShareLanes: []int32{w.lane.ID}}); got.Dictionary != v || read.Dictionary != v || w.dictionary(ctx).Version != v {
			t.Fatalf("%s: Poll says %d, Begin %d, Read %d, Dictionary %d", step.what, v, got.Dictionary, read.Dictionary, w.dictionary(ctx).Version)
		}
	}
}

func staleDictionary(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	v := w.version(ctx)
	x, y := w.execution(), w.execution()
	w.add(ctx, &store.Changes{Dictionary: v, Insert: []*core.Execution{x}})
	w.register(ctx, []core.Lane{w.newLane("second")}, nil)
	w.refuse(ctx, store.Want{}, &store.Changes{Dictionary: v, Insert: []*core.Execution{y}}, store.Stale)
	w.refuse(ctx, store.Want{Executions: []base.UUID{x.ID.UUID}}, &store.Changes{Dictionary: v, Insert: []*core.Execution{y}}, store.Stale)
	w.gone(ctx, y.ID.UUID)
	w.add(ctx, &store.Changes{Dictionary: w.version(ctx), Insert: []*core.Execution{y}})
	w.equal("execution", y, w.load(ctx, y.ID.UUID))
}

// retired returns a class as retired at the present time of the suite.
func (w *world) retired(class *core.Class) []store.RetiredClass {
	return []store.RetiredClass{{ID: class.ID, Since: w.now}}
}

func retiredClass(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	x := w.execution()
	w.insert(ctx, x)
	w.add(ctx, &store.Changes{RetireClasses: w.retired(w.class)})
	w.add(ctx, &store.Changes{RetireClasses: []store.RetiredClass{{ID: w.class.ID, Since: w.now.Add(1)}}})
	w.equal("retired", w.retired(w.class), w.dictionary(ctx).Retired)
	w.equal("classes", []*core.Class{w.class}, w.dictionary(ctx).Classes)
	w.equal("its execution", x, w.load(ctx, x.ID.UUID))
	w.add(ctx, &store.Changes{DropClasses: []store.RetiredClass{{ID: w.class.ID, Since: w.now.Add(1)}}})
	w.equal("classes after a drop of another moment", []*core.Class{w.class}, w.dictionary(ctx).Classes)
	_, again := w.register(ctx, nil, []core.Class{*w.class})
	w.equal("registered again", []*core.Class{w.class}, again)
	w.equal("retired", 0, len(w.dictionary(ctx).Retired))
	w.add(ctx, &store.Changes{DropClasses: append(w.retired(w.class), store.RetiredClass{ID: w.class.ID})})
	w.equal("classes after a drop of one that is in use", []*core.Class{w.class}, w.dictionary(ctx).Classes)
}

func unusedClasses(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	_, added := w.register(ctx, nil, []core.Class{newClass("default", "a"), newClass("default", "b"), newClass("default", "c")})
	x, y := w.execution(), w.execution()
	y.Class = added[1]
	w.insert(ctx, x, y)
	w.add(ctx, &store.Changes{RetireClasses: w.retired(added[2])})
	sorted := func(classes ...*core.Class) (ids []int32) {
		for _, class := range classes {
			ids = append(ids, class.ID)
		}
		slices.Sort(ids)
		return ids
	}
	unused := func() []int32 {
		ids, err := w.s.UnusedClasses(ctx)
		if err != nil {
			t.Fatalf("UnusedClasses: %v", err)
		}
		slices.Sort(ids)
		return ids
	}
	w.equal("unused", sorted(added[0], added[2]), unused())
	w.put(ctx, store.Want{Executions: []base.UUID{y.ID.UUID}}, &store.Changes{Remove: []base.UUID{y.ID.UUID}})
	w.equal("unused", sorted(added...), unused())
}

func droppedClass(t *testing.T, f Factory) {
	ctx, w := start(t, f)
	_, added := w.register(ctx, nil, []core.Class{newClass("default", "short")})
	w.add(ctx, &store.Changes{RetireClasses: w.retired(added[0])})
	w.add(ctx, &store.Changes{DropClasses: w.retired(added[0])})
	w.equal("classes", []*core.Class{w.class}, w.dictionary(ctx).Classes)
	_, again := w.register(ctx, nil, []core.Class{newClass("default", "short")})
	w.equal("classes", 2, len(w.dictionary(ctx).Classes))
	x := w.execution()
	x.Class = again[0]
	w.insert(ctx, x)
	w.equal("execution", x, w.load(ctx, x.ID.UUID))
}
