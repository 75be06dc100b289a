package core

import (
	"cmp"
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
)

// MaxChildrenTimeout bounds the timeout of a wait for children (F40).
const MaxChildrenTimeout = base.Year

// maxNamedChildren is the maximum number of names in the event of a wait.
const maxNamedChildren = 100

// OfChildren reports whether the members of the flow were spawned by a worker, so that it is not a sub-flow. The kind does not decide this: a
// caller may use the same kind for any flow.
func (f *Flow) OfChildren() bool { return f.OnParentEnd != "" }

// ChildrenCancelled reports whether children are cancelled when their parent ends with that status (F44).
func (f *Flow) ChildrenCancelled(parent Status) bool {
	switch f.OnParentEnd {
	case CancelAlways:
		return true
	case CancelOnFailure:
		return parent != Succeeded
	default:
		return false
	}
}

// StartChildren records the flow that contains the children of the present run (F38).
func (x *Execution) StartChildren(now base.Time, flow base.ID) {
	x.Children = &Children{FlowID: flow}
	x.LastMutationAt = max(now, x.Latest())
}

// AwaitedChild is a child that a wait depends on; End is nil until it has ended.
type AwaitedChild struct {
	NodeRef
	End *EndedRun
}

// ChildrenWaitCommand is the command wait_for_children (F40).
type ChildrenWaitCommand struct {
	Fence     Fence
	Join      JoinSpec
	Kind      EdgeKind         // "": any_terminal
	TimeoutMS base.Millis      // 0: none
	Usage     map[string]int64 // spent already (B16)

	Children []AwaitedChild
	Before   base.Time // when the same wait, requested earlier in this run, was due to time out; absent: there was none
	Spawned  int       // how many children the same call has spawned (F43)
	Recorded *LeaseRecord
	Mint     func() base.UUID // makes ids of edges
}

// Check fills in defaults and checks the arguments: invalid_join, invalid_argument, invalid_usage, reserved_dimension.
func (c *ChildrenWaitCommand) Check() error {
	c.Kind = cmp.Or(c.Kind, AnyTerminal)
	if err := c.Join.Check(""); err != nil {
		return err
	}
	if !c.Kind.Known() {
		return base.Invalid("kind", "must be success_only, failure_only or any_terminal")
	}
	if c.TimeoutMS < 0 || c.TimeoutMS > MaxChildrenTimeout {
		return base.Invalid("timeout_ms", "must be in 1..%d", MaxChildrenTimeout)
	}
	return CheckUsage(c.Usage)
}

// The states of a wait for children that is over. The last one is returned when a wait that has timed out is requested again.
const (
	WaitSatisfied  = "satisfied"
	WaitImpossible = "impossible"
	WaitTimedOut   = "timeout"
)

// ChildrenWaitAnswer is the answer to wait_for_children. State is set for a wait that is already over; otherwise the lease has ended and Edges must
// be stored.
type ChildrenWaitAnswer struct {
	Waiting   bool
	State     string
	TimeoutAt base.Time // while waiting
	Edges     []Edge
	Late      bool
	Repeated  bool
	Recorded  RecordedChildrenWait // while waiting, or for a repeated call
}

// RecordedChildrenWait is what is stored of a wait for repeats of the call that began it (L34).
type RecordedChildrenWait struct {
	Wait    int     `json:"wait"`
	FlowID  base.ID `json:"flow"`
	Spawned int     `json:"spawned,omitempty"`
	Late    bool    `json:"late,omitempty"`
}

// WaitForChildren hands the lease back until the children decide the wait. If the wait is already decided, nothing changes (L96). Errors: those of
// Check and of the fence.
func (x *Execution) WaitForChildren(fx *Effects, c ChildrenWaitCommand) (ChildrenWaitAnswer, error) {
	if err := c.Check(); err != nil {
		return ChildrenWaitAnswer{}, err
	}
	in, err := x.enter(fx, c.Fence, EndWaitForChildren, c.Recorded)
	if err != nil {
		return ChildrenWaitAnswer{}, err
	}
	if in.repeat != nil {
		return repeatChildrenWait(in.repeat)
	}
	late := in.lapse != nil
	if len(c.Usage) > 0 {
		x.spend(fx, c.Usage, late)
		x.LastMutationAt = fx.Now
	}
	if state := c.stateBefore(fx.Now); state != "" {
		return ChildrenWaitAnswer{State: state, Late: late}, nil
	}
	return x.waitForChildren(fx, &c, in.lapse), nil
}

// RepeatsChildrenWait reports whether the fence belongs to a call that began a wait, in which case the recorded answer is returned (L34). Errors:
// those of the fence.
func (x *Execution) RepeatsChildrenWait(fx *Effects, f Fence, recorded *LeaseRecord) (bool, error) {
	in, err := x.enter(fx, f, EndWaitForChildren, recorded)
	return err == nil && in.repeat != nil, err
}

// stateBefore returns the state of a wait that is already over, or "" if it must begin.
func (c *ChildrenWaitCommand) stateBefore(now base.Time) string {
	j := c.join()
	switch j.verdict(true) {
	case JoinHeld, JoinNone:
		return WaitSatisfied
	case JoinBroken:
		return WaitImpossible
	}
	if c.Before.Reached(now) {
		return WaitTimedOut
	}
	return ""
}

// join counts the children in their present state.
func (c *ChildrenWaitCommand) join() Join {
	j := Join{JoinSpec: c.Join, N: len(c.Children), State: JoinPending}
	for i := range c.Children {
		if end := c.Children[i].End; end != nil {
			j.count(c.Kind.resolvedBy(end.Status))
		}
	}
	return j
}

// waitForChildren leaves running for a wait that is not yet decided.
func (x *Execution) waitForChildren(fx *Effects, c *ChildrenWaitCommand, lapse *LeaseRecord) ChildrenWaitAnswer {
	held := x.leave(fx, exit{end: EndWaitForChildren, state: AttemptInterrupted, interruption: InterruptedWaitingChildren, lapse: lapse})
	children := *x.Children
	children.Waits++
	w := &ChildrenWait{Number: children.Waits, Join: c.join(), Kind: c.Kind, Since: fx.Now, TimeoutAt: c.Before}
	if c.TimeoutMS > 0 && w.TimeoutAt == 0 {
		w.TimeoutAt = fx.Now.Add(c.TimeoutMS)
	}
	children.Wait = w
	x.Children = &children
	x.Next, x.Dependency = NextResume, WaitingForChildren
	x.gate(fx.Now)
	x.emitWaitingChildren(fx, held, w, c.Children)
	recorded := RecordedChildrenWait{Wait: w.Number, FlowID: children.FlowID, Spawned: c.Spawned, Late: held.late}
	text, _ := json.Marshal(recorded)
	fx.recordAnswer(text)
	return ChildrenWaitAnswer{Waiting: true, TimeoutAt: w.TimeoutAt, Edges: x.waitEdges(fx.Now, c), Late: held.late, Recorded: recorded}
}

// waitEdges returns the edges of the wait that has just begun. Those of children that have ended are resolved.
func (x *Execution) waitEdges(now base.Time, c *ChildrenWaitCommand) []Edge {
	edges := make([]Edge, len(c.Children))
	to := NodeRef{ID: x.ID}
	if x.Member != nil {
		to.Name = x.Member.Name
	}
	for i := range c.Children {
		edges[i] = Edge{
			ID: c.Mint(), FlowID: x.Children.FlowID, From: c.Children[i].NodeRef, To: to, Kind: c.Kind, Wait: x.Children.Wait.Number, State: EdgePending,
		}
		if end := c.Children[i].End; end != nil {
			edges[i].Resolve(*end, now)
		}
	}
	return edges
}

func (x *Execution) emitWaitingChildren(fx *Effects, held heldLease, w *ChildrenWait, children []AwaitedChild) {
	names := make([]string, min(len(children), maxNamedChildren))
	for i := range names {
		names[i] = children[i].Name
	}
	var o eventdata.Builder
	o.Str(eventdata.FieldPolicy, w.Join.Policy.String())
	o.Num(eventdata.FieldK, int64(w.Join.needed()))
	o.Strs(eventdata.FieldChildren, names)
	o.Moment(eventdata.FieldTimeoutAt, w.TimeoutAt)
	addExit(&o, held)
	x.emitFor(fx, held.instanceID, "execution.waiting_children", &o)
}

func repeatChildrenWait(record *LeaseRecord) (ChildrenWaitAnswer, error) {
	a := ChildrenWaitAnswer{Waiting: true, Repeated: true}
	if err := json.Unmarshal(record.Answer, &a.Recorded); err != nil {
		return a, base.Errorf(base.CodeCorruption, "the recorded answer of epoch %d of %s cannot be read: %w", record.Epoch, record.ExecutionID, err).
			With("record", record.ExecutionID.String()).With("field", "answer")
	}
	a.Late = a.Recorded.Late
	return a, nil
}

// ChildrenWaitOver reports whether a wait of x is over, so that later changes of its children do not affect it.
func (x *Execution) ChildrenWaitOver(number int) bool { return !x.waitsForChildren(number) }
