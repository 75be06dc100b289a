package sqlite

import (
	"context"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestU137_the_listener_hears_of_a_submission_when_its_transaction_is_committed(t *testing.T) {
	t.Parallel()
	s := open(t, file(t), quick())
	ctx, stop := context.WithCancel(t.Context())
	heard, ended := make(chan store.Hint, 10), make(chan error, 1)
	go func() { ended <- s.Listen(ctx, func(hint store.Hint) { heard <- hint }) }()
	submit := func(id byte) (commit, rollback func() error) {
		t.Helper()
		tx := beginOwn(t, s)
		row := store.InboxRow{ID: base.IDOf(base.UUID{id}), Body: []byte("body")}
		if existing, err := s.SubmitTx(ctx, tx, nil, row); existing != nil || err != nil {
			t.Fatalf("SubmitTx: %v, %v", existing, err)
		}
		return tx.Commit, tx.Rollback
	}
	_, rollback := submit(1)
	if err := rollback(); err != nil {
		t.Fatal(err)
	}
	for id := byte(2); id < 5; id++ {
		commit, _ := submit(id)
		select {
		case hint := <-heard:
			t.Fatalf("heard %+v before the commit", hint)
		case <-time.After(time.Duration(id) * 20 * time.Millisecond):
		}
		if err := commit(); err != nil {
			t.Fatal(err)
		}
		select {
		case hint := <-heard:
			if !hint.Inbox {
				t.Errorf("heard %+v", hint)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("nothing was heard")
		}
	}
	stop()
	if err := <-ended; err == nil {
		t.Error("Listen ended without the error of its context")
	}
}
