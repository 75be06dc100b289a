package memory

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a handle that is closed when the test ends.
func open(t testing.TB, d *Database) *Store {
	t.Helper()
	s := d.Open(Process{})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func failOver(t *testing.T) storetest.Fallible {
	d := New(Config{})
	s := open(t, d)
	var mark Image
	return storetest.Fallible{
		Store: s,
		Mark:  func() { mark = d.Image() },
		Fall:  func() store.Store { d.Fall(mark); return s },
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Factory{
		Open:      func(t *testing.T) store.Store { return open(t, New(Config{})) },
		OpenAgain: func(t *testing.T, s store.Store) store.Store { return open(t, s.(*Store).d) },
		Reopen: func(t *testing.T, s store.Store) store.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, s.(*Store).d)
		},
		OwnTx: func(_ *testing.T, s store.Store) (any, func() error, func() error) {
			tx := s.(*Store).d.BeginOwn()
			return tx, tx.Commit, tx.Rollback
		},
		FailOver: failOver,
	})
}
