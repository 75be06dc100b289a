package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/eventdata"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

func TestE24_the_data_of_an_event_takes_no_more_than_two_allocations(t *testing.T) {
	s := broughtTo(t, tablePolicy, Failed)
	held := heldLease{workerID: "w", instanceID: "w-1"}
	fx := &Effects{Events: make([]Event, 0, 1)}
	allocs := testing.AllocsPerRun(100, func() {
		fx.Events = fx.Events[:0]
		s.x.emitCompleted(fx, &held, nil)
	})
	most := 2.0
	if underRaceDetector {
		most = 3 // it keeps the builder on the heap
	}
	if allocs > most {
		t.Errorf("%v allocations", allocs)
	}
}

// LC23: every path into a terminal status is reported by exactly one completion with the right outcome.
func TestL145_every_path_into_a_terminal_status_tells_exactly_one_completion(t *testing.T) {
	t.Parallel()
	outcomes := map[Status]string{Succeeded: "success", Failed: "failed", Cancelled: "cancelled", Expired: "expired", Skipped: "skipped"}
	for _, status := range []Status{Succeeded, Failed, Cancelled, Expired, Skipped} {
		s := broughtTo(t, tablePolicy, status)
		if s.ended != 1 {
			t.Errorf("%s: %d completions", status, s.ended)
		}
		data := s.last("execution.completed")
		if data["outcome"] != outcomes[status] || data["status"] != status.String() || (data["failure"] != nil) != (status == Failed) {
			t.Errorf("%s: %v", status, data)
		}
		if status == Skipped {
			if diff := cmp.Diff([]any{"a"}, data["edges"]); diff != "" {
				t.Error(diff)
			}
		}
	}
}

func TestL30_an_attempt_that_waits_gets_its_final_state_when_the_execution_ends(t *testing.T) {
	t.Parallel()
	for _, status := range []Status{Delayed, Suspended} {
		s := broughtTo(t, `{}`, status)
		s.now++
		must[bool](t)(s.cancel(nil))
		if a := s.history[1].Attempt; a.State != EndedCancelled || a.EndedAt != s.now {
			t.Errorf("%s: %+v", status, a)
		}
	}
}

func TestW25_a_change_of_the_key_set_belongs_to_no_namespace_and_names_kids_alone(t *testing.T) {
	t.Parallel()
	fx := &Effects{Now: 10_000, Actor: Actor{Type: "operator", ID: "ann"}, RequestID: "q"}
	fx.EmitKey(keyring.KeyChange{Kind: "key.rotated", Kid: "b", PreviousKid: "a", VerifyUntil: 10_777})
	fx.EmitKey(keyring.KeyChange{Kind: "key.seeded", Kid: "b"})
	for i, want := range []string{`{"kid":"b","previous_kid":"a","verify_until":"1970-01-01T00:00:10.777Z"}`, `{"kid":"b"}`} {
		e := fx.Events[i]
		if e.At != 10_000 || e.Actor.ID != "ann" || e.RequestID != "q" || e.Namespace != "" || e.Class != nil || e.AttemptIndex != -1 {
			t.Errorf("%+v", e)
		}
		if got := string(e.Data.JSON()); got != want {
			t.Errorf("%s: %s, want %s", e.Kind, got, want)
		}
	}
}

// sameText compares data by what readers see.
func sameText(a, b eventdata.Data) bool { return string(a.JSON()) == string(b.JSON()) }
