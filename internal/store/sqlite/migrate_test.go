package sqlite

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// before makes a file of an older schema and runs a script on it.
func before(t *testing.T, schema int, script string) string {
	t.Helper()
	path := file(t)
	if _, err := Migrate(t.Context(), path, quick(), schema, func(store.SchemaStep) {}); err != nil {
		t.Fatal(err)
	}
	c, err := connect(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.raw.Script(script); err != nil {
		t.Fatal(err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestS13_classes_that_were_there_before_need_nothing_and_keep_their_numbers(t *testing.T) {
	t.Parallel()
	s := open(t, before(t, 1, `
		insert into ff_class (namespace, lane, kind, capabilities, fairness_key, retired_at) values
			('default', 'default', 'mail', '["gpu"]', 'f', 0), ('default', 'default', 'fax', '[]', '', 7), ('default', 'default', 'gone', '[]', '', 9);
		delete from ff_class where kind = 'gone';
		insert into ff_exec (id, n, class, version, status, reason, next, order_key, state, origin, input) values (zeroblob(16), 0, 2, 1, 1, 1, 1, 0, x'', x'', x'');
		insert into ff_search (id, namespace, lane, kind, creator, created, status, reason, next, priority, completed, updated, words) values
			(zeroblob(16), 'default', 'default', 'fax', '', 1, 1, 1, 1, 0, 0, 1, ''), (randomblob(16), 'default', 'default', 'fax', '', 1, 1, 1, 1, 0, 0, 1, '');
	`), quick())
	mail := core.Class{ID: 1, Namespace: "default", Lane: "default", Kind: "mail", Capabilities: []string{"gpu"}, FairnessKey: "f"}
	needy := mail
	needy.Needs = `{"q":[{"quota":"api"}]}`
	known, err := s.Register(t.Context(), nil, []core.Class{needy, mail})
	if err != nil || known.Classes[0].ID != 4 || known.Classes[1].ID != 1 {
		t.Fatalf("numbers %d and %d, %v: that of a dropped class is used again, or that of a class has changed", known.Classes[0].ID, known.Classes[1].ID, err)
	}
	d, err := s.Dictionary(t.Context())
	if err != nil || len(d.Classes) != 3 || d.Classes[1].Kind != "fax" || d.Classes[1].Needs != "" || len(d.Retired) != 1 || d.Retired[0] != (store.RetiredClass{ID: 2, Since: 7}) {
		t.Fatalf("%+v, %v", d, err)
	}
	hits, err := s.Find(t.Context(), store.Query{Classes: []int32{2}, Limit: 9})
	if err != nil || len(hits) != 1 || !hits[0].ID.IsZero() {
		t.Fatalf("%+v, %v", hits, err)
	}
}

func TestS13_a_file_without_classes_is_brought_up_to_date(t *testing.T) {
	t.Parallel()
	s := open(t, before(t, 1, ""), quick())
	if x := seed(t, s); x.Class.ID != 1 {
		t.Fatalf("the first class has number %d", x.Class.ID)
	}
}

func TestU265_outcomes_in_a_transaction_need_a_file_that_older_programs_refuse(t *testing.T) {
	t.Parallel()
	path := file(t)
	if _, err := Migrate(t.Context(), path, quick(), outcomesSince-1, func(store.SchemaStep) {}); err != nil {
		t.Fatal(err)
	}
	leave := func(migrate string, want base.Code) {
		t.Helper()
		cfg := quick()
		cfg.Migrate = migrate
		s := open(t, path, cfg)
		outside, err := NewExternalTx(s.Info())
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range []store.TxOutcomes{s, outside} {
			tx := beginOwn(t, s)
			if _, err := to.LockTx(t.Context(), tx, base.UUID{1}, nil, nil); base.CodeOf(err) != want {
				t.Errorf("LockTx with migrate=%s = %v, want %s", migrate, err, want)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	leave(migrateOff, base.CodeUpgradePending)
	leave(migrateAuto, "")
	if plan, err := Plan(t.Context(), path, quick()); err != nil || plan.Level < outcomesSince {
		t.Errorf("%+v, %v", plan, err)
	}
}

func TestU265_a_file_without_the_index_of_the_log_is_used_without_it(t *testing.T) {
	t.Parallel()
	path := file(t)
	if _, err := Migrate(t.Context(), path, quick(), indexSchema-1, func(store.SchemaStep) {}); err != nil {
		t.Fatal(err)
	}
	cfg := quick()
	cfg.Migrate = migrateOff
	s := open(t, path, cfg)
	for _, to := range []int64{1, 2} {
		err := s.Index(t.Context(), store.IndexPart{To: to, Mentions: []store.Mention{{Subject: base.UUID{1}, Seqs: []int64{to}}}})
		if found, end, readErr := s.LogOf(t.Context(), store.LogOf{Subject: base.UUID{1}, Limit: 9}); err != nil || readErr != nil || end != 0 || len(found) != 0 {
			t.Errorf("%d commits up to %d, %v, %v", len(found), end, err, readErr)
		}
	}
	if err := s.Maintain(t.Context(), base.Time(1)); err != nil {
		t.Error(err)
	}
}
