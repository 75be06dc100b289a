package txn

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// inFeed leaves of the events that were found those which the caller's feed shows. Whose instance it is is looked up after the events
// were read: an instance that changed hands while the caller waited shows the former owner nothing of the new one.
func (e *Engine) inFeed(ctx context.Context, c Caller, instanceID string, found []LoggedEvent) ([]LoggedEvent, error) {
	if c.Feed == nil || len(found) == 0 {
		return found, nil
	}
	ref := WorkerRef(instanceID)
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{ref}})
	if err != nil {
		return nil, PublicFault(err)
	}
	doc, ok := loaded.Docs[ref]
	if !ok {
		return nil, NotRegistered(instanceID)
	}
	worker, err := DecodeWorker(&doc)
	switch {
	case err != nil:
		return nil, err
	case !worker.OwnedBy(c.Registrant()) || !c.SeesWorker(worker):
		return nil, NotRegistered(instanceID)
	}
	return slices.DeleteFunc(found, func(l LoggedEvent) bool {
		return !worker.InFeed(&l.Event) || !c.Feed.shows(l.Class)
	}), nil
}

// shows reports whether the feed covers executions of the class.
func (f *Feed) shows(class *core.Class) bool {
	return class != nil && (len(f.Lanes) == 0 || slices.Contains(f.Lanes, class.Lane))
}
