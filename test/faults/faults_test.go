package faults

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// scenario is an operation with what must be there before it. call is sent again, unchanged, until it is answered.
type scenario struct {
	name  string
	setup func(r *try) (call func() (any, error))
	again base.Code // the answer to a repeat where that cannot be the first one's, "" otherwise
}

// mostCalls is more than any operation needs.
const mostCalls = 100

func TestEveryOperationSurvivesAFaultInAnyOfItsStoreCalls(t *testing.T) {
	t.Parallel()
	onStores(t, scenarios(), deadlock, dropped, lost)
}

func TestTimersSurviveAFaultInAnyStoreCallOfTheSweep(t *testing.T) {
	t.Parallel()
	onStores(t, timed(), dropped, lost) // the engine tries again by itself after a deadlock, as in every operation
}

func onStores(t *testing.T, all []scenario, kinds ...fault) {
	t.Helper()
	for name, open := range map[string]opener{"sqlite": onSQLite, "postgres": onPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, open)
			number := 0
			for _, s := range all {
				number = w.sweepCalls(t, s, number, kinds)
			}
			w.sound()
			t.Logf("%d runs", number)
		})
	}
}

// sweepCalls runs a scenario without a fault, and then with one in its n-th call for every n and every kind of fault.
func (w *world) sweepCalls(t *testing.T, s scenario, number int, kinds []fault) int {
	t.Helper()
	number++
	want, _ := play(t, s, w.try(number), 0, "")
	for _, kind := range kinds {
		for n := 1; ; n++ {
			if n > mostCalls {
				t.Fatalf("%s: still calls the store after %d calls", s.name, mostCalls)
			}
			number++
			got, reached := play(t, s, w.try(number), n, kind)
			if reached == "" {
				break
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, call %d (%s) failed %s (-without +with the fault):\n%s", s.name, n, reached, kind, diff)
			}
		}
	}
	return number
}

// play runs a scenario once with a fault in the n-th call of its operation, and tells what it leaves behind and which call failed.
func play(t *testing.T, s scenario, r *try, n int, kind fault) (remains []string, reached string) {
	t.Helper()
	call := s.setup(r)
	r.rest()
	r.faults.arm(n, kind)
	answer, err := r.drive(call)
	for tries := 0; unanswered(err); tries++ {
		if tries == 10 {
			t.Fatalf("%s: not answered after %d tries: %v", s.name, tries, err)
		}
		r.host.Step(time.Second) // pauses after a failure are over
		answer, err = r.drive(call)
	}
	r.rest()
	reached = r.faults.disarm()
	if err != nil {
		if base.CodeOf(err) != s.again || reached == "" {
			t.Fatalf("%s, call %d (%s) failed %s: %v", s.name, n, reached, kind, err)
		}
		answer = nil
	}
	r.sweep()
	defer r.end()
	return r.remains(plain(answer)), reached
}

// unanswered reports whether an error leaves open what happened, or says that a repeat may help.
func unanswered(err error) bool {
	switch base.CodeOf(err) {
	case base.CodeStoreUnavailable, base.CodeTimeout, base.CodeIdempotencyInProgress, base.CodeOverloaded:
		return true
	default:
		return false
	}
}

// plain takes out of an answer what tells the first call from a repeat.
func plain(answer any) any {
	text, err := json.Marshal(answer)
	if err != nil {
		return err.Error()
	}
	var fields any
	if err := json.Unmarshal(text, &fields); err != nil {
		return err.Error()
	}
	forget(fields)
	return fields
}

func forget(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range []string{"Repeated", "Outcome"} {
			delete(v, name)
		}
		for _, inner := range v {
			forget(inner)
		}
	case []any:
		for _, inner := range v {
			forget(inner)
		}
	}
}
