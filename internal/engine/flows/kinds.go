package flows

import (
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The kinds of small records. Values are stored: never renumber them. The tests of the tree find a number that is given twice.
const (
	docIDSecret  store.DocKind = 41 // one record: what ids of requests with keys are derived with
	DocFlow      store.DocKind = 29 // key: flow id
	docFlowMark  store.DocKind = 30 // key: namespace, moment and flow: how flows are listed
	DocMember    store.DocKind = 31 // owner: flow; key: name; which execution has it, or what is left of one that was deleted
	docEdge      store.DocKind = 32 // owner: upstream; key: downstream
	docUpstreams store.DocKind = 33 // owner: downstream; the executions that its edges come from; by other keys children that it waits for, and when it stops
	docInputs    store.DocKind = 34 // owner: member; its named inputs
	docSubflow   store.DocKind = 35 // owner: flow node; what its sub-flow is made of
	docEdgeID    store.DocKind = 36 // owner: flow; key: edge id that a caller gave; which edge has it
)

// The kinds of follow-up work. Names and timers are stored: never change them.
var (
	// a member has ended: edges that lead from it are still pending (F28)
	taskResolveEdges = txn.TaskKind{Name: "resolve_edges", Timer: 44}
	// a join is decided: upstreams that it no longer needs end (F30)
	taskCancelLosers = txn.TaskKind{Name: "cancel_losers", Timer: 45}
	// a flow was cancelled: its members end (F49)
	taskCancelFlow = txn.TaskKind{Name: "cancel_members", Timer: 46}
	// a flow node may start: its sub-flow is created (F46)
	taskBeginSubflow = txn.TaskKind{Name: "begin_subflow", Timer: 47}
	// a sub-flow has ended: so does its node (F47)
	taskEndNode = txn.TaskKind{Name: "end_node", Timer: 48}
	// a parent has ended: its children flow is sealed or cancelled (F44)
	taskEndChildren = txn.TaskKind{Name: "end_children", Timer: 49}
	// a finished flow is to be removed (L140)
	taskRemoveFlow = txn.TaskKind{Name: "remove_flow", Timer: 51, Later: true}
	// a flow was sealed while a member could not be read, whose quorum may be out of reach (F24)
	taskSealQuorums = txn.TaskKind{Name: "seal_quorums", Timer: 53}
)
