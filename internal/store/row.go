package store

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Row is an execution as stores keep it: the columns that statements and constraints use, and two blobs with the rest. A column costs more than a
// field of a blob in every row written. RowOf makes it, Execution reads it back.
type Row struct {
	// Written once.
	ID     base.UUID
	N      uint8
	Class  int32
	Origin []byte // the other immutable fields
	Input  []byte // nil if not loaded; never nil in RowOf if the input is loaded

	// Written with every change and by renewals.
	Version int64 // set by NextVersion with every write
	Status  core.Status
	Reason  core.Reason
	Next    core.Next
	Order   int64
	State   []byte // the other fields
}

// HistoryRow is an entry of the lease history as stores keep it. HistoryRowOf makes it, Record reads it back.
type HistoryRow struct {
	ID      base.UUID
	Epoch   int64
	LeaseID base.UUID
	EndedAt base.Time
	End     core.LeaseEnd
	Body    []byte // everything else; PatchState and PatchBody may replace the final state of the attempt
	// Written later by an AttemptPatch: 0 and nil if there was none.
	PatchState core.AttemptState
	PatchBody  []byte
	Result     []byte // bytes of the result; HasResult distinguishes absent from empty
	HasResult  bool
}
