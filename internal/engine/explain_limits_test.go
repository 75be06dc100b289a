package engine_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// An explanation names the limit of the namespace that keeps an execution waiting.
func TestU101_S57_an_explanation_tells_of_the_limits_of_the_namespace(t *testing.T) {
	t.Parallel()
	onStoresWith(t, engine.Config{Clock: turned}, func(t *testing.T, w *world) {
		w.namespace("a", core.NamespaceSettings{MaxWorkers: 1, MaxPriority: 10})
		id := w.submit(core.Submission{Namespace: "a", Kind: "k", Priority: 1000})
		told := func(code string) core.Blocker {
			t.Helper()
			for _, b := range w.explain(id).Blockers {
				if b.Code == code {
					return b
				}
			}
			t.Fatalf("there is no %s", code)
			return core.Blocker{}
		}
		const full = `namespace "a" has 1 worker instance, and may have 1 (max_workers)`
		if b := told(core.BlockerNoLiveWorker); strings.Contains(b.Message, "max_workers") || bytes.Contains(b.Data, []byte("max_workers")) {
			t.Errorf("while there is room: %s %s", b.Message, b.Data)
		}
		register := func(instance, kind string) {
			t.Helper()
			must(w.e.Register(w.ctx(), client, core.Registration{
				WorkerID: "w", InstanceID: instance, Kinds: []string{kind}, Namespaces: []string{"a"}, LivenessTTLMS: base.Hour,
			}))(t)
		}
		register("w1", "other")
		if b := told(core.BlockerNoCapableWorker); !strings.Contains(b.Message, full) || !bytes.Contains(b.Data, []byte(`"max_workers":1`)) {
			t.Errorf("%s %s", b.Message, b.Data)
		}
		ok(t, w.e.MarkDead(w.ctx(), operator, "w1", "gone", true))
		if b := told(core.BlockerNoLiveWorker); strings.Contains(b.Message, "max_workers") {
			t.Errorf("a dead one makes room: %s", b.Message)
		}
		w.turn(1000) // what is known of the instances is too old
		register("w2", "k")
		if b := told(core.BlockerInLine); !strings.Contains(b.Message, "priority of at most 10 (max_priority)") || !bytes.Contains(b.Data, []byte(`"max_priority":10`)) {
			t.Errorf("%s %s", b.Message, b.Data)
		}
		id = w.submit(core.Submission{Namespace: "a", Kind: "k", Priority: 9})
		if b := told(core.BlockerInLine); strings.Contains(b.Message, "max_priority") {
			t.Errorf("below the limit: %s", b.Message)
		}
	})
}
