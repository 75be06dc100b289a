package postgres

import (
	"bytes"
	"context"
	"database/sql"
	_ "embed"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// list runs a query with one column of texts.
func list(t *testing.T, conn querier, query string, values ...any) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), query, values...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return found
}

// things lists everything that a schema has.
const things = `select 'table ' || relname from pg_class where relnamespace = $1::regnamespace and relkind in ('r', 'p') and relname !~ '^log_p[0-9]+$'
	union all select 'sequence ' || relname from pg_class where relnamespace = $1::regnamespace and relkind = 'S' and not exists (select from pg_depend d where d.objid = pg_class.oid and d.deptype = 'i')
	union all select 'type ' || typname from pg_type where typnamespace = $1::regnamespace and typtype = 'd'
	union all select 'function ' || proname from pg_proc where pronamespace = $1::regnamespace order by 1`

// ours is what things lists of a store.
func ours() (names []string) {
	for _, name := range ownTables() {
		names = append(names, "table "+name)
	}
	for _, name := range ownDomains() {
		names = append(names, "type "+name)
	}
	for _, name := range ownFunctions() {
		names = append(names, "function "+name)
	}
	names = append(names, "sequence log_seq")
	slices.Sort(names)
	return names
}

// decoys are things of others with names of ours, in schemas that a search path finds first.
const decoys = `create schema evil;
	create table evil.log (app text); create table evil.queue (app text); create table evil.exec (app text); create table evil.installation (app text);
	create table evil.inbox (app text); create table evil.idem (app text); create domain evil.stage as text; create sequence evil.log_seq;
	create function evil.submit_to_inbox() returns int language sql as 'select 1';
	create table public.schema_migration (version bigint primary key, dirty bool not null); insert into public.schema_migration values (42, true);
	create table public.log (app text); create table public.queue (app text); insert into public.log values ('mine')`

// hostile is an empty database in which others use names of ours, and whose search path leads to them.
func hostile(t *testing.T) (url string) {
	t.Helper()
	url = cluster.Empty(t)
	conn := connectAt(t, url)
	execute(t, conn, decoys)
	execute(t, conn, "alter database "+conn.Config().Database+" set search_path = evil, public")
	return url
}

// unharmed checks that what hostile made is as it was.
func unharmed(t *testing.T, url string) {
	t.Helper()
	conn := connectAt(t, url)
	if rows := list(t, conn, "select version || ' ' || dirty from public.schema_migration"); !slices.Equal(rows, []string{"42 true"}) {
		t.Errorf("the steps of another tool are %v", rows)
	}
	if rows := list(t, conn, "select app from public.log"); !slices.Equal(rows, []string{"mine"}) {
		t.Errorf("the log of the application is %v", rows)
	}
	for schema, want := range map[string]int{"evil": 9, "public": 3} {
		if found := list(t, conn, things, schema); len(found) != want {
			t.Errorf("schema %s has %v", schema, found)
		}
	}
}

func TestU163_everything_of_a_store_is_in_its_schema_and_no_statement_needs_a_search_path(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{"", "select"} { // a word of the language is a name like any other
		url := cluster.Empty(t)
		s := openAt(t, url, Config{Schema: schema})
		conn := connectAt(t, url)
		if found := list(t, conn, things, quoted(s.schema)); !slices.Equal(found, ours()) {
			t.Errorf("the schema has\n%v, the lists of what moves have\n%v", found, ours())
		}
		if found := list(t, conn, things, "public"); len(found) > 0 {
			t.Errorf("public has %v", found)
		}
		execute(t, conn, "set search_path = ''")
		for name, text := range s.texts {
			if _, err := conn.Prepare(t.Context(), name, text); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, text := range s.cold {
			if strings.HasPrefix(text, "create") || strings.Contains(text, "{") {
				continue // run below
			}
			if _, err := conn.Prepare(t.Context(), "cold_"+name, text); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestU163_a_store_beside_tables_of_others_with_the_same_names_works_and_leaves_them_alone(t *testing.T) {
	t.Parallel()
	url := hostile(t)
	through := cluster.Pooler(t)
	for name, open := range map[string]func() *Store{
		"own":    func() *Store { return openAt(t, url, Config{}) },
		"pooled": func() *Store { return openAt(t, through(url), Config{DirectURL: url}) },
	} {
		s := open()
		c := newCycler(t, s, name)
		c.cycle(t, 20)
		if err := s.Maintain(t.Context(), 1); err != nil {
			t.Errorf("Maintain: %v", err)
		}
		if err := s.Scrub(t.Context(), func(what error) { t.Errorf("damaged: %v", what) }); err != nil {
			t.Errorf("Scrub: %v", err)
		}
		if condition := examined(t, s); len(condition.Tables) == 0 {
			t.Error("no tables are examined")
		}
		if answer, err := s.Poll(t.Context(), store.PollAsk{}); err != nil || answer.LogEnd == 0 {
			t.Errorf("Poll: %+v, %v", answer, err)
		}
		CloseStore(t, s)
	}
	unharmed(t, url)
}

func TestU163_a_schema_in_which_others_have_names_of_ours_is_refused(t *testing.T) {
	t.Parallel()
	url := hostile(t)
	for schema, what := range map[string]string{"evil": "the schema evil has a function submit_to_inbox", "public": "the schema public has a table log"} {
		refused(t, url, Config{Schema: schema}, what)
	}
	execute(t, connectAt(t, url), "create schema flowfabric; create function flowfabric.submit_to_inbox() returns int language sql as 'select 1'")
	refused(t, url, Config{}, "the schema flowfabric has a function submit_to_inbox")
	unharmed(t, url)
	for _, name := range []string{"Upper", "a-b", "pg_mine", "information_schema", "1a", `a"b`, strings.Repeat("a", 64)} {
		refused(t, url, Config{Schema: name}, "is not a name for the schema of a store")
	}
}

func TestU163_two_schemas_of_a_database_are_two_stores(t *testing.T) {
	t.Parallel()
	url := cluster.Empty(t)
	stores := map[string]*Store{}
	heard := make(chan string, 100)
	for _, schema := range []string{"flowfabric", "second"} {
		if other := stores["flowfabric"]; other != nil { // which another process may migrate meanwhile
			if err := other.lockSchema(t.Context(), beginAt(t, url)); err != nil {
				t.Fatal(err)
			}
		}
		s := openAt(t, url, Config{Schema: schema})
		stores[schema] = s
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = s.Listen(ctx, func(store.Hint) { heard <- schema })
		}()
		t.Cleanup(func() { stop(); <-done })
	}
	first, second := stores["flowfabric"], stores["second"]
	if first.info.Installation == second.info.Installation || first.Info().LogID == second.Info().LogID || first.channel() == second.channel() {
		t.Fatal("both are one installation")
	}
	waitUntil(t, url, "select count(*) = 2 from pg_stat_activity where datname = current_database() and query like 'listen %'")
	newCycler(t, first, "only").cycle(t, 3)
	if got, err := second.Count(t.Context(), store.Query{}, 10); err != nil || got != 0 {
		t.Errorf("the second store finds %d, %v", got, err)
	}
	if d, err := second.Dictionary(t.Context()); err != nil || len(d.Lanes) != 0 {
		t.Errorf("the second store has lanes %v, %v", d.Lanes, err)
	}
	// Hints arrive in order, so that what the second one hears first is its own.
	other := openAt(t, url, Config{Schema: "second"})
	for _, send := range []*Store{first, other} {
		if err := send.Notify(t.Context(), store.Hint{Log: true}); err != nil {
			t.Fatal(err)
		}
	}
	if who := <-heard; who != "second" {
		t.Errorf("%s heard a hint of the other store", who)
	}
	execute(t, connectAt(t, url), "drop schema second cascade")
	newCycler(t, first, "only").cycle(t, 3)
}

func TestU137_a_transaction_with_any_search_path_submits(t *testing.T) {
	t.Parallel()
	url := hostile(t)
	s := openAt(t, url, Config{})
	second := openAt(t, url, Config{Schema: "second"})
	external, err := NewExternalTx(s.Info())
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := NewExternalTx(store.Info{Tables: "flowfabric", Installation: second.info.Installation})
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	now, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"evil, public", "evil, pg_catalog", "''"} {
		own := beginAt(t, url)
		other, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		execute(t, own, "set local search_path = "+path)
		if _, err := other.ExecContext(t.Context(), "set local search_path = "+path); err != nil {
			t.Fatal(err)
		}
		for name, submit := range map[string]func(key *store.KeyRow, row store.InboxRow) (*store.Existing, error){
			"pgx": func(k *store.KeyRow, r store.InboxRow) (*store.Existing, error) {
				return s.SubmitTx(t.Context(), own, k, r)
			},
			"sql": func(k *store.KeyRow, r store.InboxRow) (*store.Existing, error) {
				return s.SubmitTx(t.Context(), other, k, r)
			},
			"external": func(k *store.KeyRow, r store.InboxRow) (*store.Existing, error) {
				return external.SubmitTx(t.Context(), own, k, r)
			},
		} {
			key, row := submission(now, name+path)
			if found, err := submit(key, row); err != nil || found != nil {
				t.Errorf("%s with search_path %s: %v, %v", name, path, found, err)
			}
		}
		key, row := submission(now, "elsewhere")
		if _, err := stranger.SubmitTx(t.Context(), own, key, row); base.CodeOf(err) != base.CodeWrongDatabase {
			t.Errorf("another installation in the schema: %v", err)
		}
		var left string
		if err := own.QueryRow(t.Context(), "show lock_timeout").Scan(&left); err != nil || left != "0" {
			t.Errorf("the user's transaction is not as it was: %s, %v", left, err)
		}
		execute(t, own, "commit")
		if err := other.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	loaded, err := s.Read(t.Context(), store.Want{Inbox: 100})
	if err != nil || len(loaded.Inbox) != 9 {
		t.Fatalf("%d submissions arrived, want 9: %v", len(loaded.Inbox), err)
	}
	unharmed(t, url)
}

func TestU137_a_role_without_a_right_on_the_schema_is_told_so_and_its_transaction_goes_on(t *testing.T) {
	t.Parallel()
	role := newRole(t)
	owned := cluster.Database(t)
	s := openAt(t, owned, Config{})
	url, owner := as(t, owned, role)
	key, row := submission(1, "poor")
	tx := beginAt(t, url)
	if _, err := s.SubmitTx(t.Context(), tx, key, row); base.CodeOf(err) != base.CodeInvalidArgument || !strings.Contains(err.Error(), "the right USAGE on schema flowfabric") {
		t.Fatalf("SubmitTx: %v", err)
	}
	execute(t, tx, "commit")
	execute(t, owner, "grant usage on schema flowfabric to "+role)
	execute(t, owner, "grant select on flowfabric.installation, flowfabric.lane, flowfabric.doc to "+role)
	execute(t, owner, "grant select, insert, delete on flowfabric.idem, flowfabric.inbox, flowfabric.exec to "+role)
	if found, err := s.SubmitTx(t.Context(), beginAt(t, url), key, row); err != nil || found != nil {
		t.Fatalf("SubmitTx with the rights that the documentation names: %v, %v", found, err)
	}
}

// beforeSchemas is a store as a program made it that knew no schemas.
//
//go:embed testdata/before_schemas.dump
var beforeSchemas string

// older is a database with that store, in which others use other names of ours.
func older(t *testing.T) (url string, conn *pgx.Conn) {
	t.Helper()
	url = cluster.Empty(t)
	admin := connectAt(t, cluster.AdminURL(t, url))
	execute(t, admin, "grant all on schema public to public") // as before version 15
	loading := connectAt(t, url)
	if _, err := loading.PgConn().Exec(t.Context(), beforeSchemas).ReadAll(); err != nil {
		t.Fatal(err)
	}
	conn = connectAt(t, url)
	execute(t, conn, "update public.installation set database = (select oid from pg_database where datname = current_database())") // it is no copy
	execute(t, conn, "create table public.orders (id int)")
	return url, conn
}

// contents counts the rows of every table of a store.
func contents(t *testing.T, conn *pgx.Conn, schema string) (rows []string) {
	t.Helper()
	for _, table := range ownTables() {
		if table == "program" || table == "schema_migration" || table == "mention" || table == "log_index" { // of later steps
			continue
		}
		columns := "t.*"
		if table == "installation" {
			columns = "t.id, t.log_id, t.dictionary, t.log_floor"
		}
		rows = append(rows, list(t, conn, "select '"+table+" ' || count(*) || ' ' || coalesce(md5(string_agg(row_text, ',' order by row_text)), '') from (select row("+columns+")::text as row_text from "+quoted(schema)+"."+table+" t) r")...)
	}
	return append(rows, list(t, conn, "select last_value::text from "+quoted(schema)+".log_seq")...)
}

func TestU163_a_store_from_before_schemas_is_moved_with_everything_in_it(t *testing.T) {
	t.Parallel()
	url, conn := older(t)
	before := contents(t, conn, "public")
	if plan, err := Plan(t.Context(), url, Config{}); err != nil || plan.Level != lastUnlisted || plan.Tables != "public" || plan.Moves != "flowfabric" {
		t.Fatalf("Plan: %+v, %v", plan, err)
	}
	var log bytes.Buffer
	s := openAt(t, url, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if after := contents(t, conn, "flowfabric"); !slices.Equal(before, after) {
		t.Errorf("before the move\n%q, after it\n%q", before, after)
	}
	if s.info.Tables != "flowfabric" || !strings.Contains(log.String(), "moved to a schema of their own") {
		t.Errorf("the tables are in %s: %s", s.info.Tables, log.String())
	}
	if found := list(t, conn, things, "flowfabric"); !slices.Equal(found, ours()) {
		t.Errorf("the schema has %v", found)
	}
	if found := list(t, conn, things, "public"); !slices.Equal(found, []string{"table orders", "table schema_migration"}) {
		t.Errorf("public still has %v", found)
	}
	if partitions := list(t, conn, "select c.relnamespace::regnamespace::text from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'flowfabric.log'::regclass group by 1"); !slices.Equal(partitions, []string{"flowfabric"}) {
		t.Errorf("partitions of the log are in %v", partitions)
	}
	// An older program finds a schema that it does not know, instead of making another store.
	if newest := list(t, conn, "select max(version)::text from public.schema_migration"); newest[0] != "1000000" {
		t.Errorf("an older program finds schema %v", newest)
	}
	c := newCycler(t, s, "default")
	c.cycle(t, 10)
	if err := s.Scrub(t.Context(), func(what error) { t.Errorf("damaged: %v", what) }); err != nil {
		t.Error(err)
	}
	key, row := submission(1, "after the move")
	if found, err := s.SubmitTx(t.Context(), beginAt(t, url), key, row); err != nil || found != nil {
		t.Errorf("SubmitTx: %v, %v", found, err)
	}
	if again := openAt(t, url, Config{Migrate: MigrateCheck}); again.info != s.info {
		t.Errorf("opened again: %+v, before %+v", again.info, s.info)
	}
	execute(t, conn, "drop table public.schema_migration") // as the documentation says, when no older program is left
	if again := openAt(t, url, Config{}); again.info != s.info {
		t.Errorf("opened again: %+v, before %+v", again.info, s.info)
	}
}

func TestU163_a_store_from_before_schemas_is_used_where_it_is_while_a_program_uses_it(t *testing.T) {
	t.Parallel()
	url, conn := older(t)
	listening := connectAt(t, url) // as an older program does
	execute(t, listening, "listen flowfabric_"+list(t, conn, "select left(id::text, 8) from public.installation")[0])
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	beside := openAt(t, url, Config{Logger: logger})
	if beside.info.Tables != "public" || !strings.Contains(log.String(), "an earlier version (schema 4)") {
		t.Fatalf("the tables are in %s: %s", beside.info.Tables, log.String())
	}
	newCycler(t, beside, "default").cycle(t, 5)
	if err := beside.Maintain(t.Context(), 0); err != nil {
		t.Error(err)
	}
	for _, cfg := range []Config{{}, {Migrate: MigrateCheck}, {Migrate: MigrateOff}} {
		if s := openAt(t, url, cfg); s.info.Tables != "public" || s.info.Installation != beside.info.Installation {
			t.Errorf("migrate %q: %+v", cfg.Migrate, s.info)
		} else {
			CloseStore(t, s)
		}
	}
	if _, err := Migrate(t.Context(), url, Config{}, Forward{}); base.CodeOf(err) != base.CodeInvalidArgument || !strings.Contains(err.Error(), "an earlier version") {
		t.Errorf("Migrate: %v", err)
	}
	if err := listening.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, url, "select not exists (select from pg_stat_activity where datname = current_database() and query ~ '^listen flowfabric_')")
	if plan, err := Plan(t.Context(), url, Config{}); err != nil || len(plan.Programs) != 1 || plan.Programs[0].Known != KnownSchema() {
		t.Errorf("Plan: %+v, %v", plan, err)
	}
	if _, err := Migrate(t.Context(), url, Config{}, Forward{}); base.CodeOf(err) != base.CodeInvalidArgument {
		t.Errorf("Migrate beside a newer program: %v", err)
	}
	CloseStore(t, beside)
	if schema, err := Migrate(t.Context(), url, Config{}, Forward{}); err != nil || schema.Tables != "flowfabric" || schema.Moves != "" {
		t.Fatalf("Migrate: %+v, %v", schema, err)
	}
	newCycler(t, openAt(t, url, Config{Migrate: MigrateCheck}), "default").cycle(t, 5)
}

func TestU163_a_program_whose_tables_were_moved_by_force_fails_clearly(t *testing.T) {
	t.Parallel()
	url, _ := older(t)
	s, err := Open(t.Context(), url, Config{Migrate: MigrateOff})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { CloseStore(t, s) })
	c := newCycler(t, s, "default")
	c.cycle(t, 1)
	if _, err := Migrate(t.Context(), url, Config{}, Forward{Force: true, OnStep: func(store.SchemaStep) {}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		tx, got, err := s.Begin(t.Context(), store.Want{})
		if err == nil {
			ch := &store.Changes{}
			ch.Insert = append(ch.Insert, c.execution(got.Now))
			err = tx.Commit(t.Context(), ch)
		}
		if base.CodeOf(err) != base.CodeStoreUnavailable || !strings.Contains(err.Error(), "tables of the store") {
			t.Errorf("a commit after the move: %v", err)
		}
	}
	if got, err := openAt(t, url, Config{}).Count(t.Context(), store.Query{}, 100); err != nil {
		t.Errorf("%d, %v", got, err)
	}
}

func TestU163_a_store_from_before_schemas_goes_where_the_configuration_says(t *testing.T) {
	t.Parallel()
	url, _ := older(t)
	refused(t, url, Config{Schema: "mine"}, "the database has a store of an earlier version in schema public")
	if schema, err := Migrate(t.Context(), url, Config{Schema: "mine"}, Forward{}); err != nil || schema.Tables != "mine" {
		t.Fatalf("Migrate: %+v, %v", schema, err)
	}
	newCycler(t, openAt(t, url, Config{Schema: "mine"}), "default").cycle(t, 5)

	url, _ = older(t)
	if s := openAt(t, url, Config{Schema: "public"}); s.info.Tables != "public" {
		t.Errorf("the tables are in %s", s.info.Tables)
	}
	if s := openAt(t, url, Config{}); s.info.Tables != "flowfabric" || s.Info().LogID.IsZero() {
		t.Errorf("a store that belongs in public was taken for one to be moved: %+v", s.info)
	}
}

func TestU163_a_role_that_may_not_make_a_schema_uses_an_older_store_where_it_is(t *testing.T) {
	t.Parallel()
	role := newRole(t)
	owned, owner := older(t)
	url, _ := as(t, owned, role)
	execute(t, connectAt(t, cluster.AdminURL(t, owned)), "do $$ declare r record; begin for r in select relname, relkind from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relname <> 'orders' loop execute format('alter table public.%I owner to "+role+"', r.relname); end loop; end $$;"+
		"alter sequence public.log_seq owner to "+role+"; alter function public.submit_to_inbox owner to "+role)
	var log bytes.Buffer
	s := openAt(t, url, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if s.info.Tables != "public" || !strings.Contains(log.String(), "lacks the right CREATE on database") {
		t.Fatalf("the tables are in %s: %s", s.info.Tables, log.String())
	}
	newCycler(t, s, "default").cycle(t, 5)
	CloseStore(t, s)
	execute(t, owner, "create schema flowfabric authorization "+owner.Config().User)
	execute(t, owner, "grant all on schema flowfabric to "+role)
	if s := openAt(t, url, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}); s.info.Tables != "public" || !strings.Contains(log.String(), "the role does not own everything") {
		t.Fatalf("the tables are in %s: %s", s.info.Tables, log.String())
	}
}
