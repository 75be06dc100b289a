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
	if span := r.spans[kind]; span != nil && (now.Before(span.until) || span.n > 0) {
		span.last, span.n = one, span.n+1
		return false
	}
	r.spans[kind] = &refusalCount{until: now.Add(refusalSpan)}
	select {
	case r.begun <- struct{}{}:
	default:
	}
	return true
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
	return e.Do(ctx, &one)
}

// cutText is the text up to a number of bytes, without half a character at its end.
func cutText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

// tellRefusals writes what was counted when a span is over, until ctx ends.
func (e *Admin) tellRefusals(ctx context.Context) {
	for {
		select {
		case <-e.refusals.begun:
		case <-ctx.Done():
			return
		}
		for next := e.tellCounted(ctx, false); !next.IsZero(); next = e.tellCounted(ctx, false) {
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

// tellCounted writes what the spans that are over have counted, and returns when the next one is.
func (e *Admin) tellCounted(ctx context.Context, all bool) (next time.Time) {
	counted, next := e.refusals.over(e.Cfg.Clock.Now(), all)
	slices.SortFunc(counted, func(a, b *refused) int { return strings.Compare(a.refusal.Action, b.refusal.Action) })
	for _, one := range counted {
		count, action := one.more, one.refusal.Action
		if err := e.Do(ctx, one); err != nil {
			e.Notes.Error("refusals are not in the audit log", "count", count, "action", action, "error", err)
		}
	}
	return next
}

// refused is a row of the audit log on its way: of one refusal, or of those that followed it.
type refused struct {
	caller  txn.Caller
	refusal Refusal
	more    int // refusals that it counts; 0: it is a single one
}

func (r *refused) Name() string { return "refused" }

func (r *refused) Want(*store.Want, bool) {}

func (r *refused) Chains(*txn.Tx) []string { return []string{r.refusal.Namespace} }

func (r *refused) Decide(u *txn.Tx) error {
	row := core.AuditRow{
		Namespace: r.refusal.Namespace, Action: r.refusal.Action, Entity: r.refusal.Entity, EntityID: r.refusal.EntityID, Outcome: string(r.refusal.Code),
	}
	var after any
	if r.more > 0 {
		row.EntityID, after = "", countedRefusals{r.more} // they may have been about many
	}
	Audit(u, r.caller, row, nil, after)
	return nil
}

// countedRefusals is the content of a row about refusals that followed another within a minute.
type countedRefusals struct {
	Count int `json:"refusals"`
}
