package flowfabric_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestU132_the_server_is_administered_over_http(t *testing.T) {
	t.Parallel()
	w := openWorld(t, stores["sqlite"](t), engine.Hooks{}).overHTTP(t)
	ctx, admin := inTime(t), w.Admin()

	if who := must[api.Principal](t)(admin.Whoami(ctx)); who.Principal != w.who || !who.Open {
		t.Errorf("whoami %+v", who)
	}
	if info := must[api.Info](t)(admin.Info(ctx)); info.Store.Kind != "sqlite" || info.API != "v1" {
		t.Errorf("info %+v", info)
	}
	ns := must[*api.Namespace](t)(admin.Namespaces().Put(ctx, "red", api.NamespaceSettings{Description: "the reds"}))
	if got := must[*api.Namespace](t)(admin.Namespaces().Get(ctx, "red")); !reflect.DeepEqual(got, ns) || got.Description != "the reds" {
		t.Errorf("namespace %+v, then %+v", ns, got)
	}
	stale := ns.Revision + 1
	err := admin.Namespaces().Delete(ctx, "red", ops.AdminAction{Revision: &stale})
	if flowfabric.CodeOf(err) != "precondition_failed" {
		t.Errorf("a stale revision: %v", err)
	}
	key := must[*api.NewAPIKey](t)(admin.APIKeys().Create(ctx, api.APIKeySettings{Name: "ann", Roles: []string{"read"}, Namespaces: []string{"default"}}))
	rotated := must[*api.NewAPIKey](t)(admin.APIKeys().Rotate(ctx, key.ID))
	if key.Secret == "" || rotated.Secret == "" || rotated.Secret == key.Secret || rotated.ID != key.ID {
		t.Errorf("key %+v, then %+v", key, rotated)
	}
	if err := admin.APIKeys().Revoke(ctx, key.ID); err != nil {
		t.Error(err)
	}
	rows := 0
	for row, err := range admin.Audit(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Hash == "" {
			t.Errorf("row %+v", row)
		}
		rows++
	}
	if rows < 3 { // of the key
		t.Errorf("%d rows in the audit log", rows)
	}
	if report := must[api.Integrity](t)(admin.Integrity(ctx)); !report.OK {
		t.Errorf("integrity %+v", report)
	}
	var file bytes.Buffer
	if err := admin.Backup(ctx, &file); err != nil || !bytes.HasPrefix(file.Bytes(), []byte("SQLite format 3")) {
		t.Errorf("backup of %d bytes: %v", file.Len(), err)
	}
}

func TestU2_a_client_of_a_server_refuses_what_only_the_process_with_the_store_can_do(t *testing.T) {
	t.Parallel()
	in, client := serve(t, says(200, "{}"))
	ctx, admin := inTime(t), client.Admin()
	for name, call := range map[string]func() error{
		"install a key": func() error {
			_, err := admin.APIKeys().Create(ctx, api.APIKeySettings{Name: "k"}, ops.CreateKeyOptions{Secret: "ffk_abcdefghijkl_" + strings.Repeat("A", 43)})
			return err
		},
		"exchange the master key": func() error {
			_, err := admin.SigningKeys().Rewrap(ctx, strings.Repeat("0", 64))
			return err
		},
	} {
		if err := call(); flowfabric.CodeOf(err) != "not_implemented" {
			t.Errorf("%s: %v, want not_implemented", name, err)
		}
	}
	if n := len(in.all()); n != 0 {
		t.Errorf("the server was sent %d requests", n)
	}
}
