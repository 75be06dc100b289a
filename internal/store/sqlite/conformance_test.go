package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	_ "modernc.org/sqlite" // for transactions of a user's own

	"github.com/flowfabric/flowfabric/internal/store"
	"github.com/flowfabric/flowfabric/internal/store/storetest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(victimFile); path != "" {
		fmt.Println(victim(path)) // it is killed before it returns, unless something failed
		return
	}
	goleak.VerifyTestMain(m)
}

// open opens a file and closes the store when the test ends.
func open(t testing.TB, path string, cfg Config) *Store {
	t.Helper()
	s, err := Open(context.Background(), path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func file(t testing.TB) string { return filepath.Join(t.TempDir(), "store.db") }

// quick gives up waiting soon and syncs nothing.
func quick() Config { return Config{UnsafeDurability: true, BusyTimeout: 200 * time.Millisecond} }

// failOver keeps a copy of the file and of its log as they are, and goes on with them.
func failOver(t *testing.T) storetest.Fallible {
	s, mark := open(t, file(t), quick()), t.TempDir()
	parts := []string{"", "-wal"}
	return storetest.Fallible{
		Store: s,
		Mark:  func() { copyParts(t, s.path, filepath.Join(mark, "mark"), parts) },
		Fall: func() store.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			copyParts(t, filepath.Join(mark, "mark"), s.path, parts)
			return open(t, s.path, quick())
		},
	}
}

// copyParts copies files whose names have the same beginning.
func copyParts(t *testing.T, from, to string, parts []string) {
	t.Helper()
	for _, part := range parts {
		data, err := os.ReadFile(from + part)
		if err == nil {
			err = os.WriteFile(to+part, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Factory{
		Open: func(t *testing.T) store.Store { return open(t, file(t), quick()) },
		Reopen: func(t *testing.T, s store.Store) store.Store {
			old := s.(*Store)
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, old.path, quick())
		},
		OwnTx: func(t *testing.T, s store.Store) (any, func() error, func() error) {
			db, err := sql.Open("sqlite", s.(*Store).path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			return tx, tx.Commit, tx.Rollback
		},
		OpenCopy: func(t *testing.T, path string) store.Store { return open(t, path, quick()) },
		FailOver: failOver,
	})
}
