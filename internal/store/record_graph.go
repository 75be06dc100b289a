package store

import (
	"encoding/json"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Records of a graph are read and written whenever a member ends; as JSON they would cost more than everything else in it.

// EncodeEdge writes an edge.
func EncodeEdge(e *core.Edge) []byte {
	c := writer(edgeVersion, 128, 0)
	c.edge(e)
	return c.out
}

// DecodeEdge reads an edge back. Codes: corruption.
func DecodeEdge(data []byte, e *core.Edge) error {
	c := reader(edgeVersion, string(data), 0)
	if c.edge(e); !c.finished() {
		return corrupt("edge", e.ID)
	}
	return nil
}

// Parts of an edge. Values are stored.
const (
	edgePass uint64 = 1 << iota
	edgeWait
	edgeEnd
)

func (c *coder) edge(e *core.Edge) {
	parts := bits(edgePass, e.Pass != "") | bits(edgeWait, e.Wait != 0) | bits(edgeEnd, e.End != nil)
	c.uint(&parts)
	c.uuid(&e.ID)
	c.id(&e.FlowID)
	c.node(&e.From)
	c.node(&e.To)
	word(c, &e.Kind, edgeKinds[:])
	word(c, &e.State, edgeStates[:])
	if parts&edgePass != 0 {
		c.text(&e.Pass)
	}
	if parts&edgeWait != 0 {
		c.int(&e.Wait)
	}
	if parts&edgeEnd != 0 {
		c.time(&e.Resolved)
		c.endedRun(present(c, &e.End))
	}
}

func (c *coder) node(n *core.NodeRef) {
	c.text(&n.Name)
	c.id(&n.ID)
}

func (c *coder) endedRun(e *core.EndedRun) {
	small(c, &e.Status)
	c.check(known(e.Status.String()))
	c.text(&e.Reason)
	c.int(&e.Run)
	left := e.Result != nil
	if c.flag(&left); !left {
		return
	}
	r := present(c, &e.Result)
	c.id(&r.Of)
	c.int64(&r.Epoch)
	c.text(&r.ContentType)
	c.int(&r.Size)
}

// EncodeFlow writes a flow.
func EncodeFlow(f *core.Flow) []byte {
	c := writer(flowVersion, 192, 0)
	c.flow(f)
	return c.out
}

// DecodeFlow reads a flow back. Codes: corruption.
func DecodeFlow(data []byte, f *core.Flow) error {
	c := reader(flowVersion, string(data), 0)
	if c.flow(f); !c.finished() {
		return corrupt("flow", f.ID.UUID)
	}
	return nil
}

// Parts of a flow. Values are stored.
const (
	flowTags uint64 = 1 << iota
	flowSealed
	flowQuorums
	flowParent
	flowKeep
	flowSeldom
	flowCreatorKey
)

func (c *coder) flow(f *core.Flow) {
	seldom := flowExtras{f.BadNames, f.Failures, f.Cancel, f.Trace, f.Budgets}
	parts := bits(flowTags, len(f.Tags) > 0) | bits(flowSealed, f.Sealed) | bits(flowQuorums, f.Quorums) |
		bits(flowParent, !f.Parent.IsZero()) | bits(flowKeep, f.Keep != nil) | bits(flowSeldom, seldom.any()) |
		bits(flowCreatorKey, f.CreatorKey != "")
	c.uint(&parts)
	if c.reading {
		f.Sealed, f.Quorums = parts&flowSealed != 0, parts&flowQuorums != 0
	}
	c.id(&f.ID)
	c.text(&f.Namespace)
	c.text(&f.Kind)
	c.text(&f.Creator)
	if parts&flowCreatorKey != 0 {
		c.text(&f.CreatorKey)
	}
	if parts&flowTags != 0 {
		c.tags(&f.Tags)
	}
	word(c, &f.State, flowStates[:])
	c.int64(&f.Revision)
	c.flowCounts(f)
	c.text(&f.Output)
	c.id(&f.Root)
	c.int(&f.Depth)
	if parts&flowParent != 0 {
		c.id(&f.Parent)
		c.int(&f.ParentRun)
	}
	if parts&flowKeep != 0 {
		c.int64(present(c, &f.Keep))
	}
	c.bytes(&f.Fingerprint)
	c.text(&f.OnParentEnd)
	c.time(&f.CreatedAt)
	c.time(&f.LastMutationAt)
	c.time(&f.EndedAt)
	if parts&flowSeldom != 0 {
		c.extras(f, &seldom)
	}
}

func (c *coder) flowCounts(f *core.Flow) {
	for _, n := range []*int{
		&f.Nodes, &f.Edges, &f.Open, &f.Bad,
		&f.Ends.Completed, &f.Ends.Failed, &f.Ends.Cancelled, &f.Ends.Expired, &f.Ends.Skipped,
	} {
		c.int(n)
	}
}

// flowExtras holds fields that few flows have.
type flowExtras struct {
	BadNames []string            `json:"names,omitempty"`
	Failures []string            `json:"failures,omitempty"`
	Cancel   *core.FlowCancel    `json:"cancel,omitempty"`
	Trace    *base.Trace         `json:"trace,omitempty"`
	Budgets  []core.ScopedBudget `json:"budgets,omitempty"`
}

func (x *flowExtras) any() bool {
	return len(x.BadNames)+len(x.Failures)+len(x.Budgets) > 0 || x.Cancel != nil || x.Trace != nil
}

func (c *coder) extras(f *core.Flow, x *flowExtras) {
	var body json.RawMessage
	if !c.reading {
		body, _ = json.Marshal(x)
	}
	c.json(&body)
	if c.reading {
		c.check(json.Unmarshal(body, x) == nil)
		f.BadNames, f.Failures, f.Cancel, f.Trace, f.Budgets = x.BadNames, x.Failures, x.Cancel, x.Trace, x.Budgets
	}
}

// The words of a graph; their indexes are stored.
var (
	edgeKinds  = [...]core.EdgeKind{"", core.SuccessOnly, core.FailureOnly, core.AnyTerminal}
	edgeStates = [...]core.EdgeState{"", core.EdgePending, core.EdgeSatisfied, core.EdgeImpossible}
	flowStates = [...]core.FlowState{"", core.FlowOpen, core.FlowCancelling, core.FlowCompleted, core.FlowFailed, core.FlowStopped}
)

// word codes a word by its index in a list.
func word[T ~string](c *coder, v *T, all []T) {
	var place byte
	if !c.reading {
		place = byte(slices.Index(all, *v))
	}
	c.byte(&place)
	if c.check(int(place) < len(all)); c.reading && !c.bad {
		*v = all[place]
	}
}
