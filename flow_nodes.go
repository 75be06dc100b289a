package flowfabric

import (
	"slices"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/transport"
)

// Node is a member of a flow to submit, or a child to spawn. Kind.Node and SubFlow make one; its methods say what it waits for. A Node
// is a value: each method returns a changed copy.
type Node struct {
	Name  string // in the flow: 1..64 of A-Z a-z 0-9 . _ - beginning with a letter or digit
	Kind  string
	Input Payload
	// SubmitOptions as for a single submit. An idempotency key is refused: a node is known by its name.
	SubmitOptions
	Join     Join   // how many of the edges that lead to it it needs; the zero Join: all
	Inbound  []Edge // that lead to it; their To is the node
	Optional bool   // its failure is none of the flow's
	Flow     *Flow  // a graph in place of work of its own; its Nodes, Edges, Output and Defaults count

	err                     error // of the makers, reported by the call that uses the node
	zeroPriority, zeroDelay bool  // JSON gave a 0, which is not what the defaults say
}

// Node is a member with this kind of work. An input that does not encode, and two option structs, are refused by the call that uses the
// node.
func (k Kind[In, Out]) Node(name string, in In, opts ...SubmitOptions) Node {
	options, err := transport.Single(opts)
	return Node{Name: name, Kind: string(k), Input: encode(in), SubmitOptions: options, err: err}
}

// SubFlow is a member that is a flow itself: it has no worker, succeeds when the flow completes, with the result of its output, and
// fails when the flow fails. Nodes, Edges, Output and Defaults of the flow count; invalid_flow for anything else.
func SubFlow(name string, f Flow) Node { return Node{Name: name, Flow: &f} }

// EdgeKind says which ends of a member let the next one go on.
type EdgeKind = api.EdgeKind

// The kinds of edges; "" is OnSuccess.
const (
	OnSuccess = api.OnSuccess
	OnFailure = api.OnFailure // failed, expired, cancelled
	OnEnd     = api.OnEnd
)

// Edge makes the member To wait for the end of the member From. There is at most one from one member to another.
type Edge struct {
	ID   string // "": minted
	From string // name; in an extension also the id
	To   string
	Kind EdgeKind
	Pass string // name of the input that To gets the result of From as; "": it gets none
}

// JoinPolicy says how many of its edges a member needs.
type JoinPolicy = api.JoinPolicy

// The policies of joins; "" is JoinAll.
const (
	JoinAll    = api.JoinAll
	JoinAny    = api.JoinAny
	JoinQuorum = api.JoinQuorum
)

// Join says how many of its edges a member needs. The zero value: all.
type Join = api.Join

// After lets the node start when these have succeeded. It gets the result of each as an input under its name, see InputFrom. If one of
// them cannot succeed any more the node is skipped.
func (n Node) After(names ...string) Node { return n.waitingFor(OnSuccess, names) }

// AfterFailure lets the node start when these have failed, expired or were cancelled.
func (n Node) AfterFailure(names ...string) Node { return n.waitingFor(OnFailure, names) }

// AfterEnd lets the node start when these have ended, however they ended.
func (n Node) AfterEnd(names ...string) Node { return n.waitingFor(OnEnd, names) }

// AfterAny lets the node start when one of these has succeeded.
func (n Node) AfterAny(names ...string) Node {
	n.Join.Policy = JoinAny
	return n.waitingFor(OnSuccess, names)
}

// AfterQuorum lets the node start when k of these have succeeded.
func (n Node) AfterQuorum(k int, names ...string) Node {
	n.Join.Policy, n.Join.K = JoinQuorum, k
	return n.waitingFor(OnSuccess, names)
}

// CancelRemaining cancels what the node waits for and does not need any more, as soon as it is decided whether it starts.
func (n Node) CancelRemaining() Node {
	n.Join.CancelRemaining = true
	return n
}

// MayFail makes the failure of the node none of the flow's.
func (n Node) MayFail() Node {
	n.Optional = true
	return n
}

// PassAs gives the node the result of a member that it waits for under another name; "" passes nothing. A member that it does not wait
// for is refused by the call that uses the node, as unknown_name.
func (n Node) PassAs(member, name string) Node {
	n.Inbound = slices.Clone(n.Inbound)
	for i := range n.Inbound {
		if n.Inbound[i].From == member {
			n.Inbound[i].Pass = name
			return n
		}
	}
	if n.err == nil {
		n.err = newError(base.CodeUnknownName, "%q does not wait for %q, and gets nothing from it", n.Name, member).At("edges", "name it in After first")
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

// plain reports whether the edge is one that a name alone says: it waits for a success and passes the result under that name.
func (e *Edge) plain() bool {
	return (e.Kind == "" || e.Kind == OnSuccess) && e.Pass == e.From && e.ID == ""
}

// after are the plain edges that lead to the node, by the names that they come from.
func (n *Node) after() (names []string) {
	for i := range n.Inbound {
		if e := &n.Inbound[i]; e.plain() {
			names = append(names, e.From)
		}
	}
	return names
}

// edgesOf are the edges of a graph, but for plain ones that its nodes have: those given, then those of the nodes in their order.
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
