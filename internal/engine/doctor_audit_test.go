package engine_test

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestU131_U165_seals_of_audit_chains_that_do_not_fit_are_told_by_the_doctor(t *testing.T) {
	t.Parallel()
	onStoresWith(t, sealed, func(t *testing.T, w *world) {
		w.hold(w.submit(core.Submission{Namespace: "a"}))
		w.hold(w.submit(core.Submission{Namespace: "b"}))
		says(t, w.e, lenient(), "audit_seals", engine.CheckOK, "chains: 2")

		whole := w.forge("a")
		forged := w.forge("a")
		forged.rows[0].Principal = "somebody else"
		forged.rehash()
		forged.put()
		says(t, w.e, lenient(), "audit_seals", engine.CheckFail, `audit chain of "a"`)
		if hint := said(t, w.e, lenient(), "audit_seals").Hint; !strings.Contains(hint, "flowfabric audit verify") {
			t.Errorf("hint %q", hint)
		}
		whole.put()
		says(t, w.e, lenient(), "audit_seals", engine.CheckOK, "chains: 2")

		whole.drop()
		says(t, w.e, lenient(), "audit_seals", engine.CheckFail, "it was removed")
		whole.put()
		w.tamper(store.Changes{DropDocs: []store.DocRef{listRef("b")}})
		says(t, w.e, lenient(), "audit_seals", engine.CheckFail, "the list of audit chains was altered")
	})
}

func TestU131_U165_without_a_master_key_the_doctor_tells_only_of_seals_whose_key_is_gone(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		w.hold(w.submit(core.Submission{Namespace: "a"}))
		says(t, w.e, lenient(), "audit_seals", engine.CheckOK, "no seals")
		forged := w.forge("a")
		forged.head.Seal = []byte("a seal")
		forged.putHead()
		says(t, w.e, lenient(), "audit_seals", engine.CheckFail, "the key of the audit log is gone")
	})
}
