package core

import (
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// CellKind is the kind of a cell in the table of transitions.
type CellKind uint8

// The kinds of cells of L41.
const (
	CellUnseen  CellKind = iota // the operation does not see rows in that status
	CellBecomes                 // the status becomes Cell.Status
	CellGates                   // the gate decides the status (L14)
	CellStays                   // the status stays
	CellRefuses                 // the error is Cell.Code
	CellFences                  // the fence check decides (L34); late commands act as from running
	CellVaries                  // described by Cell.Note
)

// Cell is what an operation does to an execution in one status.
type Cell struct {
	Kind   CellKind
	Status Status    // with CellBecomes
	Next   Next      // with CellGates: what the next acquisition does; NextNone: as before
	Code   base.Code // with CellRefuses
	Note   string    // additional text
}

// Transition is one row of the table of L41: an operation and what it does in each status.
type Transition struct {
	Rule      string
	Operation string
	Ready     Cell
	Delayed   Cell
	Blocked   Cell
	Granted   Cell
	Running   Cell
	Suspended Cell
	Terminal  Cell
}

// Cell returns the entry of the row for a status; all terminal statuses share one.
func (t *Transition) Cell(s Status) Cell {
	switch s {
	case Ready:
		return t.Ready
	case Delayed:
		return t.Delayed
	case Blocked:
		return t.Blocked
	case Granted:
		return t.Granted
	case Running:
		return t.Running
	case Suspended:
		return t.Suspended
	default:
		return t.Terminal
	}
}

var (
	unseen = Cell{}
	stays  = Cell{Kind: CellStays}
	fenced = Cell{Kind: CellFences}
	gates  = Cell{Kind: CellGates}
)

func becomes(s Status) Cell       { return Cell{Kind: CellBecomes, Status: s} }
func gatesTo(n Next) Cell         { return Cell{Kind: CellGates, Next: n} }
func refuses(code base.Code) Cell { return Cell{Kind: CellRefuses, Code: code} }
func varies(note string) Cell     { return Cell{Kind: CellVaries, Note: note} }
func (c Cell) note(n string) Cell { c.Note = n; return c }

// Transitions returns the table of L41.
func Transitions() []Transition {
	var (
		notEligible = refuses(base.CodeExecutionNotEligible)
		notActive   = refuses(base.CodeExecutionNotActive)
		notResumed  = refuses(base.CodeNotAResumedExecution)
		conflict    = refuses(base.CodeLeaseConflict)
		notTerminal = refuses(base.CodeExecutionNotTerminal)
		outstanding = refuses(base.CodeGrantOutstanding)
		unknown     = refuses(base.CodeGrantUnknown)
		notSusp     = refuses(base.CodeExecutionNotSuspended)
		noLease     = refuses(base.CodeNoActiveLease).note("d")
		cancelled   = becomes(Cancelled)
		expired     = becomes(Expired)
	)
	worker := func(rule, operation string, running Cell) Transition {
		return Transition{rule, operation, fenced, fenced, fenced, fenced, running, fenced, fenced}
	}
	return []Transition{
		{"L42", "claim", becomes(Running).note("or admission block"), unseen, becomes(Running).note("admission block only, S46"), unseen, unseen, unseen, unseen},
		{"L43", "grant", becomes(Granted).note("or admission block"), unseen, becomes(Granted).note("admission block only, S46"), unseen, unseen, unseen, unseen},
		{"L44", "grant (one id)", becomes(Granted), notEligible, notEligible.note("a"), outstanding, conflict, notEligible, notActive},
		{"L45", "claim_from_grant", unknown, unknown, unknown, becomes(Running), unknown.note("b"), unknown, unknown},
		{"L46", "claim_resumed", becomes(Running).note("c"), notResumed, notResumed.note("a"), outstanding, notResumed.note("b"), notResumed, notResumed},
		{"L47", "reclaim", becomes(Running).note("c"), notEligible, notEligible.note("a"), outstanding, conflict.note("b"), refuses(base.CodeExecutionNotReclaimable), notActive},
		{"L48", "operator_claim", becomes(Running), notEligible, notEligible.note("a"), outstanding, conflict.note("b"), notEligible, notActive},
		worker("L49", "renew", stays),
		worker("L49", "progress", stays),
		worker("L50", "complete", becomes(Succeeded)),
		worker("L51", "fail", gatesTo(NextRetry).note("failed when there is no retry")),
		worker("L52", "delay", gatesTo(NextResume)),
		worker("L53", "wait_for_children", gatesTo(NextResume).note("stays if already decided")),
		worker("L54", "suspend", becomes(Suspended).note("next=resume; stays if already satisfied")),
		worker("L55", "release", gatesTo(NextResume)),
		{"L56", "cancel", cancelled, cancelled, cancelled, cancelled, cancelled, cancelled, notActive.note("cancelled: the same answer")},
		{"L57", "revoke", noLease, noLease, noLease, noLease, gatesTo(NextReclaim), noLease, notActive},
		{"L58", "resume", notSusp, notSusp, notSusp, notSusp, notSusp, gatesTo(NextResume), notActive},
		{"L59", "join satisfied", stays, stays, gates.note("waiting_for_children only"), stays, stays, stays, stays},
		{"L60", "join impossible", stays, stays, becomes(Skipped).note("waiting_for_children only; a wait for own children: gate"), stays, stays, stays, stays},
		{"L61", "sub-flow ended", unseen, unseen, varies("waiting_for_subflow: succeeded, failed or cancelled"), unseen, unseen, unseen, unseen},
		{"L62", "replay", notTerminal, notTerminal, notTerminal, notTerminal, notTerminal, notTerminal, gatesTo(NextReplay)},
		{"L63", "set_priority", stays, stays, stays, stays, stays, stays, notActive},
		{"L64", "hold", gates, gates, gates, gates.note("the grant is void"), stays, stays, notActive},
		{"L65", "release_hold", stays, stays, gates, stays, stays, stays, notActive},
		{"L66", "set_tags", stays, stays, stays, stays, stays, stays, stays},
		{"L67", "deadline due", expired, expired, expired, expired, expired, expired, unseen},
		{"L68", "attempt timeout due", unseen, unseen, unseen, unseen, gatesTo(NextRetry).note("as fail, class timeout"), unseen, unseen},
		{"L69", "lease lapse due", unseen, unseen, unseen, unseen, gatesTo(NextReclaim).note("failed at the cap"), unseen, unseen},
		{"L70", "grant expiry due", unseen, unseen, unseen, gates, unseen, unseen, unseen},
		{"L71", "delay due", unseen, gates, unseen, unseen, unseen, unseen, unseen},
		{"L72", "timeout of a wait due", unseen, unseen, gates.note("a wait for children"), unseen, unseen, varies("W75: gate, failed, cancelled, expired, or stays"), unseen},
		{"L73", "admission cause removed", unseen, unseen, gates.note("admission block only"), unseen, unseen, unseen, unseen},
		{"L152", "hard breach of a budget", unseen, unseen, unseen, unseen, varies("by on_hard: stays, failed, suspended or cancelled"), unseen, unseen},
	}
}

// String formats the cell for the table in the documentation.
func (c Cell) String() string {
	text := ""
	switch c.Kind {
	case CellUnseen:
		return "-"
	case CellBecomes:
		text = c.Status.String()
	case CellGates:
		text = "gate"
		if c.Next != NextNone {
			text += ", next=" + c.Next.String()
		}
	case CellStays:
		text = "="
	case CellRefuses:
		text = "`" + string(c.Code) + "`"
	case CellFences:
		text = "fence"
	case CellVaries:
		return c.Note
	}
	if c.Note != "" {
		text += " (" + c.Note + ")"
	}
	return text
}

// StateMachine renders the table as a page of the documentation.
func StateMachine() string {
	var page strings.Builder
	page.WriteString(stateMachineHead)
	for _, t := range Transitions() {
		for _, cell := range [...]string{
			t.Rule, t.Operation, t.Ready.String(), t.Delayed.String(), t.Blocked.String(), t.Granted.String(),
			t.Running.String(), t.Suspended.String(), t.Terminal.String(),
		} {
			page.WriteString("| " + cell + " ")
		}
		page.WriteString("|\n")
	}
	page.WriteString(stateMachineNotes)
	return page.String()
}

const stateMachineHead = `# The state machine of an execution

This page is generated from internal/core/transitions.go; a test runs every cell against the rules and compares this page.

Each cell says what an operation does to an execution in that status: the new status; "gate" where delay, dependencies and
holds decide between ready, delayed and blocked; "=" where the status stays; an error code where the operation is refused;
"fence" where the check of the worker's fence decides; "-" where the operation does not look at such executions.

| rule | operation | ready | delayed | blocked | granted | running | suspended | terminal |
|---|---|---|---|---|---|---|---|---|
`

const stateMachineNotes = `
- (a) An execution blocked by admission is tested for admission anew and taken if it passes.
- (b) A repeat of the call that acquired the current lease gets that lease again.
- (c) claim_resumed wants next=resume, reclaim wants next=reclaim; otherwise they are refused.
- (d) Success "already_satisfied" if the last lease was revoked, or expired and no other worker has taken over.

The gate, first match decides: a pending join or open sub-flow blocks; a delay that is not over delays; an operator's hold
blocks; otherwise the execution is ready.
`
