package core

import (
	"cmp"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Edge makes its downstream wait for the end of its upstream (F1). It is a record of the upstream, changed under the lock of the flow that the
// upstream is a member of.
type Edge struct {
	ID       base.UUID `json:"id"`
	FlowID   base.ID   `json:"flow"`
	From     NodeRef   `json:"from"`
	To       NodeRef   `json:"to"`
	Kind     EdgeKind  `json:"kind"`
	Pass     string    `json:"pass,omitempty"` // name of the input that it gives the downstream (F33); "": none
	Wait     int       `json:"wait,omitempty"` // the wait for children that it belongs to (F40); 0: an edge of the graph
	State    EdgeState `json:"state"`
	End      *EndedRun `json:"end,omitempty"`        // what resolved it
	Resolved base.Time `json:"resolved_at,omitzero"` // when
}

// NodeRef names a member.
type NodeRef struct {
	Name string  `json:"name"`
	ID   base.ID `json:"id"`
}

// EdgeKind states which outcomes of the upstream satisfy an edge (section 5 of the flows). Words are stored.
type EdgeKind string

// The kinds of edges.
const (
	SuccessOnly EdgeKind = "success_only"
	FailureOnly EdgeKind = "failure_only"
	AnyTerminal EdgeKind = "any_terminal"
)

// Known reports whether the kind is one of them.
func (k EdgeKind) Known() bool { return k == SuccessOnly || k == FailureOnly || k == AnyTerminal }

// EdgeState is the state of an edge. Words are stored.
type EdgeState string

// The states of an edge.
const (
	EdgePending    EdgeState = "pending"
	EdgeSatisfied  EdgeState = "satisfied"
	EdgeImpossible EdgeState = "impossible"
)

// EndedRun states how a run of an execution ended, as far as its dependents need to know (F27). It is carried with follow-up work and kept in the
// edges that it resolved.
type EndedRun struct {
	Status Status     `json:"status"`
	Reason string     `json:"reason,omitempty"` // of one that did not succeed
	Run    int        `json:"run,omitempty"`
	Result *ResultRef `json:"result,omitempty"` // nil: it left none
}

// ResultRef names a stored result: where its bytes lie and what they are.
type ResultRef struct {
	Of          base.ID `json:"of"`
	Epoch       int64   `json:"epoch"`
	ContentType string  `json:"content_type"`
	Size        int     `json:"size"`
}

// EndedRun returns how x has ended; x must be terminal.
func (x *Execution) EndedRun() EndedRun {
	end := EndedRun{Status: x.Status, Run: x.RunIndex()}
	if x.Status != Succeeded {
		end.Reason = x.Reason.String()
		return end
	}
	if x.Result != nil {
		of := x.ID
		if !x.ResultOf.IsZero() {
			of = x.ResultOf
		}
		end.Result = &ResultRef{Of: of, Epoch: x.ResultEpoch, ContentType: x.Result.ContentType, Size: x.Result.Size}
	}
	return end
}

// resolvedBy returns the state of an edge of the kind after an outcome.
func (k EdgeKind) resolvedBy(outcome Status) EdgeState {
	bad := outcome == Failed || outcome == Expired || outcome == Cancelled
	if k == AnyTerminal || k == SuccessOnly && outcome == Succeeded || k == FailureOnly && bad {
		return EdgeSatisfied
	}
	return EdgeImpossible
}

// Resolve applies the end of the upstream. It reports whether the edge left pending, which happens once per run even if the end is reported twice
// (F1).
func (e *Edge) Resolve(end EndedRun, now base.Time) bool {
	if e.State != EdgePending {
		return false
	}
	e.State, e.End, e.Resolved = e.Kind.resolvedBy(end.Status), &end, now
	return true
}

// reopen makes the edge wait for its upstream again (F54, F55).
func (e *Edge) reopen() { e.State, e.End, e.Resolved = EdgePending, nil, 0 }

// Input returns the named input that the edge gives its downstream; ok is false if it gives none (F34).
func (e *Edge) Input() (in NamedInput, ok bool) {
	if e.Pass == "" || e.State != EdgeSatisfied {
		return NamedInput{}, false
	}
	return NamedInput{Name: e.Pass, From: e.From, Outcome: e.End.Status, Result: e.End.Result, FailureReason: e.End.Reason, At: e.Resolved}, true
}

// NamedInput is an entry of a member's named inputs (F34).
type NamedInput struct {
	Name          string     `json:"name"`
	From          NodeRef    `json:"from"`
	Outcome       Status     `json:"outcome"`
	Result        *ResultRef `json:"result,omitempty"` // nil: there are no bytes
	FailureReason string     `json:"failure_reason,omitempty"`
	At            base.Time  `json:"at"` // when its edge was resolved
	Data          []byte     `json:"-"`  // the bytes, if they were loaded
}

// FreezeInputs returns the named inputs, by name, of a member whose join is satisfied (F35). Of several edges that share a name, the one resolved
// first counts (F36).
func FreezeInputs(inbound []Edge) []NamedInput {
	var inputs []NamedInput
	for i := range inbound {
		if in, ok := inbound[i].Input(); ok {
			inputs = append(inputs, in)
		}
	}
	slices.SortStableFunc(inputs, func(a, b NamedInput) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.At, b.At), strings.Compare(a.From.Name, b.From.Name))
	})
	return slices.CompactFunc(inputs, func(a, b NamedInput) bool { return a.Name == b.Name })
}
