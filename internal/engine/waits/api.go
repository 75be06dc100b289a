package waits

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// Issued is a waitpoint as shown to a caller that may see its token (W30).
type Issued struct {
	core.Waitpoint
	Standing
	Token    keyring.Token // zero: no key is active (W27)
	Repeated bool          // it was made by an earlier call (W37, W4)
}

// Standing is the current state of a waitpoint: a repeated call may ask for it long after the waitpoint was created.
type Standing struct {
	State       string
	CloseReason core.CloseReason // of a closed one
	ClosedAt    base.Time

	SignalCount    int
	MatchedSignals int
	LastSignalAt   base.Time
	LinkCount      int
}

// SuspendAnswer answers a suspend (W49..W51). The signals have as many of their payloads as have room.
type SuspendAnswer struct {
	core.SuspendAnswer
	Tokens    []keyring.Token // of the waitpoints, in their order; zero: no key is active
	Standings []Standing      // of the waitpoints, in their order
}

// IssuedLink is a link as shown to a caller that may see its address (W68).
type IssuedLink struct {
	core.Link
	Token keyring.Token
}

// LinkPage is what a link shows to its holder (W70, U87).
type LinkPage struct {
	core.LinkView
	Waitpoint core.WaitpointView
	Kind      string
	Tags      base.Tags
	Asker     string    // the submitter of the work
	Needed    int       // how many decisions of one kind are enough; 0: the condition does not count
	Counted   string    // the name of the signals that count; "": all do
	Progress  int       // of them there are so many
	TimeoutAt base.Time // of the suspension; absent: none
	Now       base.Time
	Undecided error // why it cannot be decided any more (W73); nil: it can, or it is decided
}

// WaitpointQuery asks for waitpoints (W83, U79).
type WaitpointQuery struct {
	Namespace string        // "": all of the caller's
	Execution *base.GivenID // nil: of all executions
	State     string        // "": pending and active; pending, active, closed, all
	Key       string        // "": any
	Cursor    string
	Limit     *int
}

// WaitpointPage is a part of a list of waitpoints, in order of their ids.
type WaitpointPage struct {
	Items []core.WaitpointView
	Next  string
}

// SignalQuery asks for the signals of an execution (W85).
type SignalQuery struct {
	Suspension base.UUID // absent: all signals
	Cursor     string
	Limit      *int
}

// SignalPage is a part of the signals of an execution, in order of acceptance, with their payloads.
type SignalPage struct {
	Items []core.Signal
	Next  string
}

// SuspensionPage is a part of the history of suspensions, in order, without payloads of signals.
type SuspensionPage struct {
	Items []core.Observation
	Next  string
}

// SuspendedQuery asks for what is suspended (W84, U85).
type SuspendedQuery struct {
	Namespace   string // "": all of the caller's
	Lane        string
	ReasonCodes []string // any of them; none: all
	FlowID      *base.GivenID
	Tags        map[string]string
	Approver    string // only what has a link for this person
	Cursor      string
	Limit       *int
}

// SuspendedItem is a suspended execution with the information needed for a decision (U85).
type SuspendedItem struct {
	core.SuspendedView
	txn.View
	Links     []core.LinkView // of its open waitpoints
	Decisions []core.Signal   // verified ones, in order of acceptance, with the payloads that may hold a comment
	Needed    int             // how many different sources are enough; 0: the condition does not count
}

// SuspendedPage is a part of what is suspended, oldest first.
type SuspendedPage struct {
	Items []SuspendedItem
	Next  string
}
