package core

import (
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// WaitedFor is an execution whose end another one waits for (F62).
type WaitedFor struct {
	Name  string
	ID    base.ID
	Kind  EdgeKind
	State EdgeState
	Now   string // public state
}

// SubflowNow is the progress of the sub-flow of a flow node.
type SubflowNow struct {
	ID    base.ID
	State FlowState
	Nodes int
	Open  int
}

// maxWaitedFor is the maximum number of open executions that an explanation names.
const maxWaitedFor = 20

// joinBlocker states which ends are missing: of upstreams of a member, or of children of a parent.
func (in *ExplainInput) joinBlocker() Blocker {
	x := in.Execution
	code, who := BlockerDependencies, "upstreams"
	join, until, own := x.pendingJoin()
	if own {
		code, who = BlockerChildren, "children"
	}
	o := base.NewObject(200)
	o.Str("policy", join.Policy.String())
	o.Num("done", int64(join.Satisfied))
	o.Num("needed", int64(join.needed()))
	o.Num("impossible", int64(join.Impossible))
	o.Num("pending", int64(join.Pending()))
	o.Name("open")
	o.Text = append(o.Text, '[')
	var names []string
	for _, w := range in.WaitedFor {
		if w.State == EdgeSatisfied || len(names) == maxWaitedFor {
			continue
		}
		if len(names) > 0 {
			o.Text = append(o.Text, ',')
		}
		o.Text = append(o.Text, '{')
		o.Str("name", w.Name)
		o.Str("execution_id", w.ID.String())
		o.Str("kind", string(w.Kind))
		o.Str("state", string(w.State))
		o.Str("public_state", w.Now)
		o.Shut()
		names = append(names, fmt.Sprintf("%s (%s)", w.Name, w.Now))
	}
	o.Text = append(o.Text, ']')
	o.Moment("timeout_at", until)
	return Blocker{Code: code, Message: waitMessage(join, who, names, until), Since: x.StatusSince, Until: until, Data: o.Done()}
}

// pendingJoin returns the join that x is blocked on: that of its wait for its own children, else that of the member.
func (x *Execution) pendingJoin() (join Join, until base.Time, own bool) {
	if x.Children != nil && x.Children.Wait != nil && x.waitsForChildren(x.Children.Wait.Number) {
		return x.Children.Wait.Join, x.Children.Wait.TimeoutAt, true
	}
	if x.Member != nil {
		return x.Member.Join, 0, false
	}
	return Join{}, 0, false
}

func waitMessage(join Join, who string, names []string, until base.Time) string {
	text := fmt.Sprintf("It waits for its %s: %d of %d needed ends are there", who, join.Satisfied, join.needed())
	if len(names) > 0 {
		text += "; open are " + strings.Join(names, ", ")
	}
	if more := join.Pending() - len(names); more > 0 && len(names) == maxWaitedFor {
		text += fmt.Sprintf(" and %d more", more)
	}
	if until != 0 {
		text += fmt.Sprintf("; its wait runs out at %s", until)
	}
	return text + "."
}

// subflowBlocker states the progress of the sub-flow of a flow node.
func (in *ExplainInput) subflowBlocker() Blocker {
	b := Blocker{Code: BlockerSubflow, Message: "It waits for its sub-flow, which is about to begin.", Since: in.Execution.StatusSince}
	if f := in.Subflow; f != nil {
		o := base.NewObject(100)
		o.Str("flow_id", f.ID.String())
		o.Str("state", string(f.State))
		o.Num("done", int64(f.Nodes-f.Open))
		o.Num("needed", int64(f.Nodes))
		b.Message = fmt.Sprintf("It waits for its sub-flow %s: %d of %d members have ended.", f.ID, f.Nodes-f.Open, f.Nodes)
		b.Data = o.Done()
	}
	return b
}
