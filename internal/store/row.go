package store

import "github.com/flowfabric/flowfabric/internal/core"

// Row is an execution as stores keep it: the columns that statements look at, and two blobs with the rest. RowOf makes it,
// Execution reads it back.
type Row struct {
	// Written once.
	ID      core.UUID
	N       uint8
	Class   int32
	Created core.Time
	Fixed   []byte // creator, idempotency key, flow, parent, policy, content type and size of the input
	Input   []byte // nil when not loaded; never nil in RowOf when the input is loaded

	// Written with every change.
	Status      core.Status
	Reason      core.Reason
	Next        core.Next
	Priority    int
	Order       int64
	QueuedAt    core.Time
	StatusSince core.Time
	MutatedAt   core.Time
	CompletedAt core.Time
	WakeAt      core.Time
	TimerAt     core.Time
	LeaseEpoch  int64
	LeaseID     core.UUID // of the lease, or of the last one
	AttemptID   core.UUID
	Body        []byte // everything else

	// Written with every change and by renewals.
	LeaseExpires core.Time
	LeaseRenewed core.Time
	LeaseTTL     core.Millis
}

// HistoryRow is an entry of the lease history as stores keep it. HistoryRowOf makes it, Record reads it back.
type HistoryRow struct {
	ID      core.UUID
	Epoch   int64
	LeaseID core.UUID
	EndedAt core.Time
	End     core.LeaseEnd
	Body    []byte // everything else; the final state of an attempt patched in by PatchState and PatchBody
	// What an AttemptPatch wrote later: 0 and nil when nothing did.
	PatchState core.AttemptState
	PatchBody  []byte
	Result     []byte // bytes of the result; HasResult tells absent from empty
	HasResult  bool
}
