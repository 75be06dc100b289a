package admin

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Refusals of valid credentials are rows of the audit log (U131), which cannot be deleted: a principal that is refused again and again must not
// fill the store. The first refusal of a principal for an action is a row at once; those that follow within a minute are counted and become one row
// when it is over. The number of actions is that of the operations, so a principal causes a bounded number of rows per minute and process. Counts
// that are not written yet are lost when the process is killed; the row of the first refusal is not.

// refusalSpan is how long refusals of a principal for an action are counted as one.
const refusalSpan = time.Minute

// maxRefusedID bounds what a row keeps of the id of a refused call, in bytes: the caller may send any text.
const maxRefusedID = 128

// Refusal is a call that a valid credential may not make (U131).
type Refusal struct {
	Namespace string // "": that of the caller
	Action    string
	Entity    string
	EntityID  string
	Code      base.Code // role_required, namespace_forbidden
}

// refusalKind is what refusals are counted by.
type refusalKind struct {
	namespace, credential, action string
	code                          base.Code
}

// refusals counts those of this process that are not in the audit log yet.
type refusals struct {
	mu    sync.Mutex
	spans map[refusalKind]*refusalCount
	begun chan struct{} // has room for one: something is counted
}

// refusalCount is a span in which refusals of a kind are counted.
type refusalCount struct {
	last  refused // the newest of them
	until time.Time
	n     int // refusals without a row
}

func newRefusals() *refusals {
	return &refusals{spans: map[refusalKind]*refusalCount{}, begun: make(chan struct{}, 1)}
}

// note counts a refusal. first reports whether it begins a span: it then gets a row of its own.
func (r *refusals) note(now time.Time, kind refusalKind, one refused) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	span, first := r.span(now, kind)
	if !first {
		span.last, span.n = one, span.n+1
	}
	return first
}

// add counts n refusals that get no row of their own.
func (r *refusals) add(now time.Time, kind refusalKind, one refused, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	span, _ := r.span(now, kind)
	span.last, span.n = one, span.n+n
}

// span returns the span in which refusals of a kind are counted now, and whether it has just begun. The lock is held.
func (r *refusals) span(now time.Time, kind refusalKind) (_ *refusalCount, begun bool) {
	if span := r.spans[kind]; span != nil && (now.Before(span.until) || span.n > 0) {
		return span, false
	}
	span := &refusalCount{until: now.Add(refusalSpan)}
	r.spans[kind] = span
	select {
	case r.begun <- struct{}{}:
	default:
	}
	return span, true
}

// over removes the spans that have ended and returns what they counted, with the end of the next one; zero if none is left. all removes the others
// too.
func (r *refusals) over(now time.Time, all bool) (counted []*refused, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind, span := range r.spans {
		switch {
		case !all && now.Before(span.until):
			if next.IsZero() || span.until.Before(next) {
				next = span.until
			}
			continue
		case span.n > 0:
			one := span.last
			one.more = span.n
			counted = append(counted, &one)
		}
		delete(r.spans, kind)
	}
	return counted, next
}

// Refused records a refusal in the audit log.
func (e *Admin) Refused(ctx context.Context, c txn.Caller, r Refusal) error {
	if r.Namespace == "" {
		r.Namespace = ChainOf(c.Namespaces)
	}
	r.EntityID = cutText(base.BareID(r.EntityID), maxRefusedID)
	one := refused{caller: c, refusal: r}
	one.caller.Repeated = nil
	kind := refusalKind{namespace: r.Namespace, credential: c.Registrant().Credential(), action: r.Action, code: r.Code}
	if !e.refusals.note(e.Cfg.Clock.Now(), kind, one) {
		return nil
	}
	if c.Bounded { // its request was refused before anything else asked for the settings of its namespace
		_, _ = e.Spaces.Of(ctx, r.Namespace, e.Cfg.Clock.Now()) // without an answer the last known ones apply
	}
	err := e.Do(ctx, &one)
	if base.CodeOf(err) == base.CodeRateLimited {
		e.overflow(one)
		return nil
	}
	return err
}

// overflow counts refusals for which their namespace has no rows left in this minute. All of these become one row, which is not bounded: how
// many keys a namespace has does not decide how many rows it writes.
func (e *Admin) overflow(one refused) {
	n := max(1, one.more)
	one.caller.Bounded, one.various, one.more = false, true, 0
	e.refusals.add(e.Cfg.Clock.Now(), refusalKind{namespace: one.refusal.Namespace}, one, n)
}

// cutText is the text up to a number of bytes, without half a character at its end.
func cutText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

// writeRefusals writes what was counted when a span is over, until ctx ends.
func (e *Admin) writeRefusals(ctx context.Context) {
	for {
		select {
		case <-e.refusals.begun:
		case <-ctx.Done():
			return
		}
		for next := e.writeCounted(ctx, false); !next.IsZero(); next = e.writeCounted(ctx, false) {
			timer := e.Cfg.Clock.NewTimerAt(next)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return
			}
		}
	}
}

// writeCounted writes what the spans that are over have counted, and returns when the next one is.
func (e *Admin) writeCounted(ctx context.Context, all bool) (next time.Time) {
	counted, next := e.refusals.over(e.Cfg.Clock.Now(), all)
	slices.SortFunc(counted, func(a, b *refused) int { return strings.Compare(a.refusal.Action, b.refusal.Action) })
	for _, one := range counted {
		count, action := one.more, one.refusal.Action
		err := e.Do(ctx, one)
		if base.CodeOf(err) == base.CodeRateLimited && !all {
			e.overflow(*one)
			continue
		}
		if err != nil {
			e.QuietLog.Error("refusals are not in the audit log", "count", count, "action", action, "error", err)
		}
	}
	return next
}

// refused is a row of the audit log on its way: of one refusal, or of those that followed it.
type refused struct {
	caller  txn.Caller
	refusal Refusal
	more    int  // refusals that it counts; 0: it is a single one
	various bool // they were of several principals and actions, of which the row names the last
}

func (r *refused) Name() string { return "refused" }

func (r *refused) Want(*store.Want, bool) {}

// By returns the caller.
func (r *refused) By() txn.Caller { return r.caller }

func (r *refused) Chains(*txn.Tx) []string { return []string{r.refusal.Namespace} }

func (r *refused) Decide(u *txn.Tx) error {
	row := core.AuditRow{
		Namespace: r.refusal.Namespace, Action: r.refusal.Action, Entity: r.refusal.Entity, EntityID: r.refusal.EntityID, Outcome: string(r.refusal.Code),
	}
	var after any
	if r.more > 0 {
		row.EntityID, after = "", countedRefusals{r.more, r.various} // they may have been about many
	}
	Audit(u, r.caller, row, nil, after)
	return nil
}

// countedRefusals is the content of a row about refusals that followed another within a minute.
type countedRefusals struct {
	Count   int  `json:"refusals"`
	Various bool `json:"various,omitempty"` // of several principals and actions
}
