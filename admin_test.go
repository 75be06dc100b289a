package flowfabric_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/service"
)

func TestU104_a_program_administers_the_keys_of_its_store(t *testing.T) {
	t.Parallel()
	onEveryStoreEmbedded(t, func(t *testing.T, w *world) {
		ctx, keys := inTime(t), w.Admin().APIKeys()
		made := must[*api.NewAPIKey](t)(keys.Create(ctx, api.APIKeySettings{
			Name: "ci", Roles: []string{"submit", "read"}, Namespaces: []string{"*"}, MaxInFlight: 3, ExpiresAt: time.Now().Add(time.Hour),
		}))
		if !strings.HasPrefix(made.Secret, "ffk_"+made.ID+"_") || len(made.Secret) != 60 || made.CreatedBy != "local" {
			t.Errorf("made %+v", made)
		}
		got := must[*api.APIKey](t)(backend(w.Client).Authenticate(ctx, made.Secret))
		if got.ID != made.ID || got.Name != "ci" || got.MaxInFlight != 3 {
			t.Errorf("authenticated %+v", got)
		}
		two, zero := 2, time.Duration(0)
		changed := must[*api.APIKey](t)(keys.Change(ctx, made.ID, api.APIKeyChange{MaxInFlight: &two}, ops.AdminAction{Revision: &made.Revision}))
		if changed.MaxInFlight != 2 || changed.Revision != made.Revision+1 || changed.Name != "ci" {
			t.Errorf("changed %+v", changed)
		}
		_, err := keys.Change(ctx, made.ID, api.APIKeyChange{}, ops.AdminAction{Revision: &made.Revision})
		if flowfabric.CodeOf(err) != "precondition_failed" {
			t.Errorf("with an old revision: %v", err)
		}
		rotated := must[*api.NewAPIKey](t)(keys.Rotate(ctx, made.ID, ops.RotateOptions{Overlap: &zero}))
		must[*api.APIKey](t)(backend(w.Client).Authenticate(ctx, rotated.Secret))
		if _, err := backend(w.Client).Authenticate(ctx, made.Secret); flowfabric.CodeOf(err) != "invalid_credentials" {
			t.Errorf("the old secret: %v", err)
		}
		if err := keys.Revoke(ctx, made.ID, ops.RevokeAPIKeyOptions{AdminAction: ops.AdminAction{Reason: "lost"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := backend(w.Client).Authenticate(ctx, rotated.Secret); flowfabric.CodeOf(err) != "api_key_revoked" {
			t.Errorf("revoked: %v", err)
		}
		if all := must[[]*api.APIKey](t)(all(keys.List(ctx))); len(all) != 1 || all[0].RevokedAt.IsZero() {
			t.Errorf("listed %+v", all)
		}
		if _, err := keys.Get(ctx, "aaaaaaaaaaaa"); flowfabric.CodeOf(err) != "api_key_not_found" {
			t.Errorf("an unknown key: %v", err)
		}
	})
}

func TestU104_a_revoked_key_cannot_be_changed(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, keys := inTime(t), w.Admin().APIKeys()
		made := must[*api.NewAPIKey](t)(keys.Create(ctx, api.APIKeySettings{Name: "ci", Roles: []string{"read"}, Namespaces: []string{"default"}}))
		if err := keys.Revoke(ctx, made.ID); err != nil {
			t.Fatal(err)
		}
		_, err := keys.Change(ctx, made.ID, api.APIKeyChange{Name: &made.Name})
		if flowfabric.CodeOf(err) != "key_retired" || !errors.Is(err, flowfabric.ErrState) {
			t.Errorf("change: %v", err)
		}
		_, err = keys.Rotate(ctx, made.ID)
		if flowfabric.CodeOf(err) != "key_retired" || !errors.Is(err, flowfabric.ErrState) {
			t.Errorf("rotate: %v", err)
		}
		if err := keys.Revoke(ctx, made.ID); err != nil {
			t.Errorf("a second revoke: %v", err)
		}
	})
}

func TestU131_the_reason_of_an_administrator_reaches_the_audit_log(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, keys, spaces := inTime(t), w.Admin().APIKeys(), w.Admin().Namespaces()
		because := func(reason string) ops.AdminAction { return ops.AdminAction{Reason: reason} }
		settings := api.APIKeySettings{Name: "ci", Roles: []string{"read"}, Namespaces: []string{"default"}}
		made := must[*api.NewAPIKey](t)(keys.Create(ctx, settings, ops.CreateKeyOptions{AdminAction: because("made")}))
		two := 2
		must[*api.APIKey](t)(keys.Change(ctx, made.ID, api.APIKeyChange{MaxInFlight: &two}, because("changed")))
		must[*api.NewAPIKey](t)(keys.Rotate(ctx, made.ID, ops.RotateOptions{AdminAction: because("rotated")}))
		must[flowfabric.None](t)(flowfabric.None{}, keys.Revoke(ctx, made.ID, ops.RevokeAPIKeyOptions{AdminAction: because("revoked")}))
		must[*api.Namespace](t)(spaces.Put(ctx, "default", api.NamespaceSettings{Description: "ours"}, because("put")))
		must[flowfabric.None](t)(flowfabric.None{}, spaces.Delete(ctx, "default", because("deleted")))
		var told []string
		for row, err := range w.Admin().Audit(ctx, ops.AuditFilter{Namespace: "default"}) {
			must[flowfabric.None](t)(flowfabric.None{}, err)
			told = append(told, row.Action+" "+row.Reason)
		}
		want := []string{
			"delete_namespace deleted", "put_namespace put", "revoke_api_key revoked", "rotate_api_key rotated", "change_api_key changed", "create_api_key made",
		}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

func TestU125_a_given_key_is_installed_once(t *testing.T) {
	t.Parallel()
	onEveryStoreEmbedded(t, func(t *testing.T, w *world) {
		ctx, keys := inTime(t), w.Admin().APIKeys()
		given := ops.CreateKeyOptions{Secret: "ffk_abcdefghijkl_" + strings.Repeat("A", 43)}
		s := api.APIKeySettings{Name: "me", Roles: []string{"admin"}, Namespaces: []string{"*"}}
		first := must[*api.NewAPIKey](t)(keys.Create(ctx, s, given))
		again := must[*api.NewAPIKey](t)(keys.Create(ctx, s, given))
		if first.ID != "abcdefghijkl" || again.ID != first.ID || again.Revision != 1 || first.Secret != given.Secret {
			t.Errorf("installed %+v and %+v", first.APIKey, again.APIKey)
		}
		other := ops.CreateKeyOptions{Secret: "ffk_abcdefghijkl_B" + strings.Repeat("A", 42)}
		if _, err := keys.Create(ctx, s, other); flowfabric.CodeOf(err) != "id_conflict" {
			t.Errorf("another secret of the same id: %v", err)
		}
		if _, err := keys.Create(ctx, s, ops.CreateKeyOptions{Secret: "secret"}); flowfabric.CodeOf(err) != "invalid_credentials" {
			t.Errorf("what is no key: %v", err)
		}
	})
}

func TestU101_a_program_administers_namespaces(t *testing.T) {
	t.Parallel()
	onEveryStoreEmbedded(t, func(t *testing.T, w *world) {
		ctx, spaces := inTime(t), w.Admin().Namespaces()
		put := must[*api.Namespace](t)(spaces.Put(ctx, "default", api.NamespaceSettings{MaxPayloadBytes: 4, MaxSubmitPerSecond: 9, MaxRequestsPerSecond: 7}))
		if put.Revision != 1 || put.MaxPayloadBytes != 4 || put.MaxSubmitPerSecond != 9 || put.MaxRequestsPerSecond != 7 {
			t.Errorf("put %+v", put)
		}
		_, err := w.Submit(ctx, flowfabric.Submission{Kind: "k", Input: flowfabric.JSON("long enough")})
		if flowfabric.CodeOf(err) != "payload_too_large" {
			t.Errorf("too large: %v", err)
		}
		must[flowfabric.SubmitResult](t)(w.Submit(ctx, flowfabric.Submission{Kind: "k", Input: flowfabric.JSON(1)}))
		if err := spaces.Delete(ctx, "default"); flowfabric.CodeOf(err) != "namespace_not_empty" {
			t.Errorf("delete: %v", err)
		}
		must[*api.Namespace](t)(spaces.Put(ctx, "empty", api.NamespaceSettings{}))
		if all := must[[]*api.Namespace](t)(all(spaces.List(ctx))); len(all) != 2 || all[1].Name != "empty" {
			t.Errorf("listed %+v", all)
		}
		if err := spaces.Delete(ctx, "empty"); err != nil {
			t.Error(err)
		}
		if _, err := spaces.Get(ctx, "empty"); flowfabric.CodeOf(err) != "namespace_not_found" {
			t.Errorf("deleted: %v", err)
		}
	})
}

func TestU131_the_audit_log_is_walked_and_verified(t *testing.T) {
	t.Parallel()
	onEveryStoreEmbedded(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		id := must[flowfabric.SubmitResult](t)(w.Submit(ctx, flowfabric.Submission{Kind: "k"})).ID
		for range 3 {
			must[*flowfabric.Execution](t)(w.Operate().Hold(ctx, id, ops.Action{Reason: "wait"}))
			must[*flowfabric.Execution](t)(w.Operate().ReleaseHold(ctx, id))
		}
		ci := service.Caller{Name: "ci", Namespaces: []string{"default"}, RequestID: "r-1", Address: "192.0.2.9"}
		if err := backend(w.Client).RecordRefusal(ctx, ci, service.Refusal{Action: "hold", Entity: "execution", EntityID: string(id), Code: "role_required"}); err != nil {
			t.Fatal(err)
		}
		rows := must[[]api.AuditRow](t)(all(w.Admin().Audit(ctx, ops.AuditFilter{Limit: 2})))
		if len(rows) != 7 || rows[0].Outcome != "role_required" || rows[0].Address != "192.0.2.9" || rows[6].Action != "hold" || rows[6].Reason != "wait" || rows[6].Principal != "local" {
			t.Errorf("rows %+v", rows)
		}
		for i := range rows[:6] {
			if rows[i].PrevHash != rows[i+1].Hash {
				t.Errorf("row %d does not follow the one before", i)
			}
		}
		check := must[api.AuditCheck](t)(w.Admin().VerifyAudit(ctx, "default"))
		if !check.OK || check.Rows != 7 || check.Hash != rows[0].Hash {
			t.Errorf("%+v", check)
		}
	})
}

func TestU112_info_whoami_and_integrity_tell_what_there_is(t *testing.T) {
	t.Parallel()
	onEveryStoreEmbedded(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		info := must[api.Info](t)(w.Admin().Info(ctx))
		if !strings.HasPrefix(w.url, info.Store.Kind) || info.Store.Version == "" || info.Store.Schema == 0 || info.API != "v1" || info.ServerTime.IsZero() ||
			!info.Features["flows"] || !info.Features["streams"] || !info.Features["webhooks"] || !info.Features["transactional_submit"] || info.Features["backup"] != (info.Store.Kind == "sqlite") || info.Limits["max_payload_bytes"] != 4<<20 {
			t.Errorf("%+v", info)
		}
		who := must[api.Principal](t)(w.Admin().Whoami(ctx))
		if who.Principal != "local" || who.Namespaces[0] != "default" || len(who.Roles) != 5 || who.Open {
			t.Errorf("%+v", who)
		}
		key := must[*api.NewAPIKey](t)(w.Admin().APIKeys().Create(ctx, api.APIKeySettings{Name: "ci", Roles: []string{"read"}, Namespaces: []string{"a", "b"}}))
		who = must[api.Principal](t)(w.as(service.Caller{Name: "ci", KeyID: key.ID, Namespaces: []string{"a"}}).Admin().Whoami(ctx))
		if who.Principal != "ci" || who.KeyID != key.ID || who.Roles[0] != "read" || len(who.Roles) != 1 {
			t.Errorf("%+v", who)
		}
		must[flowfabric.SubmitResult](t)(w.Submit(ctx, flowfabric.Submission{Kind: "k"}))
		report := must[api.Integrity](t)(w.Admin().Integrity(ctx))
		if !report.OK || len(report.Checked) == 0 || len(report.Differences) != 0 {
			t.Errorf("%+v", report)
		}
	})
}

func TestU113_a_backup_opens_as_a_store_or_names_the_tool(t *testing.T) {
	t.Parallel()
	onEveryStoreEmbedded(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		id := must[flowfabric.SubmitResult](t)(w.Submit(ctx, flowfabric.Submission{Kind: "k"})).ID
		var copied bytes.Buffer
		err := w.Admin().Backup(ctx, &copied)
		if !strings.HasPrefix(w.url, "sqlite:") {
			if flowfabric.CodeOf(err) != "not_implemented" || copied.Len() != 0 {
				t.Errorf("%d bytes, %v", copied.Len(), err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "copy.db")
		if err := os.WriteFile(path, copied.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		other := openWorld(t, "sqlite:"+path, engine.Hooks{})
		must[*flowfabric.Execution](t)(other.Get(ctx, id))
	})
}

func TestU104_a_repeat_of_unknown_outcome_shows_the_secret_that_it_made(t *testing.T) {
	t.Parallel()
	for name, address := range everyStore() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, rotated := &forgetful{command: "create_api_key"}, &forgetful{command: "rotate_api_key"}
			made.left.Store(1)
			rotated.left.Store(1)
			w := openWorld(t, address(t), engine.Hooks{Probe: bothForget{made, rotated}})
			ctx, keys := inTime(t), w.Admin().APIKeys()
			key := must[*api.NewAPIKey](t)(keys.Create(ctx, api.APIKeySettings{Name: "ci", Roles: []string{"read"}, Namespaces: []string{"*"}}))
			must[*api.APIKey](t)(backend(w.Client).Authenticate(ctx, key.Secret))
			again := must[*api.NewAPIKey](t)(keys.Rotate(ctx, key.ID))
			must[*api.APIKey](t)(backend(w.Client).Authenticate(ctx, again.Secret))
			if made.left.Load() > 0 || rotated.left.Load() > 0 {
				t.Error("no answer was lost")
			}
		})
	}
}

// bothForget loses answers to commits of two commands.
type bothForget [2]*forgetful

func (b bothForget) BeforeCommit([]string) error { return nil }

func (b bothForget) AfterCommit(commands []string) error {
	return errors.Join(b[0].AfterCommit(commands), b[1].AfterCommit(commands))
}
