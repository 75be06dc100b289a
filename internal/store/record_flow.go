package store

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Parts of a membership. Values are stored.
const (
	memberRoot uint64 = 1 << iota // the outermost flow is a different one
	memberMayFail
	memberOutput
	memberSubflow
	memberLate // its flow is coded here: it became a member later
	memberOut
	memberJoin
	memberInputs
)

// bodyFlow codes the place of x in a flow and its children.
func (c *coder) bodyFlow(x *core.Execution, parts uint64) {
	if parts&bodyMember != 0 {
		c.member(x, present(c, &x.Member))
	}
	if parts&bodyChildren != 0 {
		c.children(present(c, &x.Children))
	}
	if parts&bodyResultOf != 0 {
		c.id(&x.ResultOf)
	}
	if parts&bodyEarlier != 0 {
		c.ids(&x.Earlier)
	}
}

func (c *coder) ids(v *[]base.ID) {
	n := c.length(len(*v))
	if c.reading {
		*v = make([]base.ID, n)
	}
	for i := range *v {
		c.id(&(*v)[i])
	}
}

func (c *coder) member(x *core.Execution, m *core.Membership) {
	parts := bits(memberRoot, m.Root != x.FlowID) |
		bits(memberMayFail, m.MayFail) |
		bits(memberOutput, m.Output) |
		bits(memberSubflow, m.Subflow) |
		bits(memberLate, m.Late) |
		bits(memberOut, m.Out != 0) |
		bits(memberJoin, m.Join != core.Join{}) |
		bits(memberInputs, m.Inputs)
	c.uint(&parts)
	c.text(&m.Name)
	if parts&memberLate != 0 {
		c.id(&x.FlowID)
	}
	if c.reading {
		m.Root = x.FlowID
		m.MayFail, m.Output, m.Subflow = parts&memberMayFail != 0, parts&memberOutput != 0, parts&memberSubflow != 0
		m.Late, m.Inputs = parts&memberLate != 0, parts&memberInputs != 0
	}
	if parts&memberRoot != 0 {
		c.id(&m.Root)
	}
	if parts&memberOut != 0 {
		c.int(&m.Out)
	}
	if parts&memberJoin != 0 {
		c.join(&m.Join)
	}
}

func (c *coder) join(j *core.Join) {
	small(c, &j.Policy)
	c.int(&j.K)
	small(c, &j.OnSatisfied)
	c.int(&j.N)
	c.int(&j.Satisfied)
	c.int(&j.Impossible)
	small(c, &j.State)
	c.time(&j.DecidedAt)
	c.flag(&j.Passes)
	c.text(&j.Detail)
	c.check(known(j.Policy.String()) && known(j.OnSatisfied.String()) && known(j.State.String()))
}

func (c *coder) children(v *core.Children) {
	c.id(&v.FlowID)
	c.int(&v.Waits)
	waits := v.Wait != nil
	if c.flag(&waits); !waits {
		return
	}
	w := present(c, &v.Wait)
	c.int(&w.Number)
	c.join(&w.Join)
	kind := string(w.Kind)
	if c.text(&kind); c.reading {
		w.Kind = core.EdgeKind(kind)
	}
	c.time(&w.Since)
	c.time(&w.TimeoutAt)
	c.text(&w.Cause)
}
