package core

// Submitter is the principal that submitted an execution or a flow. A submission with an API key is identified by the id of the key: names of keys
// are not unique, and a rotated key keeps its id. One with only a name was submitted without a key, or by an older version.
type Submitter struct {
	Name  string // of the principal
	KeyID string // of its API key; "": only the name is known
}

// Submitter returns who submitted the execution, or the parent that spawned it.
func (x *Execution) Submitter() Submitter { return Submitter{x.Creator, x.CreatorKey} }

// Submitter returns who submitted the flow, or what it belongs to.
func (f *Flow) Submitter() Submitter { return Submitter{f.Creator, f.CreatorKey} }

// Is reports whether it is the same principal: keys are compared by id, others by name.
func (s Submitter) Is(by Submitter) bool {
	if s.KeyID == "" {
		return s.Name == by.Name
	}
	return s.KeyID == by.KeyID
}
