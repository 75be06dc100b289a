package core

import "github.com/flowfabric/flowfabric/internal/core/base"

// Join decides when a member may start: after a number of its inbound edges (section 5 of the flows). A Join in a record is replaced with it, never
// changed in place.
type Join struct {
	JoinSpec
	N          int       // inbound edges
	Satisfied  int       // of those
	Impossible int       // of those
	State      JoinState // none while no edge leads to the member
	DecidedAt  base.Time
	Passes     bool   // one of its edges gives a named input
	Detail     string // quorum_unreachable where that made it impossible (F24)
}

// JoinSpec is the part of a join that a caller can state. The zero value is the default: all edges.
type JoinSpec struct {
	Policy      JoinPolicy
	K           int // of a quorum
	OnSatisfied OnSatisfied
}

// JoinPolicy states how many edges a join needs. Values are stored.
type JoinPolicy uint8

// The policies of joins.
const (
	AllOf JoinPolicy = iota
	AnyOf
	Quorum
)

var joinPolicyNames = [...]string{"all_of", "any_of", "quorum"}

// String is the policy's word.
func (p JoinPolicy) String() string { return base.NameOf(joinPolicyNames[:], int(p)) }

// ParseJoinPolicy reads the word of a policy.
func ParseJoinPolicy(text string) (JoinPolicy, bool) {
	n, ok := base.ValueOf(joinPolicyNames[:], text)
	return JoinPolicy(n), ok
}

// OnSatisfied states what happens to the upstreams that a decided join does not need (F22). Values are stored.
type OnSatisfied uint8

// The values of OnSatisfied.
const (
	LetRun OnSatisfied = iota
	CancelRemaining
)

var onSatisfiedNames = [...]string{"let_run", "cancel_remaining"}

// String is its word.
func (o OnSatisfied) String() string { return base.NameOf(onSatisfiedNames[:], int(o)) }

// JoinState is the state of a join. Values are stored.
type JoinState uint8

// The states of a join.
const (
	JoinNone JoinState = iota // no edge leads to the member
	JoinPending
	JoinHeld   // satisfied
	JoinBroken // impossible
	JoinOverridden
)

var joinStateNames = [...]string{"", "pending", "satisfied", "impossible", "overridden"}

// String is the state's word; "" where there is no join.
func (s JoinState) String() string { return base.NameOf(joinStateNames[:], int(s)) }

// Decided reports whether the join no longer waits.
func (s JoinState) Decided() bool { return s > JoinPending }

// Holds reports whether the member may start.
func (s JoinState) Holds() bool { return s != JoinPending && s != JoinBroken }

// quorumUnreachable is the detail of a join that needs more edges than there are (F24).
const quorumUnreachable = "quorum_unreachable"

// needed returns how many edges must be satisfied.
func (j *Join) needed() int {
	switch j.Policy {
	case AnyOf:
		return 1
	case Quorum:
		return j.K
	default:
		return j.N
	}
}

// verdict returns what the edges counted so far make of the join (F23, F24).
func (j *Join) verdict(sealed bool) JoinState {
	needed := j.needed()
	switch {
	case j.N == 0:
		return JoinNone
	case needed > j.N && sealed:
		return JoinBroken
	case needed > j.N:
		return JoinPending
	case j.Satisfied >= needed:
		return JoinHeld
	case j.Impossible > j.N-needed:
		return JoinBroken
	default:
		return JoinPending
	}
}

// Pending returns how many edges are not resolved.
func (j *Join) Pending() int { return j.N - j.Satisfied - j.Impossible }

// count counts an edge that has left pending.
func (j *Join) count(state EdgeState) {
	if state == EdgeSatisfied {
		j.Satisfied++
	} else {
		j.Impossible++
	}
}

// add counts a new inbound edge.
func (j *Join) add(e *Edge) {
	j.N++
	j.Passes = j.Passes || e.Pass != ""
	if e.State != EdgePending {
		j.count(e.State)
	}
}

// SetJoin sets the join of x before its first edge is added (F18). Errors: flow_already_terminal, flow_sealed, join_already_fixed.
func (x *Execution) SetJoin(fx *Effects, f *Flow, spec JoinSpec) (changed bool, err error) {
	if x.Member.Join.JoinSpec == spec {
		return false, nil
	}
	if x.Member.Join.N > 0 {
		return false, base.Errorf(base.CodeJoinAlreadyFixed, "edges lead to %s already: its join is %s", x.Member.Name, x.Member.Join.Policy)
	}
	if err := f.NotOpen(); err != nil {
		return false, err
	}
	x.memberToChange().Join.JoinSpec = spec
	x.LastMutationAt = max(fx.Now, x.Latest())
	f.Quorums = f.Quorums || spec.Policy == Quorum
	f.Extended(fx, 0, 0)
	return true, nil
}

// Count counts an edge to a member, for a comparison with its stored join.
func (j *Join) Count(e *Edge) { j.add(e) }
