package postgres

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// inForce reads the settings that a trip runs under.
func inForce(t *testing.T, begun *tx) (lockTimeout, planning, scans string) {
	t.Helper()
	tr := begun.s.trip(begun.conn)
	tr.add("probe", func(r row) error {
		lockTimeout, planning, scans = r.text(0), r.text(1), r.text(2)
		return nil
	})
	if err := tr.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return lockTimeout, planning, scans
}

func TestEvery_transaction_has_its_patience_and_its_plans_with_and_without_a_pooler(t *testing.T) {
	t.Parallel()
	through := cluster.Pooler(t)
	for name, open := range map[string]func(t *testing.T) *Store{
		"own": func(t *testing.T) *Store { s, _ := open(t, Config{PoolSize: 1}); return s },
		"pooled": func(t *testing.T) *Store {
			url := cluster.Database(t)
			return openAt(t, through(url), Config{PoolSize: 1, DirectURL: url})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.texts["probe"] = "select current_setting('lock_timeout'), current_setting('plan_cache_mode'), current_setting('enable_seqscan')"
			want := store.Want{Executions: []base.UUID{mint(1)}}
			for _, patience := range []bool{false, true, false} { // a patient transaction leaves nothing behind
				want.Patient = patience
				begun, _, err := s.Begin(t.Context(), want)
				if err != nil {
					t.Fatal(err)
				}
				wait := s.impatient
				if patience {
					wait = patient
				}
				lockTimeout, planning, scans := inForce(t, begun.(*tx))
				if lockTimeout != wait || planning != "force_generic_plan" || scans != "off" {
					t.Errorf("patient %v: lock_timeout %s, plan_cache_mode %s, enable_seqscan %s", patience, lockTimeout, planning, scans)
				}
				begun.Rollback(t.Context())
			}
		})
	}
}

func TestSearches_are_planned_as_the_server_likes_it(t *testing.T) {
	t.Parallel()
	s, _ := open(t, Config{PoolSize: 1})
	s.texts["probe"] = "select current_setting('plan_cache_mode'), current_setting('enable_seqscan')"
	var planning, scans string
	if err := s.ask(t.Context(), "probe", func(r row) error {
		planning, scans = r.text(0), r.text(1)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if planning != "auto" || scans != "on" {
		t.Errorf("plan_cache_mode %s, enable_seqscan %s", planning, scans)
	}
}
