package txn

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// hintGap is how long hints are collected before they are sent: under load one hint serves many commits.
const hintGap = 10 * time.Millisecond

// maxHintKeys is how many admission keys a hint names.
const maxHintKeys = 64

// maxHintStreams is how many executions a hint names to whose streams was appended.
const maxHintStreams = 32

// maxHintClasses is how many classes a hint names; the others follow in the next one. If more than maxPendingClasses are pending, because no hint
// can be sent, the hint names only their lanes, and its receivers look at all queues of these.
const (
	maxHintClasses    = 4096
	maxPendingClasses = 32 * maxHintClasses
)

// hinter sends other processes hints of what happened here, and receives theirs (S69). Nothing but latency depends on it.
type hinter struct {
	e    *Engine
	kick chan struct{}

	mu      sync.Mutex
	pending store.Hint
	classes map[int32]bool // that the pending hint names
}

func newHinter(e *Engine) *hinter { return &hinter{e: e, kick: make(chan struct{}, 1)} }

// Send adds to the hint that travels next.
func (h *hinter) Send(hint store.Hint) {
	if !h.e.Store.Info().Shared || len(hint.Lanes)+len(hint.Keys)+len(hint.Streams) == 0 && !hint.Log && !hint.Dictionary && !hint.Inbox && !hint.Blocked {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Name(hint)
	for _, lane := range hint.Lanes {
		h.pending.Lanes = AppendNew(h.pending.Lanes, lane)
	}
	h.pending.Log = h.pending.Log || hint.Log
	h.pending.Dictionary = h.pending.Dictionary || hint.Dictionary
	h.pending.Inbox = h.pending.Inbox || hint.Inbox
	h.pending.Blocked = h.pending.Blocked || hint.Blocked
	h.nameStreams(hint.Streams)
	for _, key := range hint.Keys {
		if h.pending.Keys = AppendNew(h.pending.Keys, key); len(h.pending.Keys) > maxHintKeys {
			h.pending.Keys = []string{"*"}
			break
		}
	}
	h.wake()
}

// nameStreams adds streams to the pending hint. The lock is held.
func (h *hinter) nameStreams(ids []base.UUID) {
	for _, id := range ids {
		if h.pending.AllStreams {
			return
		}
		if slices.Contains(h.pending.Streams, id) {
			continue
		}
		if h.pending.Streams = append(h.pending.Streams, id); len(h.pending.Streams) > maxHintStreams {
			h.pending.Streams, h.pending.AllStreams = nil, true
		}
	}
}

func (h *hinter) wake() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// Name adds the classes of a hint to those of the pending one; the caller merges the rest. If either may be about other classes, so may the result.
// The lock is held.
func (h *hinter) Name(hint store.Hint) {
	about := func(hint *store.Hint) bool { return len(hint.Lanes) > 0 || hint.Blocked }
	switch {
	case !about(&hint):
		return
	case !about(&h.pending):
		h.pending.Named = hint.Named
	default:
		h.pending.Named = h.pending.Named && hint.Named
	}
	for _, class := range hint.Classes {
		if h.pending.Named && !h.classes[class] {
			SetIn(&h.classes, class, true)
			h.pending.Classes = append(h.pending.Classes, class)
		}
	}
	if len(h.pending.Classes) > maxPendingClasses || !h.pending.Named {
		h.pending.Named, h.pending.Classes, h.classes = false, nil, nil
	}
}

// run sends hints until ctx ends: the first at once, later ones collected.
func (h *hinter) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.kick:
		}
		if err := h.e.Store.Notify(ctx, h.take()); err != nil && ctx.Err() == nil {
			h.e.Cfg.Logger.Debug("a hint was not sent", "error", err)
		}
		pause := h.e.Cfg.Clock.NewTimer(hintGap)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// take returns the hint that travels now.
func (h *hinter) take() store.Hint {
	h.mu.Lock()
	defer h.mu.Unlock()
	hint := h.pending
	h.pending, h.classes = store.Hint{}, nil
	if len(hint.Classes) > maxHintClasses {
		h.pending = store.Hint{Lanes: hint.Lanes, Blocked: hint.Blocked, Named: true, Classes: hint.Classes[maxHintClasses:]}
		for _, class := range h.pending.Classes {
			SetIn(&h.classes, class, true)
		}
		hint.Classes = slices.Clip(hint.Classes[:maxHintClasses])
		h.wake()
	}
	return hint
}

// listen acts on the hints of other processes, and of transactions of the user, until ctx ends.
func (h *hinter) listen(ctx context.Context) {
	for ctx.Err() == nil {
		err := h.e.Store.Listen(ctx, func(hint store.Hint) {
			_ = h.e.Guard(inHint, func() { h.hear(ctx, hint) }) // if it panics, the poll finds what was missed
		})
		if ctx.Err() != nil {
			return
		}
		h.e.QuietLog.Warn("hints from other processes are not heard for a while", "error", err)
		pause := h.e.Cfg.Clock.NewTimer(time.Second)
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
}

func (h *hinter) hear(ctx context.Context, hint store.Hint) {
	h.e.Trap("hint", base.UUID{})
	h.e.Meter.Woken(wokenByHint)
	switch { // if this fails, the poll finds it
	case hint.Dictionary && hint.AllLanes: // hints may have been lost
		_ = h.e.Dict.Reload(ctx)
	case hint.Dictionary:
		_ = h.e.Dict.Heard(ctx)
	}
	h.e.Dispatcher.Hinted(hint)
	for _, hear := range h.e.extensions.hinted {
		hear(&hint)
	}
	if hint.Log {
		h.e.Log.look()
	}
	if hint.Inbox && !h.e.Cfg.NoTimers {
		h.e.LookAtInbox()
	}
}
