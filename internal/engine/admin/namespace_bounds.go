package admin

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// Bounds of a namespace, so that one tenant costs the others little: how many lanes and classes its executions use, and how many of them wait for a
// worker. The first two are counted in memory as classes are added, the last by the store now and then. Several processes together may exceed a
// bound by as much as each admits before it has read what the others did.

// NewNames counts the names that the submissions of one call bring along, before any of them is registered. With nil they are not bounded: what
// was accepted before is not refused by a bound when it begins.
type NewNames struct {
	e       *Admin
	classes map[txn.ClassName]bool
	of      map[string]*txn.NamespaceUse
}

// NewNames returns a check of the names that a request adds to namespaces.
func (e *Admin) NewNames() *NewNames { return &NewNames{e: e} }

// Check refuses a submission whose class is another one for its namespace when that may have no more.
func (n *NewNames) Check(space core.NamespaceSettings, class *core.Class) error {
	if n == nil {
		return nil
	}
	dict, name := n.e.Dict.Now(), txn.NameOf(class)
	if n.classes[name] || dict.Named(name) != nil {
		return nil
	}
	use, hasLane := dict.Table.UseOf(class.Namespace, class.Lane)
	own := n.of[class.Namespace]
	if own == nil {
		own = &txn.NamespaceUse{Lanes: map[string]bool{}}
		txn.SetIn(&n.of, class.Namespace, own)
	}
	use.Classes += own.Classes
	use.Lanes += len(own.Lanes)
	newLane := !hasLane && !own.Lanes[class.Lane]
	if err := space.CheckNew(use, newLane); err != nil {
		return err
	}
	txn.SetIn(&n.classes, name, true)
	if own.Classes++; newLane {
		own.Lanes[class.Lane] = true
	}
	return nil
}
