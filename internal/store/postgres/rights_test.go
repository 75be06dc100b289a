package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/pgtest"
	"github.com/flowfabric/flowfabric/internal/store"
)

// newRole makes a role that may do nothing in particular. It is dropped when the databases that the test makes after it are.
func newRole(t *testing.T) string {
	t.Helper()
	role := "r" + strings.ToLower(rand.Text())
	admin := cluster.AdminURL(t, pgtest.URL(cluster.Socket(t), role, "postgres"))
	execute(t, connectAt(t, admin), "create role "+role+" login")
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), admin)
		if err == nil {
			_, err = conn.Exec(context.Background(), "drop role "+role)
			err = errors.Join(err, conn.Close(context.Background()))
		}
		if err != nil {
			t.Error(err)
		}
	})
	return role
}

// as is the address of the same database for another role, and its owner a connection to it.
func as(t *testing.T, url, role string) (address string, owner *pgx.Conn) {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return pgtest.URL(cluster.Socket(t), role, config.Database), connectAt(t, url)
}

// lacking expects that Open and Migrate refuse a role with these words, and say what to do.
func lacking(t *testing.T, url, words string) {
	t.Helper()
	refused(t, url, Config{}, words)
	_, err := Open(t.Context(), url, Config{})
	var refusal *base.Error
	if !errors.As(err, &refusal) || refusal.Hint == "" {
		t.Fatalf("%v has no hint", err)
	}
}

func TestA_role_that_may_not_create_is_told_so(t *testing.T) {
	t.Parallel()
	role := newRole(t)
	empty := cluster.Empty(t)
	url, owner := as(t, empty, role)
	database := owner.Config().Database
	lacking(t, url, "the role "+role+" lacks the right CREATE on database "+database+", to create the schema flowfabric")
	if _, err := Migrate(t.Context(), url, Config{}, Forward{OnStep: func(store.SchemaStep) {}}); base.CodeOf(err) != base.CodeInvalidArgument {
		t.Fatalf("Migrate: %v", err)
	}
	execute(t, owner, "create schema flowfabric")
	execute(t, owner, "grant usage on schema flowfabric to "+role)
	lacking(t, url, "the role "+role+" lacks the right CREATE on schema flowfabric")
	execute(t, owner, "grant create on schema flowfabric to "+role)
	openAt(t, url, Config{})
}

func TestA_role_that_may_not_use_our_tables_is_told_which_right_it_lacks(t *testing.T) {
	t.Parallel()
	role := newRole(t)
	owned := cluster.Database(t)
	url, owner := as(t, owned, role)
	lacking(t, url, "permission denied for schema flowfabric")
	execute(t, owner, "grant usage on schema flowfabric to "+role)
	lacking(t, url, "permission denied for table")
	execute(t, owner, "grant select, insert, update, delete on all tables in schema flowfabric to "+role)
	execute(t, owner, "grant all on all sequences in schema flowfabric to "+role)
	lacking(t, url, "to own table log")
	execute(t, connectAt(t, cluster.AdminURL(t, owned)), "grant "+owner.Config().User+" to "+role)
	openAt(t, url, Config{})
	execute(t, owner, "revoke insert, delete on doc from current_user, "+role)
	lacking(t, url, "the right INSERT on table doc, DELETE on table doc")
}

func TestA_role_or_database_that_is_not_there_is_told_so(t *testing.T) {
	t.Parallel()
	url := cluster.Empty(t)
	stranger, _ := as(t, url, "unknown_role")
	lacking(t, stranger, "does not let the role in")
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	lacking(t, pgtest.URL(cluster.Socket(t), config.User, "no_such_database"), "there is no such database")
}

func TestA_right_that_is_revoked_while_the_store_is_open_is_named_by_the_next_call_that_needs_it(t *testing.T) {
	t.Parallel()
	s, url := openNew(t, Config{})
	c := newCycler(t, s, "default")
	owner := connectAt(t, url)
	execute(t, owner, "revoke insert on exec from current_user")
	write := func(ch *store.Changes) error {
		tx, _, err := s.Begin(t.Context(), store.Want{})
		if err != nil {
			t.Fatal(err)
		}
		return tx.Commit(t.Context(), ch)
	}
	insert := &store.Changes{Insert: []*core.Execution{c.execution(1)}}
	err := write(insert)
	if base.CodeOf(err) != base.CodeStoreUnavailable || store.FaultOf(err) != store.Broken || !strings.Contains(err.Error(), "table exec") {
		t.Fatalf("%v, want store_unavailable for this transaction alone", err)
	}
	if err := write(&store.Changes{Counters: map[string]int64{"a": 1}}); err != nil {
		t.Fatalf("what needs no such right: %v", err)
	}
	execute(t, owner, "grant insert on exec to current_user")
	if err := write(insert); err != nil {
		t.Fatalf("when the right is back: %v", err)
	}
}

func TestThe_rights_on_every_table_are_checked(t *testing.T) {
	t.Parallel()
	s, url := open(t, Config{})
	rows, err := connectAt(t, url).Query(t.Context(),
		"select relname::text from pg_class where relnamespace = 'flowfabric'::regnamespace and relkind in ('r', 'p') and not relispartition")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) == 0 {
		t.Fatalf("%v, %v", tables, err)
	}
	for _, table := range slices.DeleteFunc(tables, func(name string) bool { return name == "schema_migration" }) {
		if !strings.Contains(s.cold["missing_rights"], "'"+table+"'") {
			t.Errorf("the rights on %s are not checked", table)
		}
	}
}
