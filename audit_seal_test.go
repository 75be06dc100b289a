package flowfabric_test

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server"
	storage "github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/sqlite"
)

// sealedWorld opens a store with a master key; the client is closed by stop.
func sealedWorld(t *testing.T, url string) (w *world, stop func()) {
	t.Helper()
	client := must[*flowfabric.Client](t)(embedded.Open(engine.WithHooks(t.Context(), engine.Hooks{UnsafeDurability: true}), url,
		embedded.Config{EngineConfig: flowfabric.EngineConfig{MasterKey: masterOne, Logger: silent()}}))
	return &world{Client: client, url: url}, func() {
		if err := client.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// verifiedTwice is what verification of a chain says, in the program and over HTTP.
func verifiedTwice(t *testing.T, w *world, namespace string) api.AuditCheck {
	t.Helper()
	here := must[api.AuditCheck](t)(w.Admin().VerifyAudit(inTime(t), namespace))
	there := must[api.AuditCheck](t)(connect(t, w.serve(t, server.Config{Open: true}), flowfabric.ConnectConfig{}).Admin().VerifyAudit(inTime(t), namespace))
	if !reflect.DeepEqual(here, there) {
		t.Errorf("%+v, over HTTP %+v", here, there)
	}
	return here
}

func TestU131_a_chain_that_was_removed_whole_is_told_in_the_program_and_over_http(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	w, stop := sealedWorld(t, "sqlite:"+path)
	id := must[flowfabric.SubmitResult](t)(w.Submit(inTime(t), flowfabric.Submission{Kind: "k"})).ID
	must[*flowfabric.Execution](t)(w.Operate().Hold(inTime(t), id))
	check := verifiedTwice(t, w, "default")
	if !check.OK || !check.Keyed || check.FirstKeyed != 1 || check.First != 1 || check.Last != 1 || check.Rows != 1 || check.Hash == "" {
		t.Errorf("%+v", check)
	}
	stop()

	st := must[*sqlite.Store](t)(sqlite.Open(t.Context(), path, sqlite.Config{UnsafeDurability: true}))
	tx, _, err := st.Begin(t.Context(), storage.Want{})
	if err == nil {
		err = tx.Commit(t.Context(), &storage.Changes{DropDocs: []storage.DocRef{{Kind: 10, Key: "default"}, {Kind: 11, Key: "default\x010000000000000001"}}})
	}
	if err != nil || st.Close() != nil {
		t.Fatal(err)
	}

	w, stop = sealedWorld(t, "sqlite:"+path)
	defer stop()
	if check := verifiedTwice(t, w, "default"); check.OK || check.Problem != "the chain was removed" {
		t.Errorf("%+v", check)
	}
	if check := verifiedTwice(t, w, "*"); check.OK || !strings.Contains(check.Problem, "removed") || len(check.Removed) != 1 || check.Removed[0] != "default" {
		t.Errorf("%+v", check)
	}
}
