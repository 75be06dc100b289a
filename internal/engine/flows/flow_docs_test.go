package flows

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestF1_flows_and_edges_that_were_stored_as_JSON_are_read(t *testing.T) {
	t.Parallel()
	edge := &core.Edge{ID: base.UUID{1}, From: core.NodeRef{Name: "a"}, Kind: core.SuccessOnly, State: core.EdgePending}
	flow := &core.Flow{ID: base.IDOf(base.UUID{2}), Kind: "k", State: core.FlowOpen, Nodes: 3, CreatedAt: 1_790_000_000_000}
	for _, r := range []struct{ written, read any }{{edge, new(core.Edge)}, {flow, new(core.Flow)}} {
		body, err := json.Marshal(r.written)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range []store.Doc{{Body: body}, docOf(store.DocRef{}, r.written)} {
			if err := ReadDoc(&doc, r.read); err != nil || !reflect.DeepEqual(r.written, r.read) {
				t.Errorf("%+v is read as %+v: %v", r.written, r.read, err)
			}
		}
		if err := ReadDoc(&store.Doc{Data: []byte{1, 2}}, r.read); base.CodeOf(err) != base.CodeCorruption {
			t.Errorf("broken bytes: %v", err)
		}
	}
}
