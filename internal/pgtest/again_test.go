package pgtest_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/flowfabric/flowfabric/internal/pgtest"
)

func TestA_server_that_has_crashed_is_started_again_with_what_was_committed(t *testing.T) {
	t.Parallel()
	server, url := pgtest.Fallible(t, nil)
	if _, err := connect(t, url).Exec(t.Context(), "create table kept (n int); insert into kept values (1)"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(server.Data(), "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil { // at once, without a checkpoint
		t.Fatal(err)
	}
	if err := server.Again(t.Context()); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := connect(t, url).QueryRow(t.Context(), "select n from kept").Scan(&n); err != nil || n != 1 {
		t.Errorf("n = %d, %v", n, err)
	}
}
