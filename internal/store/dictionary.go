package store

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Dictionary holds all lanes, classes and rules at one moment. It is immutable and shared.
type Dictionary struct {
	Version     int64
	Incarnation string
	Lanes       []core.Lane
	Classes     []*core.Class // including retired ones, which may still have executions
	Retired     []RetiredClass
	Rules       []Doc // sorted by kind and key
}

// Registered is the result of Register.
type Registered struct {
	Lanes   []core.Lane
	Classes []*core.Class
	// Version is the dictionary version that this registration produced, 0 if it changed nothing. The dictionary of the previous version together
	// with this registration is the new dictionary.
	Version     int64
	Incarnation string // of the database that has these numbers
}

// RetiredClass is a class that no new execution may use, because it had no executions. It becomes active again when it is registered again, and is
// dropped if it still has no executions long after. This is safe: a transaction that creates an execution checks the dictionary version in which it
// found the class, so that no such transaction can still be under way.
type RetiredClass struct {
	ID    int32
	Since base.Time
}

// RaisesDictionary reports whether the changes raise the dictionary's version, which they do by one regardless of how much they change.
func (ch *Changes) RaisesDictionary() bool {
	rule := func(d Doc) bool { return d.Kind.Rule() }
	return len(ch.Lanes)+len(ch.RetireClasses)+len(ch.DropClasses) > 0 || !ch.NewLogID.IsZero() ||
		slices.ContainsFunc(ch.PutDocs, rule) || slices.ContainsFunc(ch.NewDocs, rule) ||
		slices.ContainsFunc(ch.DropDocs, func(ref DocRef) bool { return ref.Kind.Rule() })
}
