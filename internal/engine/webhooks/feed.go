package webhooks

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
	"github.com/flowfabric/flowfabric/internal/engine/eventlog"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	pickAtOnce = 1000 // deliveries that one transaction of the feed writes, about
	// saveEvery is after how many commits that no endpoint takes the position is written nevertheless: so many are read again after a restart at most.
	saveEvery = 4096
	// deference is for how long a process waits when another one has written the feed last: usually that one writes the next deliveries, too.
	deference = 20
)

// feeder reads the log once for all endpoints of the store. Every process has one; the position in the store, and its lock, decide whose round counts. A
// process that dies leaves nothing behind: the next round of another one begins at the position in the store.
//
// In memory the feeder is ahead of the store by the commits that no endpoint takes. That is good only as long as the endpoints are the same and the
// database has the same incarnation; both are checked under the lock of the feed.
type feeder struct {
	w     *Webhooks
	kick  chan struct{}
	stale atomic.Bool // endpoints have changed, or the database is another incarnation

	// Of the loop alone:
	known       bool
	incarnation string
	stored      feed          // as it was last seen in the store
	at          webhook.Place // up to where was read
	targets     map[base.UUID]*target
	of          map[string][]*target // by namespace
}

// target is an active endpoint, as the feeder compares events with it.
type target struct {
	id     base.UUID
	after  int64
	filter eventlog.Filter
	space  string
}

func newFeeder(w *Webhooks) *feeder { return &feeder{w: w, kick: make(chan struct{}, 1)} }

// wake makes the feeder look at the endpoints again.
func (f *feeder) wake() {
	f.stale.Store(true)
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// heard looks for changes of endpoints in a commit of any process. It runs under the lock of the reader of the log.
func (f *feeder) heard(c *store.Commit) {
	for i := range c.Events {
		if kind := c.Events[i].Kind; strings.HasPrefix(kind, kindPrefix) && kind != kindFailed {
			f.wake()
			return
		}
	}
}

// run feeds until ctx ends.
func (f *feeder) run(ctx context.Context) {
	for ctx.Err() == nil {
		_, grew := f.w.Log.Position() // before the log is read: what comes later closes it
		more, err := f.round(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.known = false
			f.w.QuietLog.Warn("events for webhooks wait: the store does not take them", "error", err)
			f.pause(ctx, f.w.Cfg.PollInterval.Milliseconds())
			continue
		case more:
			continue
		case len(f.targets) == 0 || !f.w.sends():
			grew = nil // nothing in the log matters until an endpoint does
		}
		select {
		case <-ctx.Done():
		case <-f.kick:
		case <-grew:
		}
	}
}

func (f *feeder) pause(ctx context.Context, ms base.Millis) {
	timer := f.w.Cfg.Clock.NewTimer(milliseconds(ms))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// round reads on, and reports whether there may be more.
func (f *feeder) round(ctx context.Context) (more bool, err error) {
	if !f.w.sends() {
		f.known, f.targets = false, nil
		return false, nil
	}
	if f.stale.Swap(false) || !f.known || f.incarnation != f.w.Incarnation() {
		if err := f.load(ctx); err != nil {
			return false, err
		}
	}
	if len(f.targets) == 0 {
		return false, nil
	}
	commits, err := f.w.Log.Read(ctx, f.at.Seq-1, txn.LogRead)
	if err != nil || len(commits) == 0 {
		return false, err
	}
	found, to := f.match(commits)
	if len(found) == 0 && to.Seq-f.stored.At.Seq < saveEvery {
		f.at = to
		return true, nil
	}
	if f.stored.By != "" && f.stored.By != f.w.process {
		if done, err := f.defers(ctx, to); done || err != nil {
			return true, err
		}
	}
	return true, f.pick(ctx, found, to)
}

// defers gives the process that wrote the feed last the time to write it again, and reports whether it did.
func (f *feeder) defers(ctx context.Context, to webhook.Place) (done bool, err error) {
	f.pause(ctx, deference)
	docs, err := f.w.ReadDocs(ctx, feedRef)
	if err != nil {
		return false, err
	}
	doc, found := docs[feedRef]
	if !found {
		return false, nil
	}
	now, err := feedOf(&doc)
	if err != nil || now.Revision != f.stored.Revision || now.At.Before(to) {
		return false, err
	}
	f.stored = *now
	f.at = now.At
	f.w.runners.kickAll() // queues that this process works on may have got deliveries
	return true, nil
}

// match finds out which endpoints take which events. It returns the place behind what it has looked at.
func (f *feeder) match(commits []store.Commit) (found []match, to webhook.Place) {
	to = f.at
	for i := range commits {
		c := &commits[i]
		if c.Seq > to.Seq {
			to = webhook.Place{Seq: c.Seq}
		}
		for ; int(to.Index) < len(c.Events); to.Index++ {
			if len(found) >= pickAtOnce {
				return found, to
			}
			ev := &c.Events[to.Index]
			for _, t := range f.of[ev.Namespace] {
				if t.takes(c.Seq, ev) {
					found = append(found, match{endpoint: t.id, commit: c, index: int(to.Index)})
				}
			}
		}
		to = webhook.Place{Seq: c.Seq + 1}
	}
	return found, to
}

// takes reports whether the endpoint gets an event of a commit.
func (t *target) takes(seq int64, ev *core.Event) bool {
	return seq > t.after && t.wants(ev)
}

// wants reports whether the endpoint gets an event, at whatever place. It gets none without a namespace, and none about itself (E44).
func (t *target) wants(ev *core.Event) bool {
	if ev.Namespace != t.space || ev.Kind == core.SilentChange || !t.filter.Keeps(ev) {
		return false
	}
	return !strings.HasPrefix(ev.Kind, kindPrefix) || ev.Data.Text(fieldEndpoint) != t.id.String()
}

// load reads the feed, and the endpoints that have changed.
func (f *feeder) load(ctx context.Context) error {
	incarnation := f.w.Incarnation()
	docs, err := f.w.ReadDocs(ctx, feedRef)
	if err != nil {
		return err
	}
	now := &feed{}
	if doc, found := docs[feedRef]; found {
		if now, err = feedOf(&doc); err != nil {
			return err
		}
	}
	changed, known := now.changedSince(f.stored.Revision)
	if known = known && f.known && f.incarnation == incarnation; known {
		err = f.loadSome(ctx, changed)
	} else {
		err = f.loadAll(ctx, now.Active > 0)
	}
	if err != nil {
		return err
	}
	f.of = map[string][]*target{}
	for _, t := range f.targets {
		f.of[t.space] = append(f.of[t.space], t)
	}
	if !known || now.Revision != f.stored.Revision || f.at.Before(now.At) {
		f.at = now.At // what this process has passed over was compared with other endpoints
	}
	f.known, f.incarnation, f.stored = true, incarnation, *now
	return nil
}

// endpointsAtOnce is how many endpoints are read at a time.
const endpointsAtOnce = 500

func (f *feeder) loadAll(ctx context.Context, some bool) error {
	f.targets = map[base.UUID]*target{}
	for after := ""; some; {
		loaded, err := f.w.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: docEndpoint, After: after, Limit: endpointsAtOnce}}})
		if err != nil {
			return err
		}
		docs := loaded.Scanned[0]
		for i := range docs {
			f.use(&docs[i])
		}
		if some = len(docs) == endpointsAtOnce; some {
			after = docs[len(docs)-1].Key
		}
	}
	return nil
}

func (f *feeder) loadSome(ctx context.Context, ids []base.UUID) error {
	refs := make([]store.DocRef, len(ids))
	for i, id := range ids {
		refs[i] = endpointRef(id)
		delete(f.targets, id)
	}
	if len(refs) == 0 {
		return nil
	}
	docs, err := f.w.ReadDocs(ctx, refs...)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		f.use(&doc)
	}
	return nil
}

// use adds an endpoint if it is active. One that cannot be read gets no events: doctor tells of it.
func (f *feeder) use(doc *store.Doc) {
	e, err := decodeEndpoint(doc)
	if err != nil {
		f.w.QuietLog.Error("an endpoint of webhooks cannot be read: it gets no events", "row", doc.Key, "error", err)
		return
	}
	t, err := targetOf(e)
	if err != nil {
		f.w.QuietLog.Error("the filter of an endpoint cannot be read: it gets no events", "row", doc.Key, "error", err)
		return
	}
	if e.Active() {
		f.targets[e.ID] = t
	}
}

func targetOf(e *webhook.Endpoint) (*target, error) {
	filter, err := filterOf(&e.Filter)
	return &target{id: e.ID, after: e.After, filter: filter, space: e.Namespace}, err
}

// filterOf returns a filter as the log applies it. Codes: invalid_filter, invalid_id.
func filterOf(f *webhook.Filter) (eventlog.Filter, error) {
	filter := eventlog.Filter{
		Kinds: f.Kinds, Lane: f.Lane, Outcome: f.Outcome, InstanceID: f.InstanceID, Tags: f.Tags, ActorType: f.ActorType, Since: f.Since,
	}
	for _, part := range []struct {
		text string
		into **base.GivenID
	}{{f.ExecutionID, &filter.ExecutionID}, {f.FlowID, &filter.FlowID}} {
		if part.text == "" {
			continue
		}
		id, err := base.ParseID(part.text)
		if err != nil {
			return filter, err
		}
		*part.into = &id
	}
	return filter, filter.Check()
}
