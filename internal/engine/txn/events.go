package txn

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

const maxEventWait = 30 * time.Second

// place is a position in the log: behind event number index of commit seq; index 0 is before its first (E32).
type place struct {
	seq   int64
	index int32
}

// cursor is the opaque text of a place, with the log's identity inside.
func (e *Engine) cursor(p place) string {
	var raw [20]byte
	id := e.Store.Info().LogID
	copy(raw[:8], id[8:])
	binary.BigEndian.PutUint64(raw[8:], uint64(p.seq))
	binary.BigEndian.PutUint32(raw[16:], uint32(p.index))
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

func (e *Engine) parseCursor(text string) (place, error) {
	raw, err := base.DecodeURLText(text)
	id := e.Store.Info().LogID
	if err != nil || len(raw) != 20 || string(raw[:8]) != string(id[8:]) {
		return place{}, base.Errorf(base.CodeInvalidCursor, "not a cursor of this event log").WithField("after")
	}
	p := place{seq: int64(binary.BigEndian.Uint64(raw[8:])), index: int32(binary.BigEndian.Uint32(raw[16:]))}
	if p.seq < 0 || p.index < 0 {
		return place{}, base.Errorf(base.CodeInvalidCursor, "not a cursor of this event log").WithField("after")
	}
	return p, nil
}

// eventID is the id of an event: the same for every reader, derived from its place.
func (e *Engine) eventID(p place, at base.Time) base.UUID {
	id := e.Store.Info().LogID
	sum := sha256.Sum256([]byte(string(id[:]) + e.cursor(p)))
	return base.MintUUID(at, [10]byte(sum[:10]))
}

// ReadEvents returns events behind a position, waiting for the first if asked to (E34).
func (e *Engine) ReadEvents(ctx context.Context, c Caller, r EventsRequest) (EventPage, error) {
	log := e.Store.Info().LogID
	from, err := e.eventsFrom(ctx, &r)
	if err != nil {
		return EventPage{}, err
	}
	if r.Wait > 0 {
		e.Log.Readers.Add(1)
		defer e.Log.Readers.Add(-1)
	}
	timer := e.Cfg.Clock.NewTimer(r.Wait)
	defer timer.Stop()
	for {
		_, grew := e.Log.Position()
		page, next, err := e.scanEvents(ctx, c, r, from)
		if now := e.Store.Info().LogID; now != log { // what was read may be of either: begin again, where the cursor allows it
			log = now
			if from, err = e.eventsFrom(ctx, &r); err != nil {
				return EventPage{}, err
			}
			continue
		}
		if err == nil {
			page.Events, err = e.inFeed(ctx, c, r.Filter.InstanceID, page.Events)
		}
		if err != nil || len(page.Events) > 0 || !page.AtEnd {
			return page, err
		}
		from = next
		if r.Wait == 0 {
			return page, nil
		}
		select {
		case <-grew:
		case <-timer.C:
			return page, nil
		case <-e.Stop:
			return page, nil
		case <-ctx.Done():
			return page, nil
		}
	}
}

// eventsFrom checks the request and finds where to begin.
func (e *Engine) eventsFrom(ctx context.Context, r *EventsRequest) (place, error) {
	SetDefault(&r.Limit, core.DefaultPage)
	if r.Limit < 0 {
		return place{}, base.Invalid("limit", "must not be negative")
	}
	r.Limit = min(r.Limit, core.MaxPage)
	if r.Wait < 0 || r.Wait > maxEventWait {
		return place{}, base.Invalid("wait_ms", "%s, want 0..%s", r.Wait, maxEventWait)
	}
	if err := r.Filter.check(); err != nil {
		return place{}, err
	}
	switch r.After {
	case "", "end":
		end, err := e.logEnd(ctx)
		return place{seq: end + 1}, err
	case "start":
		seen, err := e.Store.Poll(ctx, store.PollAsk{})
		if err != nil {
			return place{}, PublicFault(err)
		}
		return place{seq: seen.LogStart + 1}, nil
	default:
		p, err := e.parseCursor(r.After)
		if err != nil {
			return place{}, err
		}
		return p, e.checkAge(ctx, p)
	}
}

// logEnd is the current end of the log, other processes' commits included.
func (e *Engine) logEnd(ctx context.Context) (int64, error) {
	if end, _ := e.Log.Position(); !e.Store.Info().Shared {
		return end, nil
	}
	seen, err := e.Store.Poll(ctx, store.PollAsk{})
	if err != nil {
		return 0, PublicFault(err)
	}
	return seen.LogEnd, nil
}

// checkAge refuses a cursor before the oldest retained event (E37).
func (e *Engine) checkAge(ctx context.Context, p place) error {
	if e.Log.Holds(p.seq) {
		return nil
	}
	seen, err := e.Store.Poll(ctx, store.PollAsk{})
	switch {
	case err != nil:
		return PublicFault(err)
	case p.seq <= seen.LogStart:
		return base.Errorf(base.CodeCursorTooOld, "the events behind the cursor are gone").
			With("oldest", e.cursor(place{seq: seen.LogStart + 1}))
	case p.seq > seen.LogEnd+1:
		return base.Errorf(base.CodeInvalidCursor, "the cursor lies behind the end of the log").WithField("after")
	}
	return nil
}

// scanEvents collects matching events from a place on. next is the place reached.
func (e *Engine) scanEvents(ctx context.Context, c Caller, r EventsRequest, from place) (EventPage, place, error) {
	var page EventPage
	for len(page.Events) < r.Limit {
		commits, err := e.Log.Read(ctx, from.seq-1, LogRead)
		if err != nil {
			return EventPage{}, from, PublicFault(err)
		}
		if len(commits) == 0 {
			page.AtEnd = true
			break
		}
		for _, commit := range commits {
			if commit.Seq > from.seq {
				from = place{seq: commit.Seq}
			}
			for ; int(from.index) < len(commit.Events) && len(page.Events) < r.Limit; from.index++ {
				at := place{seq: commit.Seq, index: from.index + 1}
				ev := &commit.Events[from.index]
				if !r.Filter.keeps(ev) || ev.Kind == core.SilentChange || !c.seesEvent(ev) {
					continue
				}
				shown, err := e.shownEvent(ctx, c, ev)
				if err != nil {
					return EventPage{}, from, err
				}
				if shown != nil {
					page.Events = append(page.Events, LoggedEvent{Event: *shown, ID: e.eventID(at, ev.At), Cursor: e.cursor(at)})
				}
			}
			if int(from.index) < len(commit.Events) {
				break
			}
			from = place{seq: commit.Seq + 1}
		}
	}
	if r.Limit == 0 {
		page.AtEnd = false
	}
	page.Next = e.cursor(from)
	return page, from, nil
}

// shownEvent returns an event as the caller may see it, or nil if it must not see it. Lanes are shared by all: a caller that does not see all
// namespaces gets what a read of the lane would show it (U121). What other processes have registered counts too: an event that is skipped is never
// shown later.
func (e *Engine) shownEvent(ctx context.Context, c Caller, ev *core.Event) (*core.Event, error) {
	if c.Namespaces == nil || ev.Namespace != "" || !strings.HasPrefix(ev.Kind, "lane.") {
		return ev, nil
	}
	if err := e.Dict.heard(ctx); err != nil {
		return nil, PublicFault(err)
	}
	dict, name := e.Dict.Now(), ev.Data.Text("lane")
	if lane := dict.Lanes[name]; lane == nil || !c.LanesSeen(dict)(lane) {
		return nil, nil
	}
	shown := *ev
	shown.Data = core.LaneChangeWithoutWeights(ev.Data, e.ForeignKeys(c, dict, name))
	return &shown, nil
}

// seesEvent reports whether the caller may see an event (E35): events of its namespaces, and of lanes, which all share. A caller without all
// namespaces does not see events of several namespaces: instances and jobs of other callers would be among them.
func (c Caller) seesEvent(ev *core.Event) bool {
	if c.Namespaces == nil || ev.Namespace != "" {
		return c.Sees(ev.Namespace)
	}
	return strings.HasPrefix(ev.Kind, "lane.") || strings.HasPrefix(ev.Kind, "quota.")
}

// check refuses a malformed filter (invalid_filter).
func (f *EventFilter) check() error {
	for _, kind := range f.Kinds {
		if err := core.CheckFilterText("kind", kind); err != nil {
			return err
		}
		if kind == "" || strings.HasPrefix(kind, ".") || strings.ContainsAny(kind, " \t\n") {
			return base.Errorf(base.CodeInvalidFilter, "%q is not an event kind", kind).WithField("kind")
		}
	}
	switch f.ActorType {
	case "", "client", "worker", "operator", "approver", "engine":
	default:
		return base.Errorf(base.CodeInvalidFilter, "%q is not an actor type", f.ActorType).WithField("actor")
	}
	return cmp.Or(
		core.CheckFilterText("lane", f.Lane), core.CheckFilterText("outcome", f.Outcome), core.CheckFilterText("worker_instance_id", f.InstanceID),
		core.CheckFilterTags(f.Tags),
	)
}

// keeps reports whether all given parts hold for an event (E35).
func (f *EventFilter) keeps(ev *core.Event) bool {
	return (f.InstanceID == "" || ev.InstanceID == f.InstanceID) && // first: every worker sees every event go by
		(f.ExecutionID == nil || f.ExecutionID.Names(ev.ExecutionID)) &&
		(f.FlowID == nil || f.FlowID.Names(ev.FlowID) || f.FlowID.Names(ev.RootFlowID)) &&
		(f.Lane == "" || ev.Class != nil && ev.Class.Lane == f.Lane) && f.keepsKind(ev.Kind) &&
		(f.ActorType == "" || ev.Actor.Type == f.ActorType) &&
		ev.At >= f.Since && f.keepsTags(ev.Tags) && f.keepsOutcome(ev)
}

func (f *EventFilter) keepsKind(kind string) bool {
	if len(f.Kinds) == 0 {
		return true
	}
	for _, want := range f.Kinds {
		if rest, ok := strings.CutPrefix(kind, strings.TrimSuffix(want, ".")); ok && (rest == "" || rest[0] == '.') {
			return true
		}
	}
	return false
}

func (f *EventFilter) keepsTags(tags base.Tags) bool {
	for key, value := range f.Tags {
		if got, ok := tags[key]; !ok || got != value {
			return false
		}
	}
	return true
}

func (f *EventFilter) keepsOutcome(ev *core.Event) bool {
	return f.Outcome == "" || ev.Kind == "execution.completed" && ev.Data.Text("outcome") == f.Outcome // no other kind has one
}

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
