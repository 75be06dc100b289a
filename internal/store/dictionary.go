package store

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
)

// Dictionary is all lanes, classes and rules at one moment. It is immutable and shared.
type Dictionary struct {
	Version     int64
	Incarnation string
	Lanes       []core.Lane
	Classes     []*core.Class // the retired ones too: they may still have executions
	Retired     []RetiredClass
	Rules       []Doc // in order of kind and key
}

// Registered is what Register answers.
type Registered struct {
	Lanes   []core.Lane
	Classes []*core.Class
	// Version is that which this registration gave the dictionary, 0 if it changed nothing. Whoever knows the dictionary of the
	// version before knows with this all of the new one.
	Version     int64
	Incarnation string // of the database that has these numbers
}

// RetiredClass is a class that no new execution may have, because it had none. It comes back when it is registered again, and
// is dropped when it still has none long after: a transaction that creates an execution checks the version of the dictionary in
// which it found the class, so that none can be under way then.
type RetiredClass struct {
	ID    int32
	Since core.Time
}

// RaisesDictionary reports whether the changes raise the dictionary's version: by one, whatever they change in it.
func (ch *Changes) RaisesDictionary() bool {
	rule := func(d Doc) bool { return d.Kind.Rule() }
	return len(ch.Lanes)+len(ch.RetireClasses)+len(ch.DropClasses) > 0 || !ch.NewLogID.IsZero() ||
		slices.ContainsFunc(ch.PutDocs, rule) || slices.ContainsFunc(ch.NewDocs, rule) ||
		slices.ContainsFunc(ch.DropDocs, func(ref DocRef) bool { return ref.Kind.Rule() })
}
