package limits

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// sharedLimits are limits that apply across all processes on the store (U129). On a store that other processes may have open each limit is a small
// record; otherwise it is kept in memory. A limit costs nothing until it is used.
type sharedLimits struct {
	e      *txn.Engine
	holder string // names this process

	mu    sync.Mutex
	local map[string]*core.SharedLimit
}

const (
	// allowanceKept is how long the record of an unused limit is kept.
	allowanceKept = base.Hour
	// mostAllowances bounds what is kept in memory.
	mostAllowances = 10_000
)

func newSharedLimits(e *txn.Engine) *sharedLimits {
	return &sharedLimits{e: e, holder: e.Mint().String(), local: map[string]*core.SharedLimit{}}
}

// TakeRate takes from a limit of perSecond over all processes. got may be more than want: the rest is for later calls, so that the store is asked
// at most about forty times per second. got is 0 if there is nothing to take for the time wait.
func (e *Admission) TakeRate(ctx context.Context, name string, perSecond, want int) (got int, wait time.Duration, err error) {
	var taken struct {
		got  int
		wait base.Millis
	}
	err = e.sharedLimits.use(ctx, "rate/"+name, func(a *core.SharedLimit, now base.Time) { taken.got, taken.wait = a.Take(now, perSecond, want) })
	if err != nil {
		return 0, 0, err
	}
	return taken.got, time.Duration(taken.wait) * time.Millisecond, nil
}

// AcquireSlots sets how many of most places this process wants to hold from now on, and returns how many it holds. It must be called again within 15
// seconds.
func (e *Admission) AcquireSlots(ctx context.Context, name string, most, want int) (int, error) {
	var got int
	err := e.sharedLimits.use(ctx, "places/"+name, func(a *core.SharedLimit, now base.Time) {
		got = a.Hold(now, e.sharedLimits.holder, most, want)
	})
	return txn.Answered(&got, err)
}

// NamespaceBounds returns the settings of a namespace, for the bounds that servers enforce.
func (e *Admission) NamespaceBounds(ctx context.Context, namespace string) (core.NamespaceSettings, error) {
	return e.Spaces.Of(ctx, namespace, e.Cfg.Clock.Now())
}

func (l *sharedLimits) use(ctx context.Context, name string, do func(a *core.SharedLimit, now base.Time)) error {
	if l.e.Store.Info().Shared {
		return l.e.Do(ctx, &useAllowance{ref: store.DocRef{Kind: docAllowance, Key: name}, do: do})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.local[name]
	if a == nil {
		if len(l.local) >= mostAllowances {
			clear(l.local)
		}
		a = &core.SharedLimit{}
		l.local[name] = a
	}
	do(a, base.TimeOf(l.e.Cfg.Clock.Now())) // what one process alone counts needs no clock but its own
	return nil
}

// useAllowance takes from a limit that processes share.
type useAllowance struct {
	ref store.DocRef
	do  func(a *core.SharedLimit, now base.Time)
}

func (l *useAllowance) Name() string { return "use_allowance" }

func (l *useAllowance) Want(w *store.Want, _ bool) {
	w.Docs = append(w.Docs, l.ref)
	w.LockDocs = true
}

func (l *useAllowance) Decide(u *txn.Tx) error {
	var a core.SharedLimit
	known := u.Doc(l.ref)
	if known != nil {
		if err := json.Unmarshal(known.Body, &a); err != nil {
			return txn.Corrupt("allowance", err)
		}
	}
	l.do(&a, u.Now)
	body, _ := json.Marshal(a)
	doc := store.Doc{DocRef: l.ref, Body: body}
	if known != nil && known.ExpiresAt > u.Now.Add(allowanceKept) {
		doc.ExpiresAt = known.ExpiresAt // the look at it is armed
	} else {
		doc.ExpiresAt = txn.RoundUp(u.Now.Add(2*allowanceKept), base.Minute)
		timer := u.TimerAt(timerAllowances, doc.ExpiresAt)
		timer.Texts = append(timer.Texts, l.ref.Key)
	}
	if known == nil { // if another transaction inserts it first, the commit fails with Conflict and does not overwrite it
		txn.SetIn(&u.Docs, l.ref, &doc)
		u.Changes.NewDocs = append(u.Changes.NewDocs, doc)
	} else {
		u.PutDoc(doc)
	}
	return nil
}

// sweepAllowances removes limits that are no longer used.
func (e *Admission) sweepAllowances(ctx context.Context, t store.Timer) error {
	return e.OnDocs(ctx, docAllowance, t.Texts, func(u *txn.Tx, doc *store.Doc) error {
		if doc.ExpiresAt <= u.Now {
			u.DropDoc(doc.DocRef)
		}
		return nil
	})
}
