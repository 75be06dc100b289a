// Package streams keeps the streams of attempts: the frames that workers append while they work, and the summary documents that they patch. The rules
// are in internal/core/stream; here they meet the fence of the attempt, the store, and readers who wait.
//
// What is stored belongs to the execution and goes with it: a head for each attempt that has frames, a chunk for what each append stored of each mode,
// and a document. An append locks the execution, reads its fence, and writes nothing of it; its frames share a commit with other commands (E4).
//
// The close of a stream is not stored. A stream is closed once its attempt is final, so the transaction that ends the attempt closes it, whatever ended
// it, and costs nothing more (closing.go).
package streams

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Streams appends to streams and reads them.
type Streams struct {
	*txn.Engine
	tails *tails
	trims *trimmer
	meter meter
}

// meter counts what is appended.
type meter struct {
	frames *metrics.Counters // by mode
	bytes  *metrics.Count
}

// slot is the place of the room among those that the kernel keeps.
const slot txn.Slot = 4

// New makes the room of streams, and registers it with the kernel.
func New(e *txn.Engine) *Streams {
	s := &Streams{Engine: e, tails: newTails(), meter: meter{e.NewCounter(metrics.Frames), e.NewCounter(metrics.FrameBytes).With()}}
	s.trims = newTrimmer(s)
	txn.UseRoom(e, slot, s)
	e.OnPhases(txn.Phases{At: txn.AtExecutions, Row: markTimedOut})
	e.OnTimer(timerFrames, txn.TimerRule{Label: "frames", Do: s.sweepFrames, Together: true, Long: true})
	e.OnLog(func(c *store.Commit) { s.tails.heard(c) })
	e.OnHint(func(h *store.Hint) { s.hinted(h) })
	e.OnReborn(s.tails.wakeAll)
	e.OnLoop(s.trims.run)
	if e.Store.Info().Shared {
		e.OnLoop(s.watch)
	}
	e.OnGauge(func() metrics.Family { return metrics.StreamReaders.Reading(float64(s.tails.count())) })
	return s
}

// markTimedOut records that an attempt has ended because its suspension timed out: the record of an attempt that ends while it waits does not say why.
func markTimedOut(u *txn.Tx, row *txn.Row) {
	x := row.Exec
	if row.Removed || !row.JustEnded() || x.Reason != core.SuspensionTimeout || x.Attempt == nil {
		return
	}
	u.AddDoc(store.Doc{DocRef: timedOutRef(x.ID.UUID, x.Attempt.ID), Body: empty})
}

// hinted wakes readers of streams to which another process has appended.
func (e *Streams) hinted(h *store.Hint) {
	if h.AllStreams || h.AllLanes { // or hints may have been lost
		e.look(e.Background())
		return
	}
	for _, id := range h.Streams {
		e.tails.wake(id)
	}
}

// appended publishes an append that is durable.
func (e *Streams) appended(a *appendFrames, trim bool) {
	e.tails.wake(a.id.UUID)
	e.Hints.Send(store.Hint{Streams: []base.UUID{a.id.UUID}})
	for mode, n := range a.counts {
		if n > 0 {
			e.meter.frames.With(mode.String()).Add(n)
		}
	}
	e.meter.bytes.Add(a.size)
	if trim {
		e.trims.add(a.id.UUID, a.fence.AttemptID)
	}
}

// watch finds appends of other processes of which no hint came, until ctx ends.
func (e *Streams) watch(ctx context.Context) {
	for {
		pause := e.Cfg.Clock.NewTimer(e.Cfg.PollInterval)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
			e.look(ctx)
		}
	}
}
