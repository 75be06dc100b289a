package txn

import "github.com/flowfabric/flowfabric/internal/core"

// Bounds of a namespace, so that one tenant costs the others little: how many lanes and classes its executions use, and how many of them wait for a
// worker. The first two are counted in memory as classes are added, the last by the store now and then. Several processes together may exceed a
// bound by as much as each admits before it has read what the others did.

// NewNames counts the names that the submissions of one call bring along, before any of them is registered. With nil they are not bounded: what
// was accepted before is not refused by a bound when it begins.
type NewNames struct {
	e       *Engine
	classes map[ClassName]bool
	of      map[string]*namespaceUse
}

// NewNames returns a check of the names that a request adds to namespaces.
func (e *Engine) NewNames() *NewNames { return &NewNames{e: e} }

// Check refuses a submission whose class is another one for its namespace when that may have no more.
func (n *NewNames) Check(space core.NamespaceSettings, class *core.Class) error {
	if n == nil {
		return nil
	}
	dict, name := n.e.Dict.Now(), NameOf(class)
	if n.classes[name] || dict.Named(name) != nil {
		return nil
	}
	use, hasLane := dict.Table.useOf(class.Namespace, class.Lane)
	own := n.of[class.Namespace]
	if own == nil {
		own = &namespaceUse{lanes: map[string]bool{}}
		SetIn(&n.of, class.Namespace, own)
	}
	use.Classes += own.classes
	use.Lanes += len(own.lanes)
	newLane := !hasLane && !own.lanes[class.Lane]
	if err := space.CheckNew(use, newLane); err != nil {
		return err
	}
	SetIn(&n.classes, name, true)
	if own.classes++; newLane {
		own.lanes[class.Lane] = true
	}
	return nil
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
