package txn

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Dictionary is all lanes, classes and rules at one moment. It is immutable and shared.
type Dictionary struct {
	Version     int64
	incarnation string // of the database; all other caches of this process belong to it too (R3)
	Era         int64  // counts the dictionaries that were read from the store; those of one era differ only by what was added
	Lanes       map[string]*core.Lane
	byID        map[int32]*core.Lane
	Table       *classTable              // of the era
	OfLane      map[string][]*core.Class // all classes; within an era the lists only grow
	retired     []store.RetiredClass
	rules       *parsedRules
}

// dictionaryCache keeps the newest dictionary that this process has read.
type dictionaryCache struct {
	store   store.Store
	current atomic.Pointer[Dictionary]
	reading CallLock               // held while a newer one is read, or one is extended
	eras    int64                  // counts what was read
	changed func()                 // called when a newer one was read
	renamed func()                 // called when the log has another identity
	reborn  func(next *Dictionary) // switches to the dictionary of another incarnation
	added   func()                 // called when this process has registered something

	registering CallLock // one registration at a time: each extends the dictionary of the one before
	wanted      sync.Map // classes that callers wait to register, by name
	underWay    registrations
}

func newDictionary(d *store.Dictionary) *Dictionary {
	dict := &Dictionary{
		Version: d.Version, incarnation: d.Incarnation,
		Lanes: make(map[string]*core.Lane, len(d.Lanes)), byID: make(map[int32]*core.Lane, len(d.Lanes)),
		Table: newClassTable(len(d.Classes)), OfLane: make(map[string][]*core.Class, len(d.Lanes)), retired: d.Retired,
		rules: &parsedRules{docs: d.Rules},
	}
	retired := make(map[int32]bool, len(d.Retired))
	for _, class := range d.Retired {
		retired[class.ID] = true
	}
	for i := range d.Lanes {
		lane := &d.Lanes[i]
		dict.Lanes[lane.Name], dict.byID[lane.ID] = lane, lane
	}
	for _, class := range d.Classes {
		dict.Table.add(class, d.Version, !retired[class.ID])
		dict.OfLane[class.Lane] = append(dict.OfLane[class.Lane], class)
	}
	return dict
}

// with returns the dictionary after a registration that was made on exactly this one, or nil if more has changed than was added. It must be called
// at most once, and its result must become the newest dictionary: both share the table of classes.
func (d *Dictionary) with(added store.Registered) *Dictionary {
	back := func(class *core.Class) bool {
		entry := d.Table.Entry(class.ID, d.Version)
		return entry != nil && !entry.usable
	}
	if added.Version != d.Version+1 || added.Incarnation != d.incarnation || slices.ContainsFunc(added.Classes, back) {
		return nil
	}
	next := *d
	next.Version = added.Version
	if len(added.Lanes) > 0 {
		next.Lanes, next.byID = maps.Clone(d.Lanes), maps.Clone(d.byID)
	}
	for i := range added.Lanes {
		if lane := &added.Lanes[i]; next.byID[lane.ID] == nil {
			next.Lanes[lane.Name], next.byID[lane.ID] = lane, lane
		}
	}
	// The table of classes is shared and only grows: an entry has the version that added it, so that the dictionary before this one does not see
	// it. Lists of lanes are appended to behind the length that older dictionaries know.
	next.OfLane = maps.Clone(d.OfLane)
	for _, class := range added.Classes {
		if !next.usable(class.ID) {
			next.Table.add(class, next.Version, true)
			next.OfLane[class.Lane] = append(next.OfLane[class.Lane], class)
		}
	}
	return &next
}

// Gives reports whether new executions may use the class. The number alone is not enough: in another incarnation it may belong to another class.
func (d *Dictionary) Gives(class *core.Class) bool {
	known := d.Table.Entry(class.ID, d.Version)
	return known != nil && known.usable && (known.class == class || NameOf(known.class) == NameOf(class))
}

// Now is the newest dictionary known.
func (d *dictionaryCache) Now() *Dictionary { return d.current.Load() }

// At returns a dictionary of at least that version.
func (d *dictionaryCache) At(ctx context.Context, version int64) (*Dictionary, error) {
	if dict := d.Now(); dict.Version >= version {
		return dict, nil
	}
	// Usually the newer version is one that this process is registering itself. Waiting for that costs less than reading all classes.
	d.underWay.await(ctx, func() bool { return d.Now().Version >= version })
	if dict := d.Now(); dict.Version >= version {
		return dict, nil
	}
	if err := d.reloadUnless(ctx, func() bool { return d.Now().Version >= version }); err != nil {
		return nil, err
	}
	return d.Now(), nil
}

// heard makes sure that this process has read what another one has changed. Hints of the same change, and those that arrive during the read, cause
// no further read: there may be hundreds of thousands of classes.
func (d *dictionaryCache) Heard(ctx context.Context) error {
	seen, err := d.store.Poll(ctx, store.PollAsk{})
	if err != nil {
		return err
	}
	if seen.Incarnation != d.Now().incarnation {
		return d.Reload(ctx)
	}
	_, err = d.At(ctx, seen.Dictionary)
	return err
}

// beyond makes sure that the dictionary is newer than the version: the store has refused what was decided on it. Usually this process itself has
// registered something meanwhile, and then need not read all classes again.
func (d *dictionaryCache) beyond(ctx context.Context, version int64) error {
	d.underWay.await(ctx, func() bool { return d.Now().Version > version })
	newer := func() bool { return d.Now().Version > version }
	if newer() {
		return nil
	}
	return d.reloadUnless(ctx, newer)
}

// Reload reads the dictionary from the store.
func (d *dictionaryCache) Reload(ctx context.Context) error {
	return d.reloadUnless(ctx, func() bool { return false })
}

// reloadUnless reloads unless known reports that another reload has made it unnecessary: transactions that meet a newer dictionary at the same time
// all call it, and one read serves all of them.
func (d *dictionaryCache) reloadUnless(ctx context.Context, known func() bool) error {
	if err := d.reading.Lock(ctx); err != nil {
		return err
	}
	defer d.reading.Unlock()
	if known() {
		return nil
	}
	log := d.store.Info().LogID
	loaded, err := d.store.Dictionary(ctx)
	if err != nil {
		return err
	}
	if d.store.Info().LogID != log {
		d.renamed()
	}
	next := newDictionary(loaded)
	d.eras++
	next.Era = d.eras
	switch old := d.Now(); {
	case old != nil && old.incarnation != next.incarnation:
		d.reborn(next)
	case old == nil || next.Version > old.Version:
		// Claims look again only after the new dictionary can be seen: in the other order a pick could plan with the old one and find no reason to
		// look later.
		d.current.Store(next)
		d.changed()
	}
	return nil
}

// extend adds what this process has registered, which is cheaper than reading everything again. It reports whether the dictionary is then complete.
// Existing queues are not looked at again: nothing has changed for them.
func (d *dictionaryCache) extend(ctx context.Context, added store.Registered) bool {
	if d.reading.Lock(ctx) != nil {
		return false
	}
	defer d.reading.Unlock()
	old := d.Now()
	if added.Version != 0 && added.Version <= old.Version && added.Incarnation == old.incarnation {
		return true // it was read just now
	}
	next := old.with(added)
	if next != nil {
		d.current.Store(next)
	}
	return next != nil
}

// ClassOf returns the numbered class that equals want, registering it and its lane if they are new (S1).
func (d *dictionaryCache) ClassOf(ctx context.Context, want core.Class) (*core.Class, error) {
	name := NameOf(&want)
	if class := d.Now().Named(name); class != nil {
		return class, nil
	}
	// Announced before the lock is waited for: the caller that has it registers all classes that are announced, in one version.
	d.wanted.Store(name, want)
	defer d.wanted.Delete(name)
	if err := d.registering.Lock(ctx); err != nil { // many callers meet new classes at the same time: one of them registers all
		return nil, err
	}
	defer d.registering.Unlock()
	if class := d.Now().Named(name); class != nil {
		return class, nil
	}
	classes, err := d.register(ctx, d.gathered(name, want))
	if err != nil {
		return nil, err
	}
	return classes[0], nil
}

// ClassesOf returns the numbered classes that equal want, registering those that are new and their lanes in one go.
func (d *dictionaryCache) ClassesOf(ctx context.Context, want []core.Class) ([]*core.Class, error) {
	if err := d.registering.Lock(ctx); err != nil {
		return nil, err
	}
	defer d.registering.Unlock()
	return d.register(ctx, want)
}

// mostGathered bounds the classes that one registration includes for others.
const mostGathered = 500

// gathered returns the class and those that other callers wait to register. Each registration creates another version of the dictionary, and what
// was decided on the one before has to be decided again: a registration for each of many new classes would keep submits from committing.
func (d *dictionaryCache) gathered(name ClassName, want core.Class) []core.Class {
	all := []core.Class{want}
	d.wanted.Range(func(other, class any) bool {
		if other != name && d.Now().Named(other.(ClassName)) == nil {
			all = append(all, class.(core.Class))
		}
		return len(all) < mostGathered
	})
	slices.SortFunc(all[1:], func(a, b core.Class) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.FairnessKey, b.FairnessKey), cmp.Compare(a.Needs, b.Needs), slices.Compare(a.Capabilities, b.Capabilities))
	})
	return all
}

// registerTries is how often a registration is tried again: a class was dropped at the same time, or many register at once.
const registerTries = 8

// register makes sure that the classes and their lanes exist, in a transaction of its own (S73). The lock of registrations is held.
func (d *dictionaryCache) register(ctx context.Context, want []core.Class) ([]*core.Class, error) {
	defer d.underWay.begin()()
	var lanes []core.Lane
	seen := map[string]bool{}
	for i := range want {
		if name := want[i].Lane; d.Now().Lanes[name] == nil && !seen[name] {
			seen[name] = true
			lanes = append(lanes, core.NewLane(name, "submit"))
		}
	}
	known, err := d.store.Register(ctx, lanes, want)
	for try := 0; try < registerTries && err != nil; try++ {
		if kind := store.FaultOf(err); kind != store.Retry && kind != store.Busy {
			break
		}
		known, err = d.store.Register(ctx, lanes, want)
	}
	if err != nil {
		return nil, err
	}
	d.added()
	if !d.extend(ctx, known) {
		if err := d.Reload(ctx); err != nil {
			return nil, err
		}
	}
	return known.Classes, nil
}

// RulesChanged makes all processes decide by the new rules: what was refused by the old ones may be admitted now (S47).
func (e *Engine) RulesChanged() {
	// If this fails, the next transaction reads the dictionary.
	_ = e.Dict.Reload(e.Background())
	e.Dispatcher.Rescan()
	e.Hints.Send(store.Hint{Dictionary: true, Keys: []string{"*"}})
}

// parsedRules are the records of the rules, and what a room has made of them.
type parsedRules struct {
	docs   []store.Doc
	once   sync.Once
	parsed any
}

// Rules returns the rules of a dictionary as the room of limits reads them. They are read once, when they are first asked for, and shared by all
// dictionaries of the era.
func Rules[T any](d *Dictionary, parse func([]store.Doc) *T) *T {
	d.rules.once.Do(func() { d.rules.parsed = parse(d.rules.docs) })
	return d.rules.parsed.(*T) //nolint:forcetypeassert // there is one room that reads them
}

// ClassesIn are the numbers of all classes of namespaces.
func (d *Dictionary) ClassesIn(namespaces ...string) []int32 {
	numbers := []int32{}
	for class := range d.All() {
		if Contains(namespaces, class.Namespace) {
			numbers = append(numbers, class.ID)
		}
	}
	return numbers
}
