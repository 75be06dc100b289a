package core

import (
	"bytes"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
)

// The states of a waitpoint (section 3).
const (
	WaitpointPending = "pending"
	WaitpointActive  = "active"
	WaitpointClosed  = "closed"
)

// WaitpointView is a waitpoint with everything that is derived (section 3, W83). Its counts are computed from the signals each time.
type WaitpointView struct {
	Waitpoint
	State          string
	CloseReason    CloseReason
	ClosedAt       base.Time
	SignalCount    int
	MatchedSignals int
	LastSignalAt   base.Time
	LinkCount      int
}

// WaitpointViews lists the pending and active waitpoints, and the closed ones if asked for, in order of their ids (W83). Errors:
// corruption.
func (x *Execution) WaitpointViews(d *Dossier, includeClosed bool) ([]WaitpointView, error) {
	views := make([]WaitpointView, 0, len(d.Waitpoints))
	for i := range d.Waitpoints {
		if !includeClosed && d.waitpointEnd(d.Waitpoints[i].ID) != nil {
			continue
		}
		view, err := x.WaitpointView(d, &d.Waitpoints[i])
		if err != nil {
			return nil, err
		}
		views = append(views, view)
	}
	slices.SortFunc(views, func(a, b WaitpointView) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return views, nil
}

// WaitpointView returns the view of one waitpoint. Errors: corruption.
func (x *Execution) WaitpointView(d *Dossier, w *Waitpoint) (WaitpointView, error) {
	view := WaitpointView{Waitpoint: *w, State: WaitpointPending}
	open := x.openSuspension()
	switch end := d.waitpointEnd(w.ID); {
	case end != nil:
		view.State, view.CloseReason, view.ClosedAt = WaitpointClosed, end.Reason, end.At
	case w.ActivatedAt != 0:
		view.State = WaitpointActive
		if open != nil {
			view.ExpiresAt = open.TimeoutAt // an escalation removes it (W75)
		}
	}
	if err := view.count(d); err != nil {
		return WaitpointView{}, err
	}
	for i := range d.Links {
		if d.Links[i].WaitpointID == w.ID {
			view.LinkCount++
		}
	}
	return view, nil
}

// count counts the waitpoint's own signals. Buffered ones are matched by the condition of the suspension that adopted them.
func (v *WaitpointView) count(d *Dossier) error {
	var adopted *condition.Evaluation
	if s := d.suspensionByID(v.SuspensionID); s != nil {
		condition, err := condition.Decode(s.Condition)
		if err != nil {
			return err
		}
		adopted = condition.Evaluate(nil)
	}
	for i := range d.Signals {
		s := &d.Signals[i]
		if s.WaitpointID != v.ID {
			continue
		}
		v.SignalCount++
		v.LastSignalAt = base.Later(v.LastSignalAt, s.AcceptedAt)
		if s.matchedBy(adopted) {
			v.MatchedSignals++
		}
	}
	return nil
}

// matchedBy reports whether the signal counts. For a buffered one the condition that adopted it decides (W43); nil: none has.
func (s *Signal) matchedBy(adopted *condition.Evaluation) bool {
	if s.Effect == condition.EffectBuffered && adopted != nil {
		return adopted.Matches(s.evidence())
	}
	return s.Matched
}

// NodeProgress is the progress of one node of a condition (W43, W84).
type NodeProgress struct {
	Node     *condition.Condition
	Progress int
	Needed   int
}

// SuspendedView is an entry of list_suspended (W84).
type SuspendedView struct {
	ExecutionID  base.ID
	SuspensionID base.UUID
	SuspendedAt  base.Time
	TimeoutAt    base.Time
	ReasonCode   string
	Waitpoints   []WaitpointView // active ones, in the order of the bindings
	Progress     []NodeProgress
}

// SuspendedView returns what x waits for; nil unless it is suspended. Errors: corruption.
func (x *Execution) SuspendedView(d *Dossier) (*SuspendedView, error) {
	open := x.openSuspension()
	if open == nil {
		return nil, nil
	}
	s := d.suspension(open.Seq)
	if s == nil {
		return nil, x.lacks("suspension")
	}
	resume, err := condition.Decode(s.Condition)
	if err != nil {
		return nil, err
	}
	view := &SuspendedView{
		ExecutionID: x.ID, SuspensionID: s.ID, SuspendedAt: open.At, TimeoutAt: open.TimeoutAt, ReasonCode: open.ReasonCode,
	}
	for _, row := range d.rowsOf(s) {
		shown, err := x.WaitpointView(d, &row)
		if err != nil {
			return nil, err
		}
		view.Waitpoints = append(view.Waitpoints, shown)
	}
	progress := resume.Evaluate(evidenceIn(d.signalsOf(s))).Progress()
	for i, node := range resume.Leaves() {
		needed := 1
		if node.Kind == condition.Count {
			needed = node.N
		}
		view.Progress = append(view.Progress, NodeProgress{Node: node, Progress: progress[i], Needed: needed})
	}
	return view, nil
}

// SignalViews lists the stored signals in order of acceptance, without payload bytes (W85): all of them, or those of one suspension.
// Errors: corruption.
func (d *Dossier) SignalViews(suspension base.UUID) ([]Signal, error) {
	var shown []Signal
	for i := range d.Suspensions {
		if s := &d.Suspensions[i]; suspension.IsZero() || s.ID == suspension {
			judged, err := d.judged(s)
			if err != nil {
				return nil, err
			}
			shown = append(shown, judged...)
		}
	}
	if suspension.IsZero() {
		shown = append(shown, d.Signals...) // those that no suspension has adopted
	}
	slices.SortStableFunc(shown, byOrdinal)
	return slices.CompactFunc(shown, func(a, b Signal) bool { return a.Ordinal == b.Ordinal }), nil
}

// The states of a link (W74).
const (
	LinkOpen    = "open"
	LinkDecided = "decided"
	LinkRevoked = "revoked"
	LinkExpired = "expired"
	LinkClosed  = "closed" // the waitpoint closed by something else
)

// LinkView is a link with everything that is derived.
type LinkView struct {
	Link
	State string
	End   *LinkEnd // nil unless decided or revoked
}

// LinkViews lists the links of a waitpoint in order of creation (W74).
func (d *Dossier) LinkViews(now base.Time, waitpoint base.UUID) []LinkView {
	var views []LinkView
	for i := range d.Links {
		if d.Links[i].WaitpointID == waitpoint {
			views = append(views, d.LinkView(now, &d.Links[i]))
		}
	}
	slices.SortStableFunc(views, func(a, b LinkView) int { return int(a.CreatedAt - b.CreatedAt) })
	return views
}

// LinkView returns the view of one link.
func (d *Dossier) LinkView(now base.Time, l *Link) LinkView {
	view := LinkView{Link: *l, State: LinkOpen, End: d.linkEnd(l.ID)}
	switch end := view.End; {
	case end != nil && end.Revoked:
		view.State = LinkRevoked
	case end != nil:
		view.State = LinkDecided
	case l.ExpiresAt.Reached(now):
		view.State = LinkExpired
	case d.waitpointEnd(l.WaitpointID) != nil:
		view.State = LinkClosed
	}
	return view
}
