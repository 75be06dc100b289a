package engine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// dictionary is all lanes, classes and rules at one moment. It is immutable and shared.
type dictionary struct {
	version int64
	era     int64 // version of the one that was read from the store; all of an era differ only by what was added
	lanes   map[string]*core.Lane
	byID    map[int32]*core.Lane
	classes map[string]*core.Class   // by classKey, those that new executions may have
	usable  map[int32]bool           // the same by number
	ofLane  map[string][]*core.Class // within an era only longer
	needs   map[int32]*core.Needs    // what admission asks for, by number of the class; nothing of those that are not in it
	retired []store.RetiredClass
	*rules
}

// dictionaryCache keeps the newest dictionary that this process knows.
type dictionaryCache struct {
	store   store.Store
	current atomic.Pointer[dictionary]
	mu      sync.Mutex // held while reading a newer one
	changed func()     // called when a newer one came
	added   func()     // called when this process has registered something

	registering sync.Mutex
	wanted      sync.Map // classes that callers wait to register, by key
}

func classKey(c *core.Class) string {
	var b strings.Builder
	for _, part := range []string{c.Lane, c.Namespace, c.Kind, c.FairnessKey} {
		b.WriteString(part)
		b.WriteByte(0)
	}
	b.WriteString(strings.Join(c.Capabilities, ","))
	b.WriteByte(0)
	b.WriteString(c.Needs)
	return b.String()
}

func newDictionary(d *store.Dictionary) *dictionary {
	dict := &dictionary{
		version: d.Version, era: d.Version,
		lanes: make(map[string]*core.Lane, len(d.Lanes)), byID: make(map[int32]*core.Lane, len(d.Lanes)),
		classes: make(map[string]*core.Class, len(d.Classes)), usable: make(map[int32]bool, len(d.Classes)),
		ofLane: make(map[string][]*core.Class, len(d.Lanes)), needs: map[int32]*core.Needs{}, retired: d.Retired,
		rules: parseRules(d.Rules),
	}
	retired := make(map[int32]bool, len(d.Retired))
	for _, class := range d.Retired {
		retired[class.ID] = true
	}
	for i := range d.Lanes {
		lane := &d.Lanes[i]
		dict.lanes[lane.Name], dict.byID[lane.ID] = lane, lane
	}
	for _, class := range d.Classes {
		if !retired[class.ID] {
			dict.classes[classKey(class)], dict.usable[class.ID] = class, true
		}
		dict.ofLane[class.Lane] = append(dict.ofLane[class.Lane], class)
		dict.addNeeds(class)
	}
	return dict
}

// with is the dictionary after a registration that was made on just this one; nil if more has changed than was added.
func (d *dictionary) with(added store.Registered) *dictionary {
	back := func(class store.RetiredClass) bool {
		return slices.ContainsFunc(added.Classes, func(c *core.Class) bool { return c.ID == class.ID })
	}
	if added.Version != d.version+1 || slices.ContainsFunc(d.retired, back) {
		return nil
	}
	next := *d
	next.version = added.Version
	if len(added.Lanes) > 0 {
		next.lanes, next.byID = maps.Clone(d.lanes), maps.Clone(d.byID)
	}
	for i := range added.Lanes {
		if lane := &added.Lanes[i]; next.byID[lane.ID] == nil {
			next.lanes[lane.Name], next.byID[lane.ID] = lane, lane
		}
	}
	next.classes, next.usable, next.ofLane, next.needs = maps.Clone(d.classes), maps.Clone(d.usable), maps.Clone(d.ofLane), maps.Clone(d.needs)
	for _, class := range added.Classes {
		if !next.usable[class.ID] {
			next.classes[classKey(class)], next.usable[class.ID] = class, true
			next.ofLane[class.Lane] = append(next.ofLane[class.Lane], class)
			next.addNeeds(class)
		}
	}
	return &next
}

// now is the newest dictionary known.
func (d *dictionaryCache) now() *dictionary { return d.current.Load() }

// at returns a dictionary of at least that version.
func (d *dictionaryCache) at(ctx context.Context, version int64) (*dictionary, error) {
	if dict := d.now(); dict.version >= version {
		return dict, nil
	}
	if err := d.reload(ctx); err != nil {
		return nil, err
	}
	return d.now(), nil
}

// reload reads the dictionary from the store.
func (d *dictionaryCache) reload(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	loaded, err := d.store.Dictionary(ctx)
	if err != nil {
		return err
	}
	if old := d.now(); old == nil || loaded.Version > old.version {
		d.current.Store(newDictionary(loaded))
		d.changed()
	}
	return nil
}

// extend adds what this process has registered, which costs less than reading everything again. It tells whether that is all
// there is to know. Nobody looks again at the queues that were there: nothing has changed for them.
func (d *dictionaryCache) extend(added store.Registered) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.now()
	if added.Version != 0 && added.Version <= old.version {
		return true // it was read just now
	}
	next := old.with(added)
	if next != nil {
		d.current.Store(next)
	}
	return next != nil
}

// classOf returns the numbered class that equals want, registering it and its lane if they are new (S1).
func (d *dictionaryCache) classOf(ctx context.Context, want core.Class) (*core.Class, error) {
	key := classKey(&want)
	if class := d.now().classes[key]; class != nil {
		return class, nil
	}
	d.wanted.Store(key, want)
	d.registering.Lock() // many callers meet new classes at once: one of them registers all
	defer d.registering.Unlock()
	defer d.wanted.Delete(key)
	if class := d.now().classes[key]; class != nil {
		return class, nil
	}
	classes, err := d.register(ctx, d.gathered(key, want))
	if err != nil {
		return nil, err
	}
	return classes[0], nil
}

// mostGathered bounds the classes that one registration brings along for others.
const mostGathered = 500

// gathered is the class and those that others wait to register. Each registration makes another version of the dictionary, on which
// whatever was decided on the one before has to be decided again: one for each of many new classes would keep submits from committing.
func (d *dictionaryCache) gathered(key string, want core.Class) []core.Class {
	all := []core.Class{want}
	d.wanted.Range(func(other, class any) bool {
		if other != key && d.now().classes[other.(string)] == nil {
			all = append(all, class.(core.Class))
		}
		return len(all) < mostGathered
	})
	return all
}

// registerTries is how often a registration is tried again: a class was dropped just then, or many register at once.
const registerTries = 8

// register makes sure that the classes and their lanes exist, in a transaction of its own (S73).
func (d *dictionaryCache) register(ctx context.Context, want []core.Class) ([]*core.Class, error) {
	var lanes []core.Lane
	seen := map[string]bool{}
	for i := range want {
		if name := want[i].Lane; d.now().lanes[name] == nil && !seen[name] {
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
	if !d.extend(known) {
		if err := d.reload(ctx); err != nil {
			return nil, err
		}
	}
	return known.Classes, nil
}
