package flowfabric

import (
	"slices"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// IssuedGrant is a grant that is out: who may claim the execution with its key. The key itself is shown to nobody.
type IssuedGrant struct {
	Kid        string // of the key that it is signed with
	WorkerID   string
	InstanceID string
	IssuedAt   time.Time
	ExpiresAt  time.Time
}

// EndedLease is the lease that ended last.
type EndedLease struct {
	ID        string
	Epoch     int64
	AttemptID string
	EndedAt   time.Time
	End       string // how it ended: complete, fail, delay, release, expired, revoked, ...
}

// showRecord adds what the record decides by and the full view alone shows (L120).
func (x *Execution) showRecord(of *core.Execution) {
	if of.Next != core.NextNone {
		x.Next = of.Next.String()
	}
	x.BlockedOn, x.DelayReason, x.Slots = of.BlockedOn, reasonText(of.DelayReason), slices.Clone(of.Holds)
	x.LeaseEpoch, x.RunStartedAt, x.WakeAt = of.LeaseEpoch, of.RunStartedAt.Std(), of.WakeAt.Std()
	x.AttemptDeadlineAt, x.AttemptRemaining = of.AttemptDeadline.Std(), duration(of.AttemptRemaining)
	if g := of.Grant; g != nil {
		x.Grant = &IssuedGrant{Kid: g.Kid, WorkerID: g.WorkerID, InstanceID: g.InstanceID, IssuedAt: g.IssuedAt.Std(), ExpiresAt: g.ExpiresAt.Std()}
	}
	if l := of.LastLease; l != nil {
		x.LastLease = &EndedLease{ID: l.ID.String(), Epoch: l.Epoch, AttemptID: l.AttemptID.String(), EndedAt: l.EndedAt.Std(), End: l.End.String()}
	}
}

// writeRecord adds them to the JSON.
func (x *Execution) writeRecord(w *wire.Execution) {
	w.Next, w.BlockedOn, w.DelayReason, w.Slots, w.LeaseEpoch = x.Next, x.BlockedOn, x.DelayReason, x.Slots, x.LeaseEpoch
	w.RunStartedAt, w.WakeAt = wireTime(x.RunStartedAt), wireTime(x.WakeAt)
	w.AttemptDeadlineAt, w.AttemptRemainingMS = wireTime(x.AttemptDeadlineAt), millis(x.AttemptRemaining)
	if g := x.Grant; g != nil {
		w.Grant = &wire.IssuedGrant{
			Kid: g.Kid, WorkerID: g.WorkerID, WorkerInstanceID: g.InstanceID, IssuedAt: wireTime(g.IssuedAt), ExpiresAt: wireTime(g.ExpiresAt),
		}
	}
	if l := x.LastLease; l != nil {
		w.LastLease = &wire.EndedLease{LeaseID: l.ID, LeaseEpoch: l.Epoch, AttemptID: l.AttemptID, EndedAt: wireTime(l.EndedAt), End: l.End}
	}
}

// readRecord reads them.
func (x *Execution) readRecord(w *wire.Execution) {
	x.Next, x.BlockedOn, x.DelayReason, x.Slots, x.LeaseEpoch = w.Next, w.BlockedOn, w.DelayReason, w.Slots, w.LeaseEpoch
	x.RunStartedAt, x.WakeAt = w.RunStartedAt.Time, w.WakeAt.Time
	x.AttemptDeadlineAt, x.AttemptRemaining = w.AttemptDeadlineAt.Time, duration(w.AttemptRemainingMS)
	if g := w.Grant; g != nil {
		x.Grant = &IssuedGrant{Kid: g.Kid, WorkerID: g.WorkerID, InstanceID: g.WorkerInstanceID, IssuedAt: g.IssuedAt.Time, ExpiresAt: g.ExpiresAt.Time}
	}
	if l := w.LastLease; l != nil {
		x.LastLease = &EndedLease{ID: l.LeaseID, Epoch: l.LeaseEpoch, AttemptID: l.AttemptID, EndedAt: l.EndedAt.Time, End: l.End}
	}
}
