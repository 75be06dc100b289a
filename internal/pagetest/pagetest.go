// Package pagetest compares pages of the documentation that are made from code with what the code says. It does not know what
// stands on them.
package pagetest

import (
	"os"
	"testing"
)

// Same fails the test unless the file holds just this text. With update it is written first.
func Same(t testing.TB, path, want string, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != want {
		t.Errorf("%s is not what the code says: run make docs", path)
	}
}
