package txn

import (
	"hash/maphash"
	"iter"
	"strings"
	"sync"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// classTable holds the classes of all dictionaries of one era. These differ only by what was added, so each dictionary sees the part of the table
// that is not newer than itself. A registration adds its own classes and copies no others: its cost does not depend on their number.
//
// Many goroutines read dictionaries while one of them, under the lock of the dictionaryCache, adds to the newest one. The table's lock separates
// them. An entry never changes, and its version is above that of every dictionary that existed before it.
type classTable struct {
	seed maphash.Seed

	mu       sync.RWMutex
	byName   map[uint64]*classEntry // by hash; the others of one hash follow it
	byNumber map[int32]*classEntry
	used     map[string]*NamespaceUse // by namespace: what new executions may use

	parsing sync.Mutex
	parsed  map[int32]*core.Needs // of classes that were needed recently
	older   map[int32]*core.Needs // the generation before; what is needed again moves to parsed
}

// NamespaceUse is what a namespace has in the table.
type NamespaceUse struct {
	Classes int
	Lanes   map[string]bool
}

// needsKept is how many recently parsed needs are kept; as many older ones are kept too. They take several times the space of their text, and of
// hundreds of thousands of classes only those with active executions are needed.
const needsKept = 8192

// classEntry is a class in the table.
type classEntry struct {
	class   *core.Class
	version int64 // of the dictionary that added it
	usable  bool  // new executions may use it: it is not retired
	next    *classEntry
}

// ClassName is the identity of a class, in a comparable form.
type ClassName struct{ lane, namespace, kind, fairness, capabilities, needs string }

// NameOf returns what distinguishes a class from all others.
func NameOf(c *core.Class) ClassName {
	return ClassName{c.Lane, c.Namespace, c.Kind, c.FairnessKey, strings.Join(c.Capabilities, ","), c.Needs}
}

func newClassTable(size int) *classTable {
	return &classTable{seed: maphash.MakeSeed(), byName: make(map[uint64]*classEntry, size), byNumber: make(map[int32]*classEntry, size), used: map[string]*NamespaceUse{}}
}

// add adds a class to the table.
func (t *classTable) add(class *core.Class, version int64, usable bool) {
	entry := &classEntry{class: class, version: version, usable: usable}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byNumber[class.ID] = entry
	if usable {
		hash := maphash.Comparable(t.seed, NameOf(class))
		entry.next, t.byName[hash] = t.byName[hash], entry
		t.count(class)
	}
}

// count counts a class for its namespace. The lock is held.
func (t *classTable) count(class *core.Class) {
	use := t.used[class.Namespace]
	if use == nil {
		use = &NamespaceUse{Lanes: map[string]bool{}}
		t.used[class.Namespace] = use
	}
	use.Classes++
	use.Lanes[class.Lane] = true
}

// Others reports whether another namespace than this one uses anything.
func (t *classTable) Others(namespace string) bool {
	use, _ := t.UseOf(namespace, "")
	return use.Others
}

// UseOf returns what a namespace uses, and whether it uses the lane.
func (t *classTable) UseOf(namespace, lane string) (use core.NamespaceUse, hasLane bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	own := t.used[namespace]
	if own == nil {
		return core.NamespaceUse{Others: len(t.used) > 0}, false
	}
	return core.NamespaceUse{Lanes: len(own.Lanes), Classes: own.Classes, Others: len(t.used) > 1}, own.Lanes[lane]
}

// has reports whether a namespace has something in the table.
func (t *classTable) has(namespace string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.used[namespace] != nil
}

// usedOnlyBy reports whether all namespaces that have something in the table are such ones.
func (t *classTable) usedOnlyBy(such func(namespace string) bool) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for namespace := range t.used {
		if !such(namespace) {
			return false
		}
	}
	return true
}

// Entry returns the class of that number as a dictionary of the version sees it, or nil.
func (t *classTable) Entry(id int32, version int64) *classEntry {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if entry := t.byNumber[id]; entry != nil && entry.version <= version {
		return entry
	}
	return nil
}

// Named returns a class that new executions may use, or nil.
func (d *Dictionary) Named(name ClassName) *core.Class {
	t := d.Table
	hash := maphash.Comparable(t.seed, name)
	t.mu.RLock()
	defer t.mu.RUnlock()
	for entry := t.byName[hash]; entry != nil; entry = entry.next {
		if entry.version <= d.Version && NameOf(entry.class) == name {
			return entry.class
		}
	}
	return nil
}

// usable reports whether new executions may have the class.
func (d *Dictionary) usable(id int32) bool {
	entry := d.Table.Entry(id, d.Version)
	return entry != nil && entry.usable
}

// Needs returns what admission requires of a class; nil: nothing, or the class is not in the dictionary.
func (d *Dictionary) Needs(id int32) *core.Needs {
	if entry := d.Table.Entry(id, d.Version); entry != nil && entry.class.Needs != "" {
		return d.Table.needs(entry.class)
	}
	return nil
}

// MayNeed reports whether a name occurs in the text of what a class needs. A loop over all classes parses only those: parsing all of very many
// takes long, and evicts what picks need again and again.
func MayNeed(class *core.Class, name string) bool { return strings.Contains(class.Needs, name) }

// needs parses the needs of a class that has some. Needs that cannot be read cannot be met: they name an id that does not exist.
func (t *classTable) needs(class *core.Class) *core.Needs {
	if needs := t.parsedNeeds(class.ID); needs != nil {
		return needs
	}
	needs, err := core.ParseNeeds(class.Needs)
	if err != nil {
		needs = &core.Needs{Budgets: []base.UUID{{}}}
	}
	t.parsing.Lock()
	defer t.parsing.Unlock()
	t.keepNeeds(class.ID, needs) // a concurrent parse of the same text has an equal result
	return needs
}

// parsedNeeds returns cached needs, or nil.
func (t *classTable) parsedNeeds(id int32) *core.Needs {
	t.parsing.Lock()
	defer t.parsing.Unlock()
	if needs := t.parsed[id]; needs != nil {
		return needs
	}
	needs := t.older[id]
	if needs != nil {
		t.keepNeeds(id, needs)
	}
	return needs
}

// keepNeeds keeps parsed needs. The lock is held.
func (t *classTable) keepNeeds(id int32, needs *core.Needs) {
	if len(t.parsed) >= needsKept {
		t.parsed, t.older = nil, t.parsed
	}
	SetIn(&t.parsed, id, needs)
}

// All iterates over all classes, including retired ones.
func (d *Dictionary) All() iter.Seq[*core.Class] {
	return func(yield func(*core.Class) bool) {
		for _, classes := range d.OfLane {
			for _, class := range classes {
				if !yield(class) {
					return
				}
			}
		}
	}
}

// AllUsable iterates over the classes that new executions may use.
func (d *Dictionary) AllUsable() iter.Seq[*core.Class] {
	return func(yield func(*core.Class) bool) {
		for class := range d.All() {
			if d.usable(class.ID) && !yield(class) {
				return
			}
		}
	}
}
