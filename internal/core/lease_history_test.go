package core

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestL40_every_entry_that_left_the_history_is_in_one_lot(t *testing.T) {
	t.Parallel()
	looked := int64(0)
	for epoch := int64(1); epoch <= 5000; epoch++ {
		after, upTo, due := HistoryLot(epoch)
		floor := (&Execution{LeaseEpoch: epoch}).HistoryFloor()
		if due {
			if after != looked || upTo <= after || upTo > floor {
				t.Fatalf("epoch %d: (%d, %d] after (0, %d], floor %d", epoch, after, upTo, looked, floor)
			}
			looked = upTo
		}
		if kept := epoch - looked; kept >= MaxLeaseHistory+historyLot {
			t.Fatalf("epoch %d: %d entries are kept", epoch, kept)
		}
	}
	if floor := (&Execution{LeaseEpoch: MaxLeaseHistory}).HistoryFloor(); floor != 0 {
		t.Errorf("the first entry leaves a history of %d", MaxLeaseHistory)
	}
}

func TestL40_a_fence_whose_epoch_has_left_the_history_is_stale(t *testing.T) {
	t.Parallel()
	x := &Execution{LeaseEpoch: 1001, LastLease: &LastLease{ID: base.UUID{2}, Epoch: 1001, AttemptID: base.UUID{3}}}
	for epoch, want := range map[int64]bool{1: false, 2: true, 1001: true} {
		if x.NeedsRecord(Fence{LeaseID: base.UUID{1}, Epoch: epoch, AttemptID: base.UUID{3}}) != want {
			t.Errorf("the entry of epoch %d is looked for: %v", epoch, !want)
		}
	}
}
