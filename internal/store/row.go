package store

import "github.com/flowfabric/flowfabric/internal/core"

// Row is an execution as stores keep it: the columns that statements and constraints look at, and two blobs with the rest. A
// column costs more than a field of a blob, with every row written. RowOf makes it, Execution reads it back.
type Row struct {
	// Written once.
	ID     core.UUID
	N      uint8
	Class  int32
	Origin []byte // the rest of what never changes
	Input  []byte // nil when not loaded; never nil in RowOf when the input is loaded

	// Written with every change and by renewals.
	Version int64 // by NextVersion with every write
	Status  core.Status
	Reason  core.Reason
	Next    core.Next
	Order   int64
	State   []byte // the rest
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
