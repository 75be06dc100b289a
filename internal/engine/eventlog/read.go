package eventlog

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	maxEventWait = 30 * time.Second
	// passedOver is how many events one call looks at, about. A filter that keeps few of them must not make a call read the whole log: the page then
	// has fewer events than asked for, or none, and its position leads on.
	passedOver = 50_000
)

// ReadEvents returns events behind a position, waiting for the first if asked to (E34).
func (e *Reader) ReadEvents(ctx context.Context, c txn.Caller, r Request) (Page, error) {
	log := e.Store.Info().LogID
	from, err := e.eventsFrom(ctx, &r)
	if err != nil {
		return Page{}, err
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
				return Page{}, err
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
func (e *Reader) eventsFrom(ctx context.Context, r *Request) (place, error) {
	txn.SetDefault(&r.Limit, core.DefaultPage)
	if r.Limit < 0 {
		return place{}, base.Invalid("limit", "must not be negative")
	}
	r.Limit = min(r.Limit, core.MaxPage)
	if r.Wait < 0 || r.Wait > maxEventWait {
		return place{}, base.Invalid("wait_ms", "%s, want 0..%s", r.Wait, maxEventWait)
	}
	if err := r.Filter.Check(); err != nil {
		return place{}, err
	}
	switch r.After {
	case "", "end":
		end, err := e.logEnd(ctx)
		return place{seq: end + 1}, err
	case "start":
		seen, err := e.Store.Poll(ctx, store.PollAsk{})
		if err != nil {
			return place{}, txn.PublicFault(err)
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
func (e *Reader) logEnd(ctx context.Context) (int64, error) {
	if end, _ := e.Log.Position(); !e.Store.Info().Shared {
		return end, nil
	}
	seen, err := e.Store.Poll(ctx, store.PollAsk{})
	if err != nil {
		return 0, txn.PublicFault(err)
	}
	return seen.LogEnd, nil
}

// checkAge refuses a cursor before the oldest retained event (E37).
func (e *Reader) checkAge(ctx context.Context, p place) error {
	if e.Log.Holds(p.seq) {
		return nil
	}
	seen, err := e.Store.Poll(ctx, store.PollAsk{})
	switch {
	case err != nil:
		return txn.PublicFault(err)
	case p.seq <= seen.LogStart:
		return base.Errorf(base.CodeCursorTooOld, "the events behind the cursor are gone").
			With("oldest", e.cursor(place{seq: seen.LogStart + 1}))
	case p.seq > seen.LogEnd+1:
		return invalidCursor("the cursor lies behind the end of the log")
	}
	return nil
}

// scanEvents collects matching events from a place on. next is the place reached.
func (e *Reader) scanEvents(ctx context.Context, c txn.Caller, r Request, from place) (Page, place, error) {
	var page Page
	for looked := 0; len(page.Events) < r.Limit && looked < passedOver; {
		commits, reached, err := e.commits(ctx, &r.Filter, from.seq-1)
		if err != nil {
			return Page{}, from, txn.PublicFault(err)
		}
		if reached < from.seq {
			page.AtEnd = true
			break
		}
		for _, commit := range commits {
			if commit.Seq > from.seq {
				from = place{seq: commit.Seq}
			}
			looked += len(commit.Events)
			for ; int(from.index) < len(commit.Events) && len(page.Events) < r.Limit; from.index++ {
				at := place{seq: commit.Seq, index: from.index + 1}
				ev := &commit.Events[from.index]
				if !r.Filter.Keeps(ev) || ev.Kind == core.SilentChange || !seesEvent(c, ev) {
					continue
				}
				shown, err := e.shownEvent(ctx, c, ev)
				if err != nil {
					return Page{}, from, err
				}
				if shown != nil {
					page.Events = append(page.Events, Event{Event: *shown, ID: e.eventID(at, ev.At), Cursor: e.cursor(at)})
				}
			}
			if int(from.index) < len(commit.Events) {
				break
			}
			from = place{seq: commit.Seq + 1}
		}
		if len(page.Events) < r.Limit {
			from = place{seq: reached + 1}
		}
	}
	if r.Limit == 0 {
		page.AtEnd = false
	}
	page.Next = e.cursor(from)
	return page, from, nil
}
