package flows

import (
	"context"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// newMember is an execution that becomes a member.
type newMember struct {
	core.NodeRef
	place string // in the request
}

// planMembers finds the executions that are to become members (F16).
func (x *extension) planMembers(ctx context.Context, known *memberNames) error {
	if len(x.x.Members) == 0 {
		return nil
	}
	above, err := x.findAbove(ctx)
	if err != nil {
		return err
	}
	for i, m := range x.x.Members {
		_, there, err := x.e.ReadOne(ctx, x.caller, m.ID, store.Want{Executions: []base.UUID{m.ID.UUID}})
		if err != nil {
			return core.AtPlace(err, memberPlace(i))
		}
		if there.FlowID != x.seen.ID && !mayAdd(x.caller, there) { // before anything of it is shown
			err := base.Errorf(base.CodeRoleRequired, "another principal submitted it").WithField("execution_id").WithHint("add what the key submitted itself")
			return core.AtPlace(err, memberPlace(i))
		}
		same, err := joins(there, x.seen, m.Name)
		if err != nil {
			return core.AtPlace(err, memberPlace(i))
		}
		if same {
			x.kept[m.Name] = there.ID
			continue
		}
		if id, taken := known.ids[m.Name]; taken {
			return core.AtPlace(base.Errorf(base.CodeNameTaken, "another member is called %q", m.Name).WithField("name").With("execution_id", id.String()), memberPlace(i))
		}
		if other := slices.IndexFunc(x.members, func(o newMember) bool { return o.ID == there.ID }); other >= 0 && x.members[other].Name != m.Name {
			return core.AtPlace(memberAs(x.members[other].Name), memberPlace(i))
		}
		if there.ID.UUID == x.top {
			cycle := append(append([]string{m.Name}, above...), m.Name)
			return core.AtPlace(base.Errorf(base.CodeCycleDetected, "the flow lies below the execution, which cannot be part of it").With("cycle", cycle), memberPlace(i))
		}
		ref := core.NodeRef{Name: m.Name, ID: there.ID}
		x.members, x.refs[m.Name] = append(x.members, newMember{ref, memberPlace(i)}), ref
	}
	return nil
}

// findAbove finds the execution above all flows that contain this one, and returns the flows between them, the uppermost first. Parents and flows
// of members never change: only the execution at the top may become a member meanwhile.
func (x *extension) findAbove(ctx context.Context) (between []string, err error) {
	for f := x.seen; !f.Parent.IsZero(); {
		loaded, err := x.e.Store.Read(ctx, store.Want{Executions: []base.UUID{f.Parent.UUID}, SkipUnreadable: true})
		if err != nil {
			return nil, txn.PublicFault(err)
		}
		parent := loaded.Executions[f.Parent.UUID]
		switch {
		case parent == nil:
			return nil, nil // it is removed
		case parent.Member == nil:
			x.top = parent.ID.UUID
			return between, nil
		}
		between = append([]string{parent.Member.Name}, between...)
		f, err = x.e.ReadFlow(ctx, txn.EngineCaller, parent.FlowID.Given())
		if base.CodeOf(err) == base.CodeFlowNotFound {
			return nil, nil // it is about to be removed, with all its members
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// mayAdd reports whether the caller may make an execution a member of its flow. Who may cancel a flow cancels its members: a caller that acts only
// on what it submitted itself must not get at the work of others that way.
func mayAdd(c txn.Caller, x *core.Execution) bool {
	return !c.OwnWork || x.Submitter().Is(c.Submitter())
}

func memberPlace(i int) string { return fmt.Sprintf("members[%d]", i) }

// joins reports whether an execution may become a member of that name, or is it already (F16).
func joins(x *core.Execution, f *core.Flow, name string) (already bool, err error) {
	switch {
	case x.Class.Namespace != f.Namespace:
		return false, txn.NotFound(x.ID.Given())
	case x.ID.N != f.ID.N:
		return false, base.Errorf(base.CodePartitionMismatch, "the execution has partition %d, the flow %d", x.ID.N, f.ID.N).WithField("execution_id")
	case x.FlowID.IsZero():
		return false, nil
	case x.FlowID != f.ID:
		return false, base.Errorf(base.CodeExecutionAlreadyInFlow, "the execution is a member of another flow").With("flow_id", x.FlowID.String())
	case x.Member.Name != name:
		return false, memberAs(x.Member.Name)
	default:
		return true, nil
	}
}

// memberAs is the refusal of another name for a member.
func memberAs(name string) error {
	return base.Errorf(base.CodeExecutionAlreadyInFlow, "the execution is a member under the name %q", name).With("name", name)
}

// joining reports whether an execution is about to become a member.
func (x *extension) joining(id base.UUID) bool {
	return slices.ContainsFunc(x.members, func(m newMember) bool { return m.ID.UUID == id })
}

// checkMembers reports whether the executions may still become members.
func (x *extension) checkMembers(u *txn.Tx, f *core.Flow) error {
	if top := u.Entries[x.top]; top != nil && top.Exec.Member != nil { // what is above it now may be one of the new members
		x.outdated = true
		return nil
	}
	for _, m := range x.members {
		ent := u.Entries[m.ID.UUID]
		if ent == nil {
			return core.AtPlace(txn.NotFound(m.ID.Given()), m.place)
		}
		u.Settle(ent)
		if already, err := joins(ent.Exec, f, m.Name); err != nil || already {
			x.outdated = already
			return core.AtPlace(err, m.place)
		}
	}
	return nil
}
