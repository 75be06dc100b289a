package streams

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/stream"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// What a read returns does not depend on whether chunks that are out of retention were deleted (stream.Head), so deleting them is never urgent and
// happens in bulk, in transactions of its own: a while after an append that has put enough out of retention, and for best-effort frames when their
// time is over.

const (
	trimPause   = time.Second // in which streams collect that are worth trimming
	maxTrims    = 1 << 14     // streams that may wait for it; others are found by their next append
	trimsAtOnce = 64          // streams that are trimmed in a round; the chunks of the others collect meanwhile
	fewChunks   = 32          // chunks that are looked at in the first transaction; their number grows while they are small
	mostChunk   = 1024
	trimBytes   = 1 << 20 // of chunks that are looked at in one transaction, about
)

// worthTrimming reports whether frames of a stream are out of retention. Best-effort frames are left to their timer.
func worthTrimming(h *stream.Head, p *stream.Policy, now base.Time) bool {
	return h.MayTrim(p, stream.Durable, now) || h.MayTrim(p, stream.Summary, now)
}

// allDeleted reports whether nothing of a mode is stored.
func allDeleted(h *stream.Head, mode stream.Mode) bool {
	return h.Deleted[mode] == h.Tallies[mode].LastSeq
}

// armFrames arms the timer of the best-effort frames of a stream. While some are stored there is one.
func armFrames(u *txn.Tx, p *stream.Policy, id, attempt base.UUID) {
	timer := u.TimerAt(timerFrames, txn.RoundUp(u.Now.Add(2*p.BestEffort.TTLMS+1), txn.TimerGrid))
	timer.Texts = append(timer.Texts, id.String()+"/"+attempt.String())
}

// sweepFrames deletes best-effort frames whose time is over.
func (e *Streams) sweepFrames(ctx context.Context, t store.Timer) error {
	for _, text := range t.Texts {
		owner, key, _ := strings.Cut(text, "/")
		id, known := base.ParseUUID(owner)
		attempt, named := base.ParseUUID(key)
		if !known || !named {
			continue // no engine writes such a text
		}
		if err := e.trim(ctx, id, attempt, true); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// trimmer deletes chunks that are out of retention, some time after the appends that put them there.
type trimmer struct {
	e    *Streams
	kick chan struct{}
	mu   sync.Mutex
	due  map[[2]base.UUID]bool // executions and attempts
}

func newTrimmer(e *Streams) *trimmer {
	return &trimmer{e: e, kick: make(chan struct{}, 1), due: map[[2]base.UUID]bool{}}
}

func (t *trimmer) add(id, attempt base.UUID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.due) >= maxTrims {
		return
	}
	t.due[[2]base.UUID{id, attempt}] = true
	t.wake()
}

// take removes and returns some of the streams, any of them.
func (t *trimmer) take() (due [][2]base.UUID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for which := range t.due {
		if len(due) == trimsAtOnce {
			t.wake()
			break
		}
		delete(t.due, which)
		due = append(due, which)
	}
	return due
}

// wake makes run look again.
func (t *trimmer) wake() {
	select {
	case t.kick <- struct{}{}:
	default:
	}
}

// run trims until ctx ends. A stream that cannot be trimmed now is found by its next append.
func (t *trimmer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.kick:
		}
		pause := t.e.Cfg.Clock.NewTimer(trimPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		for _, which := range t.take() {
			if err := t.e.trim(ctx, which[0], which[1], false); err != nil && ctx.Err() == nil {
				t.e.Cfg.Logger.Debug("a stream was not trimmed", "execution_id", which[0], "error", err)
			}
		}
	}
}

// trim deletes chunks of a stream that are out of retention, in as many transactions as it takes. timed is set for the timer of best-effort frames,
// which goes on as long as some are stored.
func (e *Streams) trim(ctx context.Context, id, attempt base.UUID, timed bool) error {
	for limit := fewChunks; ctx.Err() == nil; {
		size, more, err := e.trimSome(ctx, id, attempt, limit, timed)
		if err != nil || !more {
			return err
		}
		switch {
		case size < trimBytes/4:
			limit = min(2*limit, mostChunk)
		case size > trimBytes:
			limit = max(limit/2, 1)
		}
	}
	return ctx.Err()
}

// trimSome looks at the oldest chunks of each mode that may have some to delete. It returns the bytes that it has looked at, and whether there may
// be more to delete.
func (e *Streams) trimSome(ctx context.Context, id, attempt base.UUID, limit int, timed bool) (size int, more bool, err error) {
	ref := headRef(id, attempt)
	u, err := e.Begin(ctx, store.Want{Executions: []base.UUID{id}, Docs: []store.DocRef{ref}})
	if err != nil {
		return 0, false, err
	}
	defer u.StoreTx.Rollback(ctx)
	row, doc := u.Entries[id], u.Doc(ref)
	if row == nil || doc == nil {
		return 0, false, nil // removed meanwhile
	}
	x := row.Exec
	head, err := decodeHead(doc)
	if err != nil {
		return 0, false, err
	}
	policy, changed := &x.Policy.Stream, false
	for _, mode := range stream.Modes() {
		if !head.MayTrim(policy, mode, u.Now) {
			continue
		}
		cut, err := e.oldest(ctx, u, x, &head, mode, limit)
		if err != nil {
			return 0, false, err
		}
		size += cut.size
		n, after := head.Trim(policy, mode, u.Now, cut.extents)
		for _, key := range cut.keys[:n] {
			u.DropDoc(store.DocRef{Kind: docChunk, Owner: txn.Owner(id), Key: key})
		}
		changed = changed || n > 0
		more = more || n == limit
		head = after
	}
	if changed {
		u.PutDoc(headDoc(ref, &head))
	}
	if timed && !more && !allDeleted(&head, stream.BestEffort) {
		armFrames(u, policy, id, attempt)
	}
	return size, more, u.Commit(ctx, []string{"trim_stream"})
}

// cut are the oldest chunks of a mode.
type cut struct {
	keys    []string
	extents []stream.Extent
	size    int
}

func (e *Streams) oldest(ctx context.Context, u *txn.Tx, x *core.Execution, head *stream.Head, mode stream.Mode, limit int) (cut, error) {
	var found cut
	before := len(u.Scanned)
	limitKey := stream.KeyLimit(head.Attempt, mode)
	scan := store.Scan{Kind: docChunk, Owner: txn.Owner(x.ID.UUID), Prefix: limitKey[:len(limitKey)-1], Limit: limit}
	if err := u.Load(ctx, store.Want{Scans: []store.Scan{scan}}); err != nil {
		return found, err
	}
	for i := range u.Scanned[before] {
		doc := &u.Scanned[before][i]
		extent, err := stream.DecodeExtent(doc.Data)
		if err != nil {
			return found, txn.Corrupt("chunk of a stream", err)
		}
		found.keys = append(found.keys, doc.Key)
		found.extents = append(found.extents, extent)
		found.size += len(doc.Data)
	}
	return found, nil
}
