package pgtest_test

import (
	"bufio"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

// readSocket reads the line in which the victim tells where its server is.
func readSocket(t *testing.T, out io.Reader) string {
	t.Helper()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if socket, found := strings.CutPrefix(lines.Text(), "socket="); found {
			return socket
		}
	}
	t.Fatalf("the victim said nothing: %v", lines.Err())
	return ""
}

// waitGone waits until a directory is removed.
func waitGone(t *testing.T, directory string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	bound := time.NewTimer(5 * time.Minute)
	defer bound.Stop()
	for {
		if _, err := os.Stat(directory); os.IsNotExist(err) {
			return
		}
		select {
		case <-tick.C:
		case <-bound.C:
			t.Fatalf("%s is still there", directory)
		}
	}
}
