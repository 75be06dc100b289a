package txn

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// NeedsKept is how many parsed needs of classes are kept of late.
const NeedsKept = needsKept

// NeedsOf reads the needs of classes by their numbers; all have the same.
func NeedsOf(needs string) func(class int32) *core.Needs {
	t := newClassTable(0)
	return func(class int32) *core.Needs { return t.needs(&core.Class{ID: class, Needs: needs}) }
}

// DictionaryOf returns a dictionary of classes, and a function that returns how many of their needs were parsed.
func DictionaryOf(classes []*core.Class) (d *Dictionary, parsed func() int) {
	d = newDictionary(&store.Dictionary{Classes: classes})
	return d, func() int { return len(d.Table.parsed) + len(d.Table.older) }
}
