package core

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Registrant is the principal that registers an instance or claims in its name. An instance belongs to the API key that registered it, by the id of
// the key: names of keys are not unique, and a rotated key keeps its id. A principal without a key is identified by name.
type Registrant struct {
	Name       string   // of the principal
	KeyID      string   // of its API key; "" without one
	Namespaces []string // that it may act in; nil: all
}

// Credential returns the text by which ownership is compared. A name is never equal to a key.
func (r Registrant) Credential() string {
	if r.KeyID != "" {
		return "key:" + r.KeyID
	}
	return "name:" + r.Name
}

// covers reports whether the registrant may act in all namespaces that an instance serves; an empty list means all namespaces.
func (r Registrant) covers(namespaces []string) bool {
	if r.Namespaces == nil {
		return true
	}
	return len(namespaces) > 0 && !slices.ContainsFunc(namespaces, func(name string) bool { return !slices.Contains(r.Namespaces, name) })
}

// OwnedBy reports whether the instance belongs to the registrant. A record of an older version contains only the name: it belongs to the first key
// of that name that uses it.
func (w *Worker) OwnedBy(r Registrant) bool {
	if w.Owner == "" {
		return w.RegisteredBy == "" || w.RegisteredBy == r.Name
	}
	return w.Owner == r.Credential()
}

// openTo reports whether the registrant may use the instance id: it owns it, or the instance is not live and the registrant may act in all
// namespaces that it served. Without the second condition a key of one namespace could take an id away from a worker that serves all of them.
func (w *Worker) openTo(r Registrant, now base.Time) bool {
	return w.OwnedBy(r) || !w.Live(now) && r.covers(w.Namespaces)
}

// own makes the registrant the owner of an existing instance, and reports whether that changed the record. What happened under the previous owner
// stays with that owner: the new one owns the instance from a millisecond on in which it had no other owner.
func (w *Worker) own(fx *Effects, before *Worker, r Registrant) (changed bool) {
	w.RegisteredBy, w.Owner, w.OwnedAt = before.RegisteredBy, before.Owner, before.OwnedAt
	switch {
	case w.Owner == r.Credential():
		return false
	case w.Owner == "" && w.RegisteredBy == "": // the first owner, since the instance was registered
	case w.Owner == "" && w.RegisteredBy == r.Name: // a record of an older version with the same owner
	default: // later than everything under the previous owner, even if the clock was set back
		w.OwnedAt = base.Later(fx.Now, before.LastSeen+1)
		if before.Dead != nil {
			w.OwnedAt = base.Later(w.OwnedAt, before.Dead.At+1)
		}
	}
	if w.DrainedBy != "" && w.DrainedBy != r.Credential() {
		w.Draining, w.DrainedBy = false, "" // the previous owner drained its own process, not this one
	}
	w.RegisteredBy, w.Owner = r.Name, r.Credential()
	return true
}

// OwnedSince returns when the present owner got the instance. Earlier events under its id do not belong to the owner.
func (w *Worker) OwnedSince() base.Time {
	if w.OwnedAt == 0 {
		return w.RegisteredAt
	}
	return w.OwnedAt
}

// LeasedSince returns from when on leases and grants of the instance belong to the present owner. If no other had the instance before, that is
// earlier than its registration: leases that it acquires after the clock was set back belong to it too, and a record of an earlier owner was kept
// until a day after it was last seen. After a change of owners nothing tells such leases from those of the previous owner, and they do not count.
func (w *Worker) LeasedSince() base.Time {
	if w.OwnedAt == 0 {
		return max(0, w.RegisteredAt.Add(1-workerKeptFor))
	}
	return w.OwnedAt
}

// Acquired reports whether a lease or a grant of the instance that began at that time belongs to the present owner.
func (w *Worker) Acquired(at base.Time) bool { return at >= w.LeasedSince() }

// InFeed reports whether the owner of the instance may read the event: it concerns an execution and happened after the owner got the instance
// (U106).
func (w *Worker) InFeed(ev *Event) bool {
	return ev.InstanceID == w.InstanceID && !ev.ExecutionID.IsZero() && ev.At >= w.OwnedSince()
}

// InstanceTaken is the refusal of an id that belongs to another key. It reveals nothing about the instance, which may belong to other namespaces.
func InstanceTaken() error {
	return base.Errorf(base.CodeInstanceIDTaken, "the instance id is in use").WithField("worker_instance_id")
}
