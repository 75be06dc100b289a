package flowfabric

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/calls"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Node is a member of a flow to submit, or a child to spawn. Kind.Node and SubFlow make one; its methods define what it waits
// for. A Node is a value: each method returns a changed copy.
type Node struct {
	Name  string // in the flow: 1..64 of A-Z a-z 0-9 . _ - beginning with a letter or digit
	Kind  string
	Input Payload
	// SubmitOptions are those of a single submit. An idempotency key is refused: a node is identified by its name.
	SubmitOptions
	Join     Join   // how many of its inbound edges must be satisfied; the zero Join: all
	Inbound  []Edge // edges that lead to the node; their To is the node
	Optional bool   // its failure does not fail the flow
	Flow     *Flow  // a graph instead of work of its own; its Nodes, Edges, Output and Defaults are used

	err                     error // of the constructors, reported by the call that uses the node
	zeroPriority, zeroDelay bool  // the JSON had an explicit 0, which overrides the defaults
}

// Node returns a member with this kind of work. An input that cannot be encoded is an error of the call that uses the node.
func (k Kind[In, Out]) Node(name string, in In, opts ...SubmitOptions) Node {
	return Node{Name: name, Kind: string(k), Input: encode(in), SubmitOptions: merged(opts)}
}

// SubFlow returns a member that is itself a flow: it has no worker, succeeds when the flow completes, with the result of its
// output, and fails when the flow fails. Nodes, Edges, Output and Defaults of the flow are used; anything else is invalid_flow.
func SubFlow(name string, f Flow) Node { return Node{Name: name, Flow: &f} }

// EdgeKind says which outcomes of a member satisfy an edge.
type EdgeKind = api.EdgeKind

// The kinds of edges; "" is OnSuccess.
const (
	OnSuccess = api.OnSuccess
	OnFailure = api.OnFailure // failed, expired, cancelled
	OnEnd     = api.OnEnd
)

// Edge makes the member To wait for the end of the member From. There is at most one edge from one member to another.
type Edge struct {
	ID   string // "": generated
	From string // name; in an extension also the id
	To   string
	Kind EdgeKind
	Pass string // name of the input that passes the result of From to To; "": the result is not passed
}

// JoinPolicy says how many of its inbound edges a member needs.
type JoinPolicy = api.JoinPolicy

// The policies of joins; "" is JoinAll.
const (
	JoinAll    = api.JoinAll
	JoinAny    = api.JoinAny
	JoinQuorum = api.JoinQuorum
)

// Join says how many of its inbound edges a member needs. The zero value: all.
type Join = api.Join

// After makes the node start once all of these have succeeded. It gets the result of each as an input under the name of the
// member, see InputFrom. If one of them can no longer succeed the node is skipped.
func (n Node) After(names ...string) Node { return n.waitingFor(OnSuccess, names) }

// AfterFailure makes the node start once all of these have failed, expired or been cancelled.
func (n Node) AfterFailure(names ...string) Node { return n.waitingFor(OnFailure, names) }

// AfterEnd makes the node start once all of these have ended, with any outcome.
func (n Node) AfterEnd(names ...string) Node { return n.waitingFor(OnEnd, names) }

// AfterAny makes the node start once one of these has succeeded.
func (n Node) AfterAny(names ...string) Node {
	n.Join.Policy = JoinAny
	return n.waitingFor(OnSuccess, names)
}

// AfterQuorum makes the node start once k of these have succeeded.
func (n Node) AfterQuorum(k int, names ...string) Node {
	n.Join.Policy, n.Join.K = JoinQuorum, k
	return n.waitingFor(OnSuccess, names)
}

// CancelRemaining cancels the members that the node still waits for but no longer needs, as soon as it is decided whether it
// starts.
func (n Node) CancelRemaining() Node {
	n.Join.CancelRemaining = true
	return n
}

// MayFail makes the flow ignore a failure of the node.
func (n Node) MayFail() Node {
	n.Optional = true
	return n
}

// PassAs passes the result of a member that the node waits for under another name; "" passes nothing. A member that it does not
// wait for is refused as unknown_name by the call that uses the node.
func (n Node) PassAs(member, name string) Node {
	n.Inbound = slices.Clone(n.Inbound)
	for i := range n.Inbound {
		if n.Inbound[i].From == member {
			n.Inbound[i].Pass = name
			return n
		}
	}
	if n.err == nil {
		n.err = calls.Refuse(base.CodeUnknownName, "%q does not wait for %q, and gets nothing from it", n.Name, member).At("edges", "name it in After first")
	}
	return n
}

// waitingFor adds an edge from each of the members.
func (n Node) waitingFor(kind EdgeKind, names []string) Node {
	n.Inbound = slices.Clone(n.Inbound)
	for _, name := range names {
		n.Inbound = append(n.Inbound, Edge{From: name, To: n.Name, Kind: kind, Pass: name})
	}
	return n
}

// plain reports whether the edge can be expressed by a name alone: it waits for a success and passes the result under that name.
func (e *Edge) plain() bool {
	return (e.Kind == "" || e.Kind == OnSuccess) && e.Pass == e.From && e.ID == ""
}

// after returns the plain edges that lead to the node, by the names of their origins.
func (n *Node) after() (names []string) {
	for i := range n.Inbound {
		if e := &n.Inbound[i]; e.plain() {
			names = append(names, e.From)
		}
	}
	return names
}

// edgesOf returns the edges of a graph except the plain ones of its nodes: the given ones, then those of the nodes in their
// order.
func edgesOf(given []Edge, nodes []Node) []Edge {
	all := slices.Clone(given)
	for i := range nodes {
		for _, e := range nodes[i].Inbound {
			if e.To = nodes[i].Name; !e.plain() {
				all = append(all, e)
			}
		}
	}
	return all
}
