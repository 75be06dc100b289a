package store

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func drawEdge(t *rapid.T) *core.Edge {
	node := func(name string) core.NodeRef { return core.NodeRef{Name: drawText(t, name), ID: drawID(t, name)} }
	e := &core.Edge{
		ID: drawID(t, "id").UUID, FlowID: drawID(t, "flow"), From: node("from"), To: node("to"), Pass: drawText(t, "pass"),
		Kind:  rapid.SampledFrom(edgeKinds[1:]).Draw(t, "kind"),
		State: rapid.SampledFrom(edgeStates[1:]).Draw(t, "state"),
		Wait:  rapid.IntRange(0, 3).Draw(t, "wait"),
	}
	if rapid.Bool().Draw(t, "ended") {
		e.Resolved = drawTime(t, "resolved")
		e.End = &core.EndedRun{Status: core.Failed, Reason: drawText(t, "reason"), Run: rapid.IntRange(0, 9).Draw(t, "run")}
		if rapid.Bool().Draw(t, "result") {
			e.End.Result = &core.ResultRef{Of: drawID(t, "of"), Epoch: rapid.Int64().Draw(t, "epoch"), ContentType: drawText(t, "type"), Size: rapid.IntRange(0, 1<<30).Draw(t, "size")}
		}
	}
	return e
}

func drawFlow(t *rapid.T) *core.Flow {
	count := func(name string) int { return rapid.IntRange(0, 100_000).Draw(t, name) }
	f := &core.Flow{
		ID: drawID(t, "id"), Namespace: drawText(t, "namespace"), Kind: drawText(t, "kind"), Creator: drawText(t, "creator"), CreatorKey: drawText(t, "creator key"),
		State: rapid.SampledFrom(core.FlowStates()).Draw(t, "state"), Sealed: rapid.Bool().Draw(t, "sealed"), Quorums: rapid.Bool().Draw(t, "quorums"),
		Revision: rapid.Int64().Draw(t, "revision"), Nodes: count("nodes"), Edges: count("edges"), Output: drawText(t, "output"),
		Root: drawID(t, "root"), Depth: count("depth"), Open: count("open"), Bad: count("bad"),
		Ends:        core.FlowEnds{Completed: count("completed"), Failed: count("failed"), Cancelled: count("cancelled"), Expired: count("expired"), Skipped: count("skipped")},
		OnParentEnd: drawText(t, "on parent end"), CreatedAt: drawTime(t, "created"), LastMutationAt: drawTime(t, "mutated"), EndedAt: drawTime(t, "ended"),
	}
	if rapid.Bool().Draw(t, "child") {
		f.Parent, f.ParentRun = drawID(t, "parent"), count("run")
		f.Parent.UUID[0] |= 1 // not the absent one
	}
	if rapid.Bool().Draw(t, "more") {
		keep := rapid.Int64().Draw(t, "keep")
		f.Keep, f.Tags, f.Fingerprint = &keep, base.Tags{"a": drawText(t, "tag")}, []byte{1, 2}
		f.BadNames, f.Failures = []string{drawText(t, "bad name")}, []string{drawText(t, "failure")}
		f.Cancel = &core.FlowCancel{Policy: core.CancelAll, Reason: drawText(t, "why"), By: drawText(t, "who"), RequestedAt: 1_790_000_000_000, Before: count("before")}
		f.Trace = &base.Trace{Parent: drawText(t, "trace")}
		f.Budgets = []core.ScopedBudget{{ID: base.UUID{7}, Scope: core.ScopeFlow, Ancestors: []base.UUID{{8}}}}
	}
	return f
}

func TestF1_edges_are_read_as_they_were_written_and_never_from_fewer_bytes(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		e := drawEdge(t)
		data := EncodeEdge(e)
		var back core.Edge
		if err := DecodeEdge(data, &back); err != nil {
			t.Fatal(err)
		}
		if e.End == nil {
			e.Resolved = 0
		}
		if !reflect.DeepEqual(*e, back) {
			t.Fatalf("%+v is read as %+v", *e, back)
		}
		if err := DecodeEdge(data[:rapid.IntRange(0, len(data)-1).Draw(t, "cut")], new(core.Edge)); base.CodeOf(err) != base.CodeCorruption {
			t.Fatalf("fewer bytes: %v", err)
		}
	})
}

func TestF1_flows_are_read_as_they_were_written_and_never_from_fewer_bytes(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		f := drawFlow(t)
		data := EncodeFlow(f)
		var back core.Flow
		if err := DecodeFlow(data, &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(*f, back) {
			t.Fatalf("%+v is read as %+v", *f, back)
		}
		if err := DecodeFlow(data[:rapid.IntRange(0, len(data)-1).Draw(t, "cut")], new(core.Flow)); base.CodeOf(err) != base.CodeCorruption {
			t.Fatalf("fewer bytes: %v", err)
		}
	})
}

// A field that is added to a record and not to its format would be lost.
func TestF1_the_formats_know_every_field_of_flows_and_edges(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		of     any
		fields int
	}{{core.Edge{}, 10}, {core.Flow{}, 31}, {core.EndedRun{}, 4}, {core.ResultRef{}, 4}, {core.FlowEnds{}, 5}, {core.NodeRef{}, 2}} {
		if n := reflect.TypeOf(r.of).NumField(); n != r.fields {
			t.Errorf("%T has %d fields, its format %d: write it, and count it here", r.of, n, r.fields)
		}
	}
}
