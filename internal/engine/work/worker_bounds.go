package work

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	fleetAge  = 10 * time.Second // how long a count of the instances is used
	fleetFull = time.Second      // and if there is no room for a new one
)

// workerBounds keeps one tenant from filling the records of worker instances, which all lists of workers and lanes read and which are kept for a day
// (U101). It knows the instances of each namespace from the last count, and those that were admitted since. Several processes together may exceed a
// bound by what they admit between two counts.
type workerBounds struct {
	e        *Work
	mu       sync.Mutex                 // never held while the store is asked
	known    map[string]map[string]bool // by namespace: the ids of its instances, dead ones too
	counting bool                       // one caller counts; the others go by what is known
	at       time.Time                  // when the last count ended, well or not
}

// forget makes the next new instance count anew.
func (b *workerBounds) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known, b.at = nil, time.Time{}
}

// fleetLimit is a namespace with the number of instances that it may have.
type fleetLimit struct {
	namespace string
	most      int
}

// Admit refuses an instance that is not known yet if none of the namespaces that it would serve may have another one: namespace_limit_exceeded. No
// namespaces mean all of them: the bound of no namespace applies to an instance for all. It must be asked before the command is queued: a refusal among
// the commands of a batch makes the batch run twice.
func (b *workerBounds) Admit(ctx context.Context, namespaces []string, instanceID string) error {
	if len(namespaces) == 0 || b.knows(namespaces, instanceID) {
		return nil
	}
	limits, err := b.limits(ctx, namespaces)
	if limits == nil || err != nil {
		return err
	}
	if b.begin(limits) {
		b.recount(ctx, limits)
	}
	return b.add(limits, instanceID)
}

// limits returns what the namespaces may have; nil if one of them may have any number.
func (b *workerBounds) limits(ctx context.Context, namespaces []string) ([]fleetLimit, error) {
	limits := make([]fleetLimit, len(namespaces))
	for i, namespace := range namespaces {
		space, err := b.e.Spaces.Of(ctx, namespace, b.e.Cfg.Clock.Now())
		if err != nil {
			return nil, err
		}
		limits[i] = fleetLimit{namespace, space.WorkersLimit(b.e.Dict.Now().Table.Others(namespace))}
		if limits[i].most == 0 {
			return nil, nil
		}
	}
	return limits, nil
}

func (b *workerBounds) knows(namespaces []string, instanceID string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(namespaces, func(namespace string) bool { return b.known[namespace][instanceID] })
}

// full reports whether none of the namespaces has room. The lock is held.
func (b *workerBounds) full(limits []fleetLimit) bool {
	return !slices.ContainsFunc(limits, func(l fleetLimit) bool { return len(b.known[l.namespace]) < l.most })
}

// begin reports whether the caller should count now.
func (b *workerBounds) begin(limits []fleetLimit) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	age := fleetAge
	if b.full(limits) {
		age = fleetFull
	}
	if b.counting || !b.at.IsZero() && b.e.Cfg.Clock.Now().Sub(b.at) < age {
		return false
	}
	b.counting = true
	return true
}

// recount reads the instances, and removes dead ones if there is no room otherwise. If the store does not answer what is known stays, and
// registrations fail by themselves.
func (b *workerBounds) recount(ctx context.Context, limits []fleetLimit) {
	defer func() { // also if the count panics: until then no other caller counts
		b.mu.Lock()
		defer b.mu.Unlock()
		b.counting, b.at = false, b.e.Cfg.Clock.Now()
	}()
	all, err := b.e.Instances(ctx)
	if err != nil {
		return
	}
	known := map[string]map[string]bool{}
	for i := range all {
		for _, namespace := range all[i].Namespaces {
			if known[namespace] == nil {
				known[namespace] = map[string]bool{}
			}
			known[namespace][all[i].InstanceID] = true
		}
	}
	if b.learn(known, limits) {
		b.removeDead(ctx, limits, all)
	}
}

// learn takes over what a count has found, and reports whether none of the namespaces has room.
func (b *workerBounds) learn(known map[string]map[string]bool, limits []fleetLimit) (full bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = known
	return b.full(limits)
}

// unlearn forgets instances whose records were removed.
func (b *workerBounds) unlearn(removed []*core.Worker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range removed {
		for _, namespace := range w.Namespaces {
			delete(b.known[namespace], w.InstanceID)
		}
	}
}

// removeDead removes the records of the instances that have been dead for the longest, as many as a tenth of what may be there, before their time
// is over (S54): an instance that is gone keeps no other out.
func (b *workerBounds) removeDead(ctx context.Context, limits []fleetLimit, all []core.Worker) {
	for _, limit := range limits {
		dead := slices.DeleteFunc(slices.Clone(all), func(w core.Worker) bool { return w.Dead == nil || !slices.Contains(w.Namespaces, limit.namespace) })
		slices.SortFunc(dead, func(a, b core.Worker) int {
			return cmp.Or(cmp.Compare(a.Dead.At, b.Dead.At), cmp.Compare(a.InstanceID, b.InstanceID))
		})
		ids := make([]string, min(len(dead), max(1, limit.most/10)))
		for i := range ids {
			ids[i] = dead[i].InstanceID
		}
		for some := range slices.Chunk(ids, bulkChunk) {
			removed, err := b.remove(ctx, some)
			if err != nil {
				return
			}
			b.unlearn(removed)
		}
	}
}

// remove removes the records of instances that are dead still.
func (b *workerBounds) remove(ctx context.Context, ids []string) (removed []*core.Worker, err error) {
	err = b.e.OnDocs(ctx, txn.DocWorker, ids, func(u *txn.Tx, doc *store.Doc) error {
		w, err := txn.DecodeWorker(doc)
		if err == nil && w.Dead != nil {
			u.DropDoc(doc.DocRef)
			removed = append(removed, w)
		}
		return err
	})
	return removed, err
}

// add makes the instance known, if there is room for it.
func (b *workerBounds) add(limits []fleetLimit, instanceID string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.ContainsFunc(limits, func(l fleetLimit) bool { return b.known[l.namespace][instanceID] }) {
		return nil // the count has found it
	}
	if b.full(limits) {
		first := limits[0]
		return core.WorkersFull(first.most, len(b.known[first.namespace]))
	}
	for _, l := range limits {
		if b.known[l.namespace] == nil {
			txn.SetIn(&b.known, l.namespace, map[string]bool{})
		}
		b.known[l.namespace][instanceID] = true
	}
	return nil
}
