package postgres

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/pgtest"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestR6_a_service_whose_storage_lies_below_the_server_is_recognised_by_name(t *testing.T) {
	t.Parallel()
	server, url := pgtest.Fallible(t, map[string]string{"fsync": "off", "full_page_writes": "off"})
	refused(t, url, Config{}, "may lose commits")
	admin := connectAt(t, strings.Replace(server.URL(), "/postgres?", "/fallible?", 1))
	execute(t, connectAt(t, url), "create function aurora_version() returns text language sql as 'select 1::text'")
	refused(t, url, Config{}, "may lose commits") // anybody can make such a function
	execute(t, admin, "set allow_system_table_mods = on")
	execute(t, admin, "create function pg_catalog.aurora_version() returns text language sql as 'select 1::text'")
	s := openAt(t, url, Config{})
	if found := examined(t, s); len(found.Risks) > 0 || found.Standbys != nil {
		t.Fatalf("risks %v, standbys %+v", found.Risks, found.Standbys)
	}
	execute(t, admin, "alter role flowfabric set synchronous_commit = off")
	refused(t, url, Config{}, "synchronous_commit is off")
}

func TestR6_settings_of_the_server_s_files_do_not_count_for_a_service(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		service, fsync, pages, commit string
		risks                         int
	}{
		{"", "on", "on", "on", 0},
		{"", "off", "on", "on", 1},
		{"", "off", "off", "off", 3},
		{"", "on", "on", "local", 0},
		{"Aurora", "off", "off", "on", 0},
		{"Neon", "off", "on", "off", 1},
		{"AlloyDB", "on", "off", "on", 0},
	} {
		if got := risks(row.service, row.fsync, row.pages, row.commit); len(got) != row.risks {
			t.Errorf("%+v: %v", row, got)
		}
	}
}

func examined(t *testing.T, s *Store) *store.Condition {
	t.Helper()
	found, err := s.Examine(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestR6_standbys_of_which_none_is_synchronous_are_told_of(t *testing.T) {
	t.Parallel()
	server, url := pgtest.Fallible(t, nil)
	admin := connectAt(t, strings.Replace(server.URL(), "/postgres?", "/fallible?", 1))
	look := func(reader, settings string) (store.Standbys, string) {
		t.Helper()
		var log bytes.Buffer
		s := openAt(t, reader+settings, Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), PoolSize: 2})
		return *examined(t, s).Standbys, log.String()
	}
	const warning = "a failover may lose commits"
	if found, log := look(url, ""); found != (store.Standbys{}) || strings.Contains(log, warning) {
		t.Errorf("without a standby: %+v %s", found, log)
	}
	server.Receiver(t)
	owner := strings.Replace(server.URL(), "/postgres?", "/fallible?", 1) // which sees more than an ordinary role
	for _, who := range []string{url, owner} {
		if found, log := look(who, ""); found != (store.Standbys{Count: 1}) || !strings.Contains(log, warning) {
			t.Errorf("none is synchronous: %+v %s", found, log)
		}
	}
	execute(t, admin, "alter system set synchronous_standby_names = '"+pgtest.ReceiverName+"'")
	execute(t, admin, "select pg_reload_conf()")
	for named := false; !named; {
		err := admin.QueryRow(t.Context(), "select current_setting('synchronous_standby_names') <> '' and exists (select from pg_stat_replication where sync_state = 'sync')").Scan(&named)
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, who := range []string{url, owner} {
		if found, log := look(who, ""); found != (store.Standbys{Count: 1, Synchronous: true}) || strings.Contains(log, warning) {
			t.Errorf("one is synchronous: %+v %s", found, log)
		}
	}
	if found, log := look(url, "&options=-csynchronous_commit%3Dlocal"); found != (store.Standbys{Count: 1}) || !strings.Contains(log, warning) {
		t.Errorf("commits do not wait: %+v %s", found, log)
	}
}
