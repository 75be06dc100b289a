package eventlog

import (
	"context"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// shownEvent returns an event as the caller may see it, or nil if it must not see it. Lanes are shared by all: a caller that does not see all
// namespaces gets what a read of the lane would show it (U121). What other processes have registered counts too: an event that is skipped is never
// shown later.
func (e *Reader) shownEvent(ctx context.Context, c txn.Caller, ev *core.Event) (*core.Event, error) {
	if c.Namespaces == nil || ev.Namespace != "" || !strings.HasPrefix(ev.Kind, "lane.") {
		return ev, nil
	}
	if err := e.Dict.Heard(ctx); err != nil {
		return nil, txn.PublicFault(err)
	}
	dict, name := e.Dict.Now(), ev.Data.Text("lane")
	if lane := dict.Lanes[name]; lane == nil || !c.LanesSeen(dict)(lane) {
		return nil, nil
	}
	shown := *ev
	shown.Data = core.LaneChangeWithoutWeights(ev.Data, e.ForeignKeys(c, dict, name))
	return &shown, nil
}

// seesEvent reports whether the caller may see an event (E35): events of its namespaces, and those of lanes and quotas, which all namespaces share. Other
// events without a namespace are for callers that see all namespaces: instances and jobs of other callers would be among them. Events without a
// namespace also need a role, which may be one that the caller does not have.
func seesEvent(c txn.Caller, ev *core.Event) bool {
	switch {
	case ev.Namespace != "":
		return c.Sees(ev.Namespace)
	case strings.HasPrefix(ev.Kind, "key."):
		return c.Namespaces == nil && !c.HidesKeys
	case c.HidesShared:
		return false
	default:
		return c.Namespaces == nil || strings.HasPrefix(ev.Kind, "lane.") || strings.HasPrefix(ev.Kind, "quota.")
	}
}

// inFeed leaves of the events that were found those which the caller's feed shows. Whose instance it is is looked up after the events
// were read: an instance that changed hands while the caller waited shows the former owner nothing of the new one.
func (e *Reader) inFeed(ctx context.Context, c txn.Caller, instanceID string, found []Event) ([]Event, error) {
	if c.Feed == nil || len(found) == 0 {
		return found, nil
	}
	ref := txn.WorkerRef(instanceID)
	loaded, err := e.Store.Read(ctx, store.Want{Docs: []store.DocRef{ref}})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	doc, ok := loaded.Docs[ref]
	if !ok {
		return nil, txn.NotRegistered(instanceID)
	}
	worker, err := txn.DecodeWorker(&doc)
	switch {
	case err != nil:
		return nil, err
	case !worker.OwnedBy(c.Registrant()) || !c.SeesWorker(worker):
		return nil, txn.NotRegistered(instanceID)
	}
	return slices.DeleteFunc(found, func(l Event) bool {
		return !worker.InFeed(&l.Event) || !shows(c.Feed, l.Class)
	}), nil
}

// shows reports whether the feed covers executions of the class.
func shows(f *txn.Feed, class *core.Class) bool {
	return class != nil && (len(f.Lanes) == 0 || slices.Contains(f.Lanes, class.Lane))
}
