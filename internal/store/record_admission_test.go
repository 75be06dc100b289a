package store

import (
	"encoding/hex"
	"reflect"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// admittedExecution is one that runs under budgets and rates.
func admittedExecution() *core.Execution {
	x := runningExecution()
	x.Holds = []string{"slots:api"}
	x.Reservation = &core.Reservation{
		Holds: []core.BudgetHold{{Budget: base.UUID{1}, Remaining: map[string]int64{core.CostMicros: 5000, "calls": 1}}, {Budget: base.UUID{2}}},
		Rates: []core.RateAdmission{{Key: "rate:api/eu", At: x.CreatedAt + 5}},
	}
	x.Budgets = []core.ScopedBudget{{ID: base.UUID{1}, Scope: core.ScopeExecution, Ancestors: []base.UUID{{3}, {4}}}, {ID: base.UUID{2}, Scope: core.ScopeFlow}, {ID: base.UUID{5}, Scope: core.ScopeFlow, Depth: 3}}
	x.Usage = map[string]int64{core.InputTokens: 12, core.OutputTokens: 7, core.WallMS: 1500}
	x.Attempt.Usage = map[string]int64{core.InputTokens: 12}
	x.RetryAt, x.WallHoldAt = x.CreatedAt+60_000, x.CreatedAt+9000
	return x
}

func TestB10_what_admission_took_travels_with_the_record_and_costs_nothing_when_there_is_nothing(t *testing.T) {
	t.Parallel()
	x := admittedExecution()
	with := RowOf(x)
	back, err := with.Execution(x.Class, nil)
	if err != nil || !reflect.DeepEqual(x, back) {
		t.Fatalf("wrote\n%s\nread\n%s\n%v", show(x), show(back), err)
	}
	for cut := 1; cut < len(with.State); cut++ {
		broken := with
		broken.State = with.State[:len(with.State)-cut]
		if _, err := broken.Execution(x.Class, nil); base.CodeOf(err) != base.CodeCorruption {
			t.Fatalf("%d bytes fewer: %v", cut, err)
		}
	}
	x.Reservation, x.Budgets, x.Usage, x.RetryAt, x.WallHoldAt, x.Holds, x.Attempt.Usage = nil, nil, nil, 0, 0, nil, nil
	if state := unsealed(t, RowOf(x).State); hex.EncodeToString(state) != stateBefore {
		t.Fatalf("a record without any of it is\n%x\nand was\n%s", state, stateBefore)
	}
}

// unsealed is a record as it was before there were checksums.
func unsealed(t testing.TB, record []byte) []byte {
	t.Helper()
	plain, ok := unseal(record)
	if !ok {
		t.Fatalf("%x is damaged", record)
	}
	plain = slices.Clone(plain)
	plain[0] &^= sealed
	return plain
}

// Bytes that were written before there was admission.
const (
	originBefore = "0180b083c598680108636c69656e742d37021a"
	stateBefore  = "0100010a0a00ead403c4d5030201050000000000000000000000000000000101020300000000000000000000000000ead4030ae0d4039f8080100208" +
		"637573746f6d6572043437313106726567696f6e0265750a0a08776f726b65722d3115776f726b65722d3140686f73742d31372d343234320a0c722d" +
		"3132333435363738393000000001010a00020202"
	historyBefore = "010008776f726b65722d3115776f726b65722d3140686f73742d31372d34323432dfd4030101020300000000000000000000000000000101dfd40300" +
		"0202"
)

func TestRows_that_were_written_before_there_was_admission_are_read(t *testing.T) {
	t.Parallel()
	x := runningExecution()
	row := Row{
		ID: x.ID.UUID, N: x.ID.N, Class: x.Class.ID, Status: x.Status, Order: x.OrderKey, Input: x.Input.Data,
		Origin: unhex(t, originBefore), State: unhex(t, stateBefore),
	}
	back, err := row.Execution(x.Class, nil)
	if err != nil || !reflect.DeepEqual(x, back) {
		t.Fatalf("wrote\n%s\nread\n%s\n%v", show(x), show(back), err)
	}
	want := core.LeaseRecord{
		ExecutionID: x.ID, Epoch: 1, LeaseID: x.Lease.ID, Attempt: *x.Attempt, WorkerID: x.Lease.WorkerID, InstanceID: x.Lease.InstanceID,
		AcquiredAt: x.Lease.AcquiredAt, EndedAt: x.Lease.ExpiresAt, End: core.EndExpired,
	}
	old := HistoryRow{ID: x.ID.UUID, Epoch: 1, LeaseID: want.LeaseID, EndedAt: want.EndedAt, End: want.End, Body: unhex(t, historyBefore)}
	rec, err := old.Record(x.ID)
	if err != nil || !reflect.DeepEqual(want, rec) {
		t.Fatalf("wrote\n%s\nread\n%s\n%v", show(want), show(rec), err)
	}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
