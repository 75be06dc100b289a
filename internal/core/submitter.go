package core

// Submitter is who submitted an execution or a flow. What an API key submitted is that key's, by the id of the key: names of keys are not
// unique, and a rotated key keeps its id. What has only a name was submitted without a key, or by an older version.
type Submitter struct {
	Name  string // of the principal
	KeyID string // of its API key; "": only the name is known
}

// Submitter is who submitted the execution, or the parent that it was spawned by.
func (x *Execution) Submitter() Submitter { return Submitter{x.Creator, x.CreatorKey} }

// Submitter is who submitted the flow, or what it belongs to.
func (f *Flow) Submitter() Submitter { return Submitter{f.Creator, f.CreatorKey} }

// Is reports whether it is the same principal: of a key its id counts, else its name.
func (s Submitter) Is(by Submitter) bool {
	if s.KeyID == "" {
		return s.Name == by.Name
	}
	return s.KeyID == by.KeyID
}
