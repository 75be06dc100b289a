package store

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Query is a filter over search rows (L131): parts combine with AND, values of one part with OR. It finds candidates; the
// engine loads them and drops those that no longer match.
type Query struct {
	Statuses                 []core.Status
	Reasons                  []core.Reason
	Nexts                    []core.Next
	Lanes                    []string
	Kinds                    []string
	Namespaces               []string  // nil: all
	Classes                  []int32   // numbers; nil: all
	Tags                     []TagTerm // all must hold
	Created                  Range
	Completed                Range
	Updated                  Range
	Later                    []core.Status // rows with these statuses may have changed since they were written: Updated.From does not apply to them
	Flows                    []base.UUID
	Parents                  []base.UUID
	Instances                []string
	Creators                 []string
	Keys                     []string // idempotency keys
	PriorityMin, PriorityMax *int
	Text                     *Text // nil: any

	Order Order
	After *Hit // exclusive; nil: from the start
	Limit int
}

// Text is a free text in its meanings (U34). A row matches if one of them does; an empty meaning never matches.
type Text struct {
	IDPrefix string   // the beginning of the UUID's text
	Key      string   // the idempotency key
	Words    []string // lower-case words, all of which must occur in kind, tags or failure message
}

// TagTerm requires a tag: any value of Key, or this one.
type TagTerm struct {
	Key   string
	Value *string
}

// Range is [From, To); an absent bound is open.
type Range struct{ From, To base.Time }

// Order is the order of a list (L133).
type Order uint8

// The orders of L133. Ties go by UUID in the same direction.
const (
	CreatedDesc Order = iota
	CreatedAsc
	CompletedDesc // terminal only
	IDAsc
)

// Hit is a search row: an id and its sort keys.
type Hit struct {
	ID        base.UUID
	Created   base.Time
	Completed base.Time
}

// LaneHit is a search row with the lane of its execution.
type LaneHit struct {
	Hit
	Lane string
}

// GroupBy states by what rows are counted: a field, or the value of a tag.
type GroupBy struct {
	Field Field
	Tag   string // of ByTag: its key
}

// Field is what rows are counted by.
type Field uint8

// The fields that rows are counted by.
const (
	ByState Field = iota // status, reason and next together
	ByLane
	ByKind
	ByTag
	ByInstance   // that holds the lease; for a query with Instances
	ByLaneStatus // lane and status together
)

// Group is the number of rows with a value.
type Group struct {
	Status core.Status // of ByState, with Reason and Next; of ByLaneStatus
	Reason core.Reason
	Next   core.Next
	Text   string // of all but ByState
	Rows   int
}
