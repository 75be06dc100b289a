package core

import "slices"

// Registrant is who registers an instance, or claims in its name. An instance belongs to the API key that registered it, by the id of the
// key: names of keys are not unique, and a rotated key keeps its id. Who has no key is known by name.
type Registrant struct {
	Name       string   // of the principal
	KeyID      string   // of its API key; "" without one
	Namespaces []string // that it may act in; nil: all
}

// Credential is what ownership is compared by. A name cannot stand for a key.
func (r Registrant) Credential() string {
	if r.KeyID != "" {
		return "key:" + r.KeyID
	}
	return "name:" + r.Name
}

// covers reports whether the registrant may act in all namespaces that an instance serves; none listed are all there are.
func (r Registrant) covers(namespaces []string) bool {
	if r.Namespaces == nil {
		return true
	}
	return len(namespaces) > 0 && !slices.ContainsFunc(namespaces, func(name string) bool { return !slices.Contains(r.Namespaces, name) })
}

// OwnedBy reports whether the instance belongs to the registrant. A record of an older version says only the name: it is the first key's of
// that name which uses it.
func (w *Worker) OwnedBy(r Registrant) bool {
	if w.Owner == "" {
		return w.RegisteredBy == "" || w.RegisteredBy == r.Name
	}
	return w.Owner == r.Credential()
}

// openTo reports whether the registrant may use the instance id: it has it, or its owner is gone and served nobody whom the registrant may
// not serve. Otherwise a key of one namespace could keep an id from the worker of all of them.
func (w *Worker) openTo(r Registrant, now Time) bool {
	return w.OwnedBy(r) || !w.Live(now) && r.covers(w.Namespaces)
}

// own makes the registrant the owner of an instance that was before, and reports whether that changed the record. What the owner before
// did stays that one's: the new one has the instance from a millisecond on in which nobody else had it.
func (w *Worker) own(fx *Effects, before *Worker, r Registrant) (changed bool) {
	w.RegisteredBy, w.Owner, w.OwnedAt = before.RegisteredBy, before.Owner, before.OwnedAt
	switch {
	case w.Owner == r.Credential():
		return false
	case w.Owner == "" && w.RegisteredBy == r.Name: // a record of an older version, and the same owner
	case before.Dead != nil:
		w.OwnedAt = later(fx.Now, before.Dead.At+1)
	default:
		w.OwnedAt = fx.Now
	}
	if w.DrainedBy != "" && w.DrainedBy != r.Credential() {
		w.Draining, w.DrainedBy = false, "" // the owner before drained its own process, not this one
	}
	w.RegisteredBy, w.Owner = r.Name, r.Credential()
	return true
}

// OwnedSince is when the present owner got the instance. What happened under its id before is not the owner's.
func (w *Worker) OwnedSince() Time {
	if w.OwnedAt == 0 {
		return w.RegisteredAt
	}
	return w.OwnedAt
}

// Acquired reports whether a lease or a grant of the instance that began at that time is the present owner's.
func (w *Worker) Acquired(at Time) bool { return at >= w.OwnedSince() }

// InFeed reports whether an event of the instance is one that its owner may read: it concerns an execution and happened since the owner has
// the instance (U106).
func (w *Worker) InFeed(ev *Event) bool {
	return ev.InstanceID == w.InstanceID && !ev.ExecutionID.IsZero() && ev.At >= w.OwnedSince()
}

// InstanceTaken refuses an id that another key has. Nothing is told of the instance: it may be of other namespaces.
func InstanceTaken() error {
	return Errorf(CodeInstanceIDTaken, "the instance id is in use").WithField("worker_instance_id")
}
