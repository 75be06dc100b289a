package stream

import (
	"cmp"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Following selects the attempts of a follower (E18).
type Following uint8

// The kinds of following.
const (
	Latest   Following = iota // the newest attempt alone
	Every                     // every attempt, in order
	OnlyThis                  // one attempt, without attempt_started and without the end of the execution
)

// History is what is known of an execution when a follower is asked what comes next. All of it must be of one moment.
type History struct {
	// Attempts are attempts by ascending index: for Latest at least the newest and that of the reader's cursor, for Every at least those from the one of
	// the cursor on, for OnlyThis at least that one.
	Attempts []Attempt
	// RunFrom is the number of attempts that there were at the last replay, and so the index of the first attempt of the present run; 0: the execution
	// was never replayed. A reader whose cursor is closed continues from there.
	RunFrom int
	End     Ending
}

// Attempt is an attempt and its stream, as far as a follower needs to know. Attempts have dense indexes from 0.
type Attempt struct {
	Index     int
	Type      string
	StartedAt base.Time
	LastSeq   int64 // 0: it has no frames
	Closed    Closing
}

// Ending is the end of the execution. The zero Ending is that of an execution that goes on.
type Ending struct {
	Outcome string // "": it is not terminal
	At      base.Time
}

// StepKind is the kind of a Step.
type StepKind uint8

// The kinds of steps. All but StepWait, StepRead and StepDone are control items that are sent.
const (
	StepWait          StepKind = iota // nothing can be sent now: wait for a change
	StepRead                          // read and send frames of Attempt after After, and report them with Advance
	StepStarted                       // attempt_started
	StepAttemptClosed                 // attempt_closed
	StepGap                           // gap, of Advance alone
	StepClosed                        // closed
	StepDone                          // nothing follows: the response ends; if it is the first step, the answer is 204
)

// Step is what a follower does next.
type Step struct {
	Kind       StepKind
	ID         Cursor  // of StepStarted, StepAttemptClosed and StepClosed: the id of the item. A gap has none
	Attempt    Attempt // of StepRead, StepStarted and StepAttemptClosed; of StepGap its Index alone
	Supersedes int     // of StepStarted: the index of the attempt before; -1: there is none
	After      int64   // of StepRead
	Before     int64   // of StepGap: frames below this seq were dropped
	End        Ending  // of StepClosed
}

// Follower determines what a reader who follows an execution is sent, and in which order. It holds the reader's cursor; a reader who reconnects with that
// cursor is sent the same. A reader of Latest whose attempt is no longer the newest is not sent the rest of that attempt (E19); one that has all of its frames
// gets its close (E18).
type Follower struct {
	what    Following
	only    int // of OnlyThis
	cursor  Cursor
	settled bool  // the cursor was compared with what there is
	gap     int64 // the last gap that was reported of the attempt of the cursor; 0: none
}

// NewFollower returns a follower that goes on exclusively after a cursor. A cursor beyond what there is counts as the end.
func NewFollower(what Following, after Cursor) *Follower {
	return &Follower{what: what, cursor: after}
}

// NewAttemptFollower returns a follower of one attempt, OnlyThis.
func NewAttemptFollower(attempt int, after Cursor) *Follower {
	return &Follower{what: OnlyThis, only: attempt, cursor: after}
}

// Cursor is the reader's cursor.
func (f *Follower) Cursor() Cursor { return f.cursor }

// Next returns the next step. A control item counts as sent with this call.
func (f *Follower) Next(h *History) Step {
	if !f.settled {
		f.settle(h)
	}
	if f.cursor.Place == AtClosed {
		return Step{Kind: StepDone}
	}
	if f.what == OnlyThis {
		return f.inside(h.find(f.only), StepDone)
	}
	at, next := f.around(h)
	superseded := f.what == Latest && next != nil
	if at != nil && !superseded {
		if step := f.inside(at, StepWait); step.Kind != StepWait {
			return step
		}
	}
	switch {
	case superseded && at != nil && at.Closed.Reason != 0 && f.cursor.Place == AtFrame && f.cursor.Seq == at.LastSeq:
		return f.leave(at)
	case next != nil:
		return f.start(next)
	case h.End.Outcome != "":
		f.cursor = Cursor{Place: AtClosed}
		return Step{Kind: StepClosed, ID: f.cursor, End: h.End}
	default:
		return Step{Kind: StepWait}
	}
}

// around returns the attempt of the cursor and the one that is followed after it; nil: there is none.
func (f *Follower) around(h *History) (at, next *Attempt) {
	first := 0
	if f.cursor.Place != AtStart {
		at = h.find(f.cursor.Attempt)
		first = f.cursor.Attempt + 1
	}
	place, _ := h.search(first)
	if place == len(h.Attempts) {
		return at, nil
	}
	if f.what == Latest {
		return at, h.newest()
	}
	return at, &h.Attempts[place]
}

// inside returns the step within an attempt, and after its close the given one.
func (f *Follower) inside(a *Attempt, after StepKind) Step {
	if a == nil || f.cursor.Place == AtAttemptEnd {
		return Step{Kind: after}
	}
	switch {
	case f.cursor.Seq < a.LastSeq:
		return Step{Kind: StepRead, Attempt: *a, After: f.cursor.Seq}
	case a.Closed.Reason == 0:
		return Step{Kind: StepWait}
	}
	return f.leave(a)
}

// leave sends the close of an attempt.
func (f *Follower) leave(a *Attempt) Step {
	f.cursor = AttemptEndCursor(a.Index, a.LastSeq)
	return Step{Kind: StepAttemptClosed, ID: f.cursor, Attempt: *a}
}

func (f *Follower) start(a *Attempt) Step {
	f.cursor, f.gap = FrameCursor(a.Index, 0), 0
	return Step{Kind: StepStarted, ID: f.cursor, Attempt: *a, Supersedes: a.Index - 1}
}

// settle turns the cursor of a reader into a place that exists.
func (f *Follower) settle(h *History) {
	f.settled = true
	if f.what == OnlyThis {
		f.cursor = f.cursor.settledIn(f.only, h.find(f.only))
		return
	}
	newest := h.newest()
	switch c := f.cursor; {
	case c.Place == AtClosed && h.End.Outcome != "":
	case c.Place == AtClosed && h.RunFrom > 0: // the execution was replayed since
		f.cursor = AttemptEndCursor(h.RunFrom-1, 0)
		if last := h.find(h.RunFrom - 1); last != nil { // the cursor is handed out, and must be the attempt's own when it comes back
			f.cursor = last.end()
		}
	case c.Place == AtClosed || newest == nil:
		f.cursor = Cursor{}
	case c.Place == AtEnd || c.inAttempt() && c.Attempt > newest.Index:
		f.cursor = newest.end()
	case c.inAttempt():
		f.cursor = c.settledIn(c.Attempt, h.find(c.Attempt))
	}
}

// settledIn returns the place in an attempt that a cursor stands for where that attempt is read; it is nil if the attempt is not known.
func (c Cursor) settledIn(index int, a *Attempt) Cursor {
	switch {
	case c.Place == AtClosed:
		return c
	case a == nil && c.inAttempt():
		return c
	case a == nil || c.Place == AtStart:
		return FrameCursor(index, 0)
	case c == a.end():
		return c
	case c.Place == AtEnd:
		return FrameCursor(index, a.LastSeq)
	default:
		return FrameCursor(index, min(c.Seq, a.LastSeq))
	}
}

// end is the cursor after all that an attempt has.
func (a *Attempt) end() Cursor {
	if a.Closed.Reason != 0 {
		return AttemptEndCursor(a.Index, a.LastSeq)
	}
	return FrameCursor(a.Index, a.LastSeq)
}

// Advance moves the cursor past a page that was read for a StepRead. If frames after the cursor were dropped and no gap was sent for them yet, it returns a
// StepGap, which is sent before the frames of the page (E22).
func (f *Follower) Advance(page *ReadPage) (gap Step, dropped bool) {
	a := f.cursor.Attempt
	f.cursor = FrameCursor(a, max(f.cursor.Seq, page.Position))
	if page.TruncatedBefore <= f.gap {
		return Step{}, false
	}
	f.gap = page.TruncatedBefore
	return Step{Kind: StepGap, Attempt: Attempt{Index: a}, Before: f.gap}, true
}

func (h *History) newest() *Attempt {
	if len(h.Attempts) == 0 {
		return nil
	}
	return &h.Attempts[len(h.Attempts)-1]
}

// search returns the place of the first attempt that is not below an index, and whether it has that index.
func (h *History) search(index int) (int, bool) {
	return slices.BinarySearchFunc(h.Attempts, index, func(a Attempt, index int) int { return cmp.Compare(a.Index, index) })
}

// find returns an attempt; nil: it is not known.
func (h *History) find(index int) *Attempt {
	at, ok := h.search(index)
	if !ok {
		return nil
	}
	return &h.Attempts[at]
}
