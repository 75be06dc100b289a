package main

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestU235_hello_charges_and_prints_a_receipt(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
}
