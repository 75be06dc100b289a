package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// lagging is a store whose commits are safe when the test says so.
type lagging struct {
	store.Store
	mu    sync.Mutex
	lags  func(*store.Changes) bool // with which commits it lags; nil: with none
	later []func(error)
}

func (l *lagging) Begin(ctx context.Context, want store.Want) (store.Tx, *store.Loaded, error) {
	tx, loaded, err := l.Store.Begin(ctx, want)
	return laggingTx{tx, l}, loaded, err
}

// wait delays what is reported.
func (l *lagging) wait(ch *store.Changes, safe func(error)) func(error) {
	return func(err error) {
		l.mu.Lock()
		if l.lags != nil && l.lags(ch) {
			l.later = append(l.later, safe)
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		safe(err)
	}
}

// lag makes the disk lag from now on, with these commits.
func (l *lagging) lag(with func(*store.Changes) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lags = with
}

func everything(*store.Changes) bool { return true }
func submits(ch *store.Changes) bool { return len(ch.Insert) > 0 }
func endings(ch *store.Changes) bool { return len(ch.History) > 0 }

// waits is how many transactions have not been answered.
func (l *lagging) waits() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.later)
}

// catchUp tells how they went.
func (l *lagging) catchUp(err error) {
	l.mu.Lock()
	later := l.later
	l.later, l.lags = nil, nil
	l.mu.Unlock()
	for _, safe := range later {
		safe(err)
	}
}

type laggingTx struct {
	store.Tx
	l *lagging
}

func (t laggingTx) Commit(ctx context.Context, ch *store.Changes) error {
	told := ch.Safe
	defer func() { ch.Safe = told }()
	if told != nil {
		ch.Safe = t.l.wait(ch, told)
	}
	return t.Tx.Commit(ctx, ch)
}

func (t laggingTx) Seen(safe func(error)) { t.Tx.Seen(t.l.wait(&store.Changes{}, safe)) }

// onLagging runs a test on stores whose disk lags on demand.
func onLagging(t *testing.T, f func(t *testing.T, w *world, disk *lagging)) {
	t.Helper()
	onStores(t, func(t *testing.T, w *world) {
		w.submit(core.Submission{}) // its class is known
		closeEngine(t, w.e)
		disk := &lagging{Store: w.store}
		w.store = disk
		w.e = w.openEngine(disk)
		t.Cleanup(func() { disk.catchUp(nil) }) // the engine could not stop otherwise
		w.take(ask())
		f(t, w, disk)
	})
}

// submitting submits beside the test.
func (w *world) submitting(s core.Submission) (answer <-chan engine.SubmitAnswer, failed <-chan error) {
	s.Kind = "k"
	answered, refused := make(chan engine.SubmitAnswer, 1), make(chan error, 1)
	go func() {
		got, err := w.e.Submit(w.ctx(), client, s)
		if err != nil {
			refused <- err
			return
		}
		answered <- got
	}()
	return answered, refused
}

func TestI1_what_could_still_be_lost_is_not_answered_and_the_next_transaction_does_not_wait_for_it(t *testing.T) {
	t.Parallel()
	onLagging(t, func(t *testing.T, w *world, disk *lagging) {
		disk.lag(everything)
		again := core.Submission{Lane: "default", IdempotencyKey: "once"}
		submitted, _ := w.submitting(again)
		eventually(t, "it is committed", func() bool { return disk.waits() >= 1 })
		repeated, _ := w.submitting(again)
		eventually(t, "it was found", func() bool { return disk.waits() >= 2 })
		claimed := w.claiming(ask())
		eventually(t, "it is leased", func() bool { return disk.waits() >= 3 })
		if len(submitted)+len(repeated)+len(claimed) != 0 {
			t.Fatal("somebody was told")
		}
		disk.catchUp(nil)
		first, second, taken := <-submitted, <-repeated, <-claimed
		same(t, "the same", second.ID, first.ID)
		same(t, "claimed", taken.Tasks[0].Execution.ID, first.ID)
	})
}

func TestI1_when_it_is_not_known_whether_it_was_lost_the_outcome_is_unknown(t *testing.T) {
	t.Parallel()
	onLagging(t, func(t *testing.T, w *world, disk *lagging) {
		disk.lag(submits)
		_, failed := w.submitting(core.Submission{})
		eventually(t, "it is committed", func() bool { return disk.waits() >= 1 })
		disk.catchUp(&store.Fault{Kind: store.Unknown, Err: errors.New("the disk is torn")})
		same(t, "code", base.CodeOf(<-failed), base.CodeTimeout)
	})
}
