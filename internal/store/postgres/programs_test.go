package postgres

import (
	"bytes"
	"log/slog"
	"slices"
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
	added = slices.Concat(steps, []migration{{version: n + 1, name: "more.sql", text: "alter table {schema}.lane add column more int"}})
	taken = slices.Concat(added, []migration{{version: n + 2, name: "less.sql", text: "alter table {schema}.lane drop column since", needs: n + 1}})
	return added, taken
}

func TestU265_a_program_runs_on_a_newer_schema_that_only_adds(t *testing.T) {
	t.Parallel()
	url := cluster.Database(t)
	added, _ := tomorrow(t)
	before := openAt(t, url, Config{})
	after := openAt(t, url, Config{steps: added})
	if after.Info().Schema != KnownSchema()+1 {
		t.Fatalf("the later program has schema %d", after.Info().Schema)
	}
	for _, mode := range []string{MigrateAuto, MigrateCheck, MigrateOff} { // what is started again while the others are replaced
		again := openAt(t, url, Config{Migrate: mode})
		for _, s := range []*Store{before, after, again} {
			newCycler(t, s, "default").cycle(t, 3)
		}
		if again.Info().Schema != KnownSchema()+1 {
			t.Errorf("it says that the schema is %d", again.Info().Schema)
		}
	}
	if plan, err := Plan(t.Context(), url, Config{}); err != nil || plan.Newer() != nil || plan.Oldest != 6 || len(plan.Programs) != 5 {
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
	if after.Info().Schema != n+1 || !strings.Contains(log.String(), "waits for older programs to end") || !strings.Contains(log.String(), "v1 (schema") {
		t.Fatalf("the later program has schema %d: %s", after.Info().Schema, log.String())
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
	if s := openAt(t, url, Config{steps: taken}); s.Info().Schema != len(taken) {
		t.Errorf("the schema is %d", s.Info().Schema)
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

func TestU265_a_program_that_runs_applies_what_has_waited_when_the_older_ones_have_ended(t *testing.T) {
	t.Parallel()
	url := cluster.Database(t)
	_, taken := tomorrow(t)
	n := KnownSchema()
	before := openAt(t, url, Config{})
	after := openAt(t, url, Config{steps: taken})
	kept := openAt(t, url, Config{steps: taken, Migrate: MigrateCheck})
	for _, want := range []int{n + 1, n + 2, n + 2} {
		for _, s := range []*Store{kept, after} {
			if err := s.Maintain(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
		if schema := after.Info().Schema; schema != want {
			t.Fatalf("the schema is %d, not %d", schema, want)
		}
		CloseStore(t, before)
	}
}

func TestU265_outcomes_in_a_transaction_wait_until_every_program_understands_them(t *testing.T) {
	t.Parallel()
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	const since = 6
	if steps[since-1].name != "0006_outcomes.sql" || steps[since-1].needs != since {
		t.Fatalf("%+v", steps[since-1])
	}
	yesterday := Config{steps: steps[:since-1], Program: "v1"}
	url := cluster.Empty(t)
	before := openAt(t, url, yesterday)
	after := openAt(t, url, Config{})
	external, err := NewExternalTx(after.Info())
	if err != nil {
		t.Fatal(err)
	}
	// Without the step, nothing is left and the transaction can go on.
	leave := func() (codes [2]base.Code) {
		t.Helper()
		tx, err := connectAt(t, url).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(t.Context()) // nothing is kept
		for i, to := range []store.TxOutcomes{after, external} {
			_, err := to.LockTx(t.Context(), tx, base.UUID{1}, nil, nil)
			codes[i] = base.CodeOf(err)
		}
		if _, err := tx.Exec(t.Context(), "select 1"); err != nil {
			t.Errorf("after the refusal: %v", err)
		}
		return codes
	}
	pending := [2]base.Code{base.CodeUpgradePending, base.CodeUpgradePending}
	if codes := leave(); codes != pending {
		t.Errorf("while an older program runs: %q", codes)
	}
	for _, to := range []int64{1, 2} { // the step with the index waits too, and there is none without it
		err := after.Index(t.Context(), store.IndexPart{To: to, Mentions: []store.Mention{{Subject: base.UUID{1}, Seqs: []int64{to}}}})
		if found, end, readErr := after.LogOf(t.Context(), store.LogOf{Subject: base.UUID{1}, Limit: 9}); err != nil || readErr != nil || end != 0 || len(found) != 0 {
			t.Errorf("an index without its step: %d commits up to %d, %v, %v", len(found), end, err, readErr)
		}
	}
	openAt(t, url, yesterday) // it can be started again
	CloseStore(t, before)
	if codes := leave(); codes != pending {
		t.Errorf("without the step: %q", codes)
	}
	if _, err := Migrate(t.Context(), url, Config{}, Forward{}); base.CodeOf(err) != base.CodeInvalidArgument || !strings.Contains(err.Error(), "v1 (schema 5)") {
		t.Fatalf("Migrate: %v", err)
	}
	if _, err := Migrate(t.Context(), url, Config{}, Forward{Force: true}); err != nil {
		t.Fatal(err)
	}
	if codes := leave(); codes != [2]base.Code{} {
		t.Errorf("with the step: %q", codes)
	}
	refused(t, url, yesterday, "the store has schema")
}
