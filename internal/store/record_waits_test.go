package store

import (
	"reflect"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestW36_waits_travel_with_the_record_and_cost_nothing_when_there_are_none(t *testing.T) {
	t.Parallel()
	x := runningExecution()
	plain := RowOf(x)
	x.Waits = &core.Waits{
		Signals: 3, TimeoutSignals: 1, Suspensions: 2,
		Open:       []core.OpenWaitpoint{{ID: base.UUID{1}, Key: "a", Active: true}, {ID: base.UUID{2}, Key: "b", ExpiresAt: 9}},
		Suspension: &core.OpenSuspension{Seq: 2, ID: base.UUID{3}, At: 4, TimeoutAt: 8, Behavior: "fail", ReasonCode: "manual_pause"},
	}
	with := RowOf(x)
	differ := 0
	for i := range plain.State[:len(plain.State)-sumSize] {
		if plain.State[i] != with.State[i] {
			differ++
		}
	}
	if differ != 1 { // the bit that says that waits follow
		t.Fatalf("%d bytes differ between\n%x\n%x", differ, plain.State, with.State)
	}
	back, err := with.Execution(x.Class, nil)
	if err != nil || !reflect.DeepEqual(x.Waits, back.Waits) {
		t.Fatalf("%+v is read as %+v: %v", x.Waits, back.Waits, err)
	}
	before, err := plain.Execution(x.Class, nil)
	if err != nil || before.Waits != nil {
		t.Fatalf("%+v, %v", before, err)
	}
	for cut := 1; cut <= len(with.State)-len(plain.State); cut++ {
		broken := with
		broken.State = with.State[:len(with.State)-cut]
		if _, err := broken.Execution(x.Class, nil); base.CodeOf(err) != base.CodeCorruption {
			t.Fatalf("W10: %d bytes fewer: %v", cut, err)
		}
	}
}
