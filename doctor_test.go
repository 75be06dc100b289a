package flowfabric_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/engine"
)

func TestU165_the_doctor_says_the_same_here_and_over_http(t *testing.T) {
	t.Parallel()
	onEveryStoreEmbedded(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		own := must[api.HealthReport](t)(w.Admin().Doctor(ctx))
		if !own.OK || own.Checks[0].Name != "store" {
			t.Errorf("%+v", own)
		}
		names := func(c api.HealthReport) (all []string) {
			for _, check := range c.Checks {
				all = append(all, check.Name)
			}
			return all
		}
		asked := must[api.HealthReport](t)(w.overHTTP(t).Admin().Doctor(ctx))
		if want := append(names(own), "credentials", "stopping"); !slices.Equal(names(asked), want) {
			t.Errorf("%v, want %v", names(asked), want)
		}
	})
}

func TestU165_the_doctor_warns_of_files_of_a_store_that_others_can_read(t *testing.T) {
	t.Parallel()
	ctx := inTime(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "app.db")
	client := must[*flowfabric.Client](t)(embedded.Open(engine.WithHooks(ctx, engine.Hooks{UnsafeDurability: true}), "sqlite:"+path))
	t.Cleanup(func() { _ = client.Close(context.WithoutCancel(ctx)) })
	says := func(state, detail string) {
		t.Helper()
		for _, c := range must[api.HealthReport](t)(client.Admin().Doctor(ctx)).Checks {
			if c.Name == "files" {
				if c.State != state || !strings.Contains(c.Detail, detail) || (c.Hint == "") != (state == api.CheckOK) {
					t.Errorf("%+v, want %s with %q", c, state, detail)
				}
				return
			}
		}
		t.Error("nothing is said of the files")
	}
	mode := func(name string, mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	mode(dir, 0o755)
	says(api.CheckOK, "")
	mode(path+"-wal", 0o644)
	says(api.CheckWarn, "app.db-wal")
	mode(path, 0o644)
	says(api.CheckWarn, "app.db, app.db-wal")
	mode(dir, 0o700) // no other user gets there
	says(api.CheckOK, "")
}

func TestU113_settings_tell_where_they_came_from(t *testing.T) {
	t.Parallel()
	ctx := inTime(t)
	client, err := embedded.Open(engine.WithHooks(ctx, engine.Hooks{UnsafeDurability: true}), "sqlite:"+filepath.Join(t.TempDir(), "app.db"),
		embedded.Config{EngineConfig: flowfabric.EngineConfig{QueueLimit: 7, EventRetention: flowfabric.KeepForever}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.WithoutCancel(ctx)) })
	all := must[[]api.Setting](t)(client.Admin().Settings(ctx))
	for _, want := range []api.Setting{
		{Name: "FF_STORE", Value: "sqlite", Source: "program"},
		{Name: "FF_QUEUE_LIMIT", Value: "7", Source: "program"},
		{Name: "FF_BATCH_LIMIT", Value: "1000", Source: "default"},
		{Name: "FF_EVENT_RETENTION", Value: "-1", Source: "program"},
		{Name: "FF_AUDIT_RETENTION", Value: "9600h0m0s", Source: "default"},
		{Name: "FF_KEY_GRACE", Value: "24h0m0s", Source: "default"},
	} {
		if !slices.Contains(all, want) {
			t.Errorf("no %+v in %+v", want, all)
		}
	}
	w := openWorld(t, stores["sqlite"](t), engine.Hooks{})
	if asked := must[[]api.Setting](t)(w.overHTTP(t).Admin().Settings(ctx)); !slices.Equal(asked, must[[]api.Setting](t)(w.Admin().Settings(ctx))) {
		t.Errorf("over HTTP: %+v", asked)
	}
}

func TestU194_a_rotated_key_works_on_for_as_long_as_the_engine_is_set_to(t *testing.T) {
	t.Parallel()
	ctx := inTime(t)
	client, err := embedded.Open(engine.WithHooks(ctx, engine.Hooks{UnsafeDurability: true}), "sqlite:"+filepath.Join(t.TempDir(), "app.db"),
		embedded.Config{EngineConfig: flowfabric.EngineConfig{KeyGrace: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.WithoutCancel(ctx)) })
	keys := client.Admin().APIKeys()
	key := must[*api.NewAPIKey](t)(keys.Create(ctx, api.APIKeySettings{Name: "ci", Roles: []string{"read"}, Namespaces: []string{"*"}}))
	must[*api.NewAPIKey](t)(keys.Rotate(ctx, key.ID))
	for {
		_, err := backend(client).Authenticate(ctx, key.Secret)
		if flowfabric.CodeOf(err) == "invalid_credentials" {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("the old secret still works: %v", err)
		}
	}
}

func TestU164_a_backup_tells_how_many_pages_are_there(t *testing.T) {
	t.Parallel()
	w := openWorld(t, stores["sqlite"](t), engine.Hooks{})
	ctx := inTime(t)
	for name, client := range map[string]*flowfabric.Client{"here": w.Client, "over HTTP": w.overHTTP(t).Client} {
		var pages, total atomic.Int64
		var file bytes.Buffer
		err := client.Admin().Backup(ctx, &file, ops.BackupOptions{Progress: func(done, all int) {
			pages.Store(int64(done))
			total.Store(int64(all))
		}})
		if err != nil || pages.Load() == 0 || pages.Load() != total.Load() {
			t.Errorf("%s: %d of %d pages, %v", name, pages.Load(), total.Load(), err)
		}
	}
}

func TestU163_the_schema_goes_forward_step_by_step_and_never_back(t *testing.T) {
	t.Parallel()
	for kind, address := range map[string]string{"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "new.db"), "postgres": cluster.Empty(t)} {
		ctx, how := inTime(t), embedded.MigrateConfig{MigrateConfig: api.MigrateConfig{UnsafeDurability: true}}
		known := embedded.KnownSchemas()[kind]
		plan := must[embedded.Schema](t)(embedded.SchemaOf(ctx, address, how))
		if plan.Kind != kind || plan.Level != 0 || plan.Known != known || len(plan.Steps) != known || plan.Steps[0].Applied {
			t.Errorf("%s: %+v", kind, plan)
		}
		how.To = 1
		var told []int
		how.OnStep = func(step api.SchemaStep) { told = append(told, step.Number) }
		if first := must[embedded.Schema](t)(embedded.Migrate(ctx, address, how)); first.Level != 1 || !first.Steps[0].Applied {
			t.Errorf("%s: %+v", kind, first)
		}
		if known > 1 {
			if _, err := embedded.Open(ctx, address, embedded.Config{EngineConfig: flowfabric.EngineConfig{Migrate: api.MigrateCheck, UnsafeDurability: true}}); flowfabric.CodeOf(err) != "invalid_argument" {
				t.Errorf("%s: a store that is behind is opened: %v", kind, err)
			}
		}
		how.To = 0
		if all := must[embedded.Schema](t)(embedded.Migrate(ctx, address, how)); all.Level != known || len(told) != known {
			t.Errorf("%s: %+v, told %v", kind, all, told)
		}
		for to, words := range map[int]string{known + 1: "there is no schema", -1: "there is no schema"} {
			how.To = to
			if _, err := embedded.Migrate(ctx, address, how); flowfabric.CodeOf(err) != "invalid_argument" || !strings.Contains(err.Error(), words) {
				t.Errorf("%s to %d: %v", kind, to, err)
			}
		}
		if how.To = 1; known > 1 {
			if _, err := embedded.Migrate(ctx, address, how); err == nil || !strings.Contains(err.Error(), "only goes forward") {
				t.Errorf("%s back: %v", kind, err)
			}
		}
	}
}

func TestU163_a_newer_schema_is_refused_with_both_numbers_and_what_is_needed(t *testing.T) {
	t.Parallel()
	ctx := inTime(t)
	address := cluster.Database(t)
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "insert into schema_migration (version, name) values (1000, 'tomorrow')"); err != nil {
		t.Fatal(err)
	}
	how := embedded.MigrateConfig{MigrateConfig: api.MigrateConfig{UnsafeDurability: true}}
	_, planned := embedded.SchemaOf(ctx, address, how)
	_, migrated := embedded.Migrate(ctx, address, how)
	for _, err := range []error{planned, migrated} {
		var refusal *flowfabric.Error
		if !errors.As(err, &refusal) || refusal.Code != "invalid_argument" || !strings.Contains(refusal.Message, "schema 1000, this program knows schema 7") || !strings.Contains(refusal.Hint, "knows schema 1000 or a later one") {
			t.Errorf("%+v", err)
		}
	}
}

func TestR5_losses_are_acknowledged_here_and_over_http_and_none_is_no_error(t *testing.T) {
	t.Parallel()
	onEveryStoreEmbedded(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		for name, admin := range map[string]ops.Admin{"here": w.Admin(), "over HTTP": w.overHTTP(t).Admin()} {
			if open := must[[]api.Rollback](t)(admin.AcknowledgeRollbacks(ctx, ops.AdminAction{Reason: "seen"})); len(open) > 0 {
				t.Errorf("%s: %+v", name, open)
			}
		}
	})
	lost := api.Rollback{From: 9, To: 7, Incarnation: "2", At: time.UnixMilli(1_800_000_000_000).UTC()}
	text, err := json.Marshal(lost)
	var read api.Rollback
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil || read != lost {
		t.Errorf("%s: %+v, %v", text, read, err)
	}
}
