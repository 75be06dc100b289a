package postgres

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/pgtest"
	"github.com/flowfabric/flowfabric/internal/store"
)

// refused expects that Open refuses with a message that holds these words.
func refused(t *testing.T, url string, cfg Config, words string) {
	t.Helper()
	s, err := Open(t.Context(), url, cfg)
	if err == nil {
		_ = s.Close()
		t.Fatalf("Open succeeded, want a refusal with %q", words)
	}
	if base.CodeOf(err) != base.CodeInvalidArgument || !strings.Contains(err.Error(), words) {
		t.Fatalf("Open: %v, want invalid_argument with %q", err, words)
	}
}

func TestReliability10_a_server_that_may_lose_commits_is_refused(t *testing.T) {
	t.Parallel()
	url := cluster.Database(t)
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	execute(t, connectAt(t, url), "alter database "+config.Database+" set synchronous_commit = off")
	refused(t, url, Config{}, "synchronous_commit is off")
	openAt(t, url, Config{UnsafeDurability: true})
}

func TestReliability10_a_server_without_fsync_or_full_pages_is_refused(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"fsync", "full_page_writes"} {
		server, err := pgtest.Start(t.Context(), map[string]string{setting: "off"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Stop)
		refused(t, server.URL(), Config{}, setting+" is off")
		openAt(t, server.URL(), Config{UnsafeDurability: true})
	}
}

func TestA_newer_schema_is_refused_whatever_the_mode(t *testing.T) {
	t.Parallel()
	url := cluster.Database(t)
	execute(t, connectAt(t, url), "insert into schema_migration (version, name) values (1000, 'tomorrow')")
	for _, mode := range []string{MigrateAuto, MigrateCheck, MigrateOff} {
		refused(t, url, Config{Migrate: mode}, "the store has schema 1000")
	}
}

func TestAn_older_schema_is_migrated_or_refused_as_configured(t *testing.T) {
	t.Parallel()
	url := cluster.Empty(t)
	refused(t, url, Config{Migrate: MigrateCheck}, "this is not a FlowFabric store")
	first := openAt(t, url, Config{})
	second := openAt(t, url, Config{Migrate: MigrateCheck})
	if first.Info() != second.Info() || first.Info().Schema == 0 {
		t.Fatalf("two handles on one database: %+v and %+v", first.Info(), second.Info())
	}
	execute(t, connectAt(t, url), "delete from schema_migration where version > 1")
	refused(t, url, Config{Migrate: MigrateCheck}, "this program needs")
}

func TestMany_processes_may_migrate_at_once(t *testing.T) {
	t.Parallel()
	url := cluster.Empty(t)
	failures := make(chan error)
	const processes = 4
	for range processes {
		go func() {
			s, err := Open(t.Context(), url, Config{})
			if err == nil {
				err = s.Close()
			}
			failures <- err
		}()
	}
	for range processes {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
}

func TestA_configuration_that_makes_no_sense_reports_every_problem(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), "postgres:///x", Config{PoolSize: -1, Timeout: -1, Migrate: "sometimes"})
	for _, word := range []string{"PoolSize", "Timeout", "sometimes"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not tell of %s", err, word)
		}
	}
	refused(t, "no address at all\x00", Config{}, "cannot be read")
}

func TestA_server_that_does_not_answer_is_unavailable(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), pgtest.URL(t.TempDir(), "missing", "nothing"), Config{})
	if store.FaultOf(err) != store.Unavailable {
		t.Fatalf("Open: %v, want unavailable", err)
	}
}

func TestL13_the_database_holds_status_reason_and_next_to_the_tables(t *testing.T) {
	t.Parallel()
	url := cluster.Database(t)
	tx := beginAt(t, url)
	const row = `insert into exec (id, class_id, n, origin, input, stage, order_key, state) values (gen_random_uuid(), 1, 0, '', '', $1, 0, '')`
	for status := core.StatusNone; status <= core.Skipped+1; status++ {
		for reason := core.ReasonNone; reason <= core.PausedByPolicy+1; reason++ {
			for next := core.NextNone; next <= core.NextResume+1; next++ {
				nested, err := tx.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				_, err = nested.Exec(t.Context(), row, int16(stageOf(status, reason, next)))
				taken := stageOf(status, reason, next) == 0 // an id that waits for its execution
				if allowed := taken || allowedByL13(status, reason, next); allowed != (err == nil) {
					t.Errorf("%v, %v, %v: allowed is %v, the database says %v", status, reason, next, allowed, err)
				}
				if err := nested.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func allowedByL13(status core.Status, reason core.Reason, next core.Next) bool {
	if none := status == core.Running || status.Terminal(); none != (next == core.NextNone) || next > core.NextResume {
		return false
	}
	for _, one := range core.ReasonsOf(status) {
		if one == reason {
			return true
		}
	}
	return false
}
