package postgres

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// tomorrow returns the steps of a later program: one that adds something, and one that takes away what programs use that do not know the first.
func tomorrow(t *testing.T) (added, taken []migration) {
	t.Helper()
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	n := len(steps)
	added = append(steps, migration{version: n + 1, name: "more.sql", text: "alter table {schema}.lane add column more int"})
	taken = append(added[:n+1:n+1], migration{version: n + 2, name: "less.sql", text: "alter table {schema}.lane drop column since", needs: n + 1})
	return added, taken
}

func TestU265_a_program_runs_on_a_newer_schema_that_only_adds(t *testing.T) {
	t.Parallel()
	url := cluster.Database(t)
	added, _ := tomorrow(t)
	before := openAt(t, url, Config{})
	after := openAt(t, url, Config{steps: added})
	if after.info.Schema != KnownSchema()+1 {
		t.Fatalf("the later program has schema %d", after.info.Schema)
	}
	for _, mode := range []string{MigrateAuto, MigrateCheck, MigrateOff} { // what is started again while the others are replaced
		again := openAt(t, url, Config{Migrate: mode})
		for _, s := range []*Store{before, after, again} {
			newCycler(t, s, "default").cycle(t, 3)
		}
		if again.info.Schema != KnownSchema()+1 {
			t.Errorf("it says that the schema is %d", again.info.Schema)
		}
	}
	if plan, err := Plan(t.Context(), url, Config{}); err != nil || plan.Newer() != nil || plan.Oldest != lastUnlisted+1 || len(plan.Programs) != 5 {
		t.Errorf("Plan: %+v, %v", plan, err)
	}
}

func TestU265_a_step_that_takes_something_away_waits_for_the_programs_that_need_it(t *testing.T) {
	t.Parallel()
	url := cluster.Database(t)
	_, taken := tomorrow(t)
	n := KnownSchema()
	before := openAt(t, url, Config{Program: "v1"})
	var log bytes.Buffer
	after := openAt(t, url, Config{steps: taken, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if after.info.Schema != n+1 || !strings.Contains(log.String(), "waits for older programs to end") || !strings.Contains(log.String(), "v1 (schema") {
		t.Fatalf("the later program has schema %d: %s", after.info.Schema, log.String())
	}
	newCycler(t, before, "default").cycle(t, 3)
	CloseStore(t, openAt(t, url, Config{steps: taken, Migrate: MigrateCheck})) // it works with and without the step
	if _, err := Migrate(t.Context(), url, Config{steps: taken}, Forward{}); base.CodeOf(err) != base.CodeInvalidArgument || !strings.Contains(err.Error(), "v1 (schema") {
		t.Fatalf("Migrate: %v", err)
	}
	CloseStore(t, before)
	if schema, err := Migrate(t.Context(), url, Config{steps: taken}, Forward{}); err != nil || schema.Level != n+2 {
		t.Fatalf("Migrate when the older program has ended: %+v, %v", schema, err)
	}
	for _, mode := range []string{MigrateAuto, MigrateCheck, MigrateOff} {
		refused(t, url, Config{Migrate: mode}, "the store has schema")
	}
	if plan, err := Plan(t.Context(), url, Config{steps: taken}); err != nil || plan.Oldest != n+1 || len(plan.Programs) != 1 {
		t.Errorf("Plan: %+v, %v", plan, err)
	}
}

func TestU265_a_program_that_is_left_behind_by_force_refuses_to_go_on(t *testing.T) {
	t.Parallel()
	url := cluster.Database(t)
	_, taken := tomorrow(t)
	before := openAt(t, url, Config{})
	if _, err := Migrate(t.Context(), url, Config{steps: taken}, Forward{Force: true}); err != nil {
		t.Fatal(err)
	}
	before.beaten.Store(0)
	if _, err := before.Poll(t.Context(), store.PollAsk{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := before.Begin(t.Context(), store.Want{Inbox: 1}); base.CodeOf(err) != base.CodeStoreUnavailable || !strings.Contains(err.Error(), "does not know") {
		t.Fatalf("Begin: %v", err)
	}
}

func TestU265_a_program_that_has_ended_without_saying_so_is_not_waited_for_for_long(t *testing.T) {
	t.Parallel()
	url := cluster.Database(t)
	_, taken := tomorrow(t)
	openAt(t, url, Config{})
	conn := connectAt(t, url)
	execute(t, conn, "update flowfabric.program set seen_at = seen_at - 61000")
	if s := openAt(t, url, Config{steps: taken}); s.info.Schema != len(taken) {
		t.Errorf("the schema is %d", s.info.Schema)
	}
}

func TestU265_a_program_says_that_it_runs_with_its_polls_and_until_it_ends(t *testing.T) {
	t.Parallel()
	url := cluster.Database(t)
	s := openAt(t, url, Config{})
	conn := connectAt(t, url)
	execute(t, conn, "update flowfabric.program set seen_at = 5")
	const seen = "select id from flowfabric.program where seen_at > 5"
	poll := func() {
		t.Helper()
		if _, err := s.Poll(t.Context(), store.PollAsk{}); err != nil {
			t.Fatal(err)
		}
	}
	poll()
	if found := list(t, conn, seen); len(found) != 0 {
		t.Errorf("every poll writes: %v", found)
	}
	s.beaten.Store(0)
	execute(t, conn, "delete from flowfabric.program") // others have taken it for ended
	poll()
	if found := list(t, conn, seen); len(found) != 1 || found[0] != s.name {
		t.Errorf("a poll says %v", found)
	}
	CloseStore(t, s)
	if found := list(t, conn, "select id from flowfabric.program"); len(found) != 0 {
		t.Errorf("after the end there is %v", found)
	}
}

func TestU163_steps_say_what_they_need_of_programs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"-- needs: 5\ndrop table a;": 5, "-- needs: 12": 12, "-- a comment\ncreate table a ();": 0} {
		if got, err := needsOf(text); err != nil || got != want {
			t.Errorf("%q needs %d, %v", text, got, err)
		}
	}
	if _, err := needsOf("-- needs: some\n"); err == nil {
		t.Error("a number that is none was read")
	}
	if steps, err := migrations(); err != nil || steps[lastUnlisted].name != "0005_programs.sql" {
		t.Errorf("%v, %v", steps, err)
	}
}
