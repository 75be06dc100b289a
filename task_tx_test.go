package flowfabric_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of a user's own transactions

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
)

// books is a table of the user's in the database of the store.
type books struct{ db *sql.DB }

func openBooks(t testing.TB, w *world) *books {
	t.Helper()
	driver, address := "pgx", w.url
	if path, found := strings.CutPrefix(w.url, "sqlite:"); found {
		driver, address = "sqlite", path+"?_txlock=immediate&_pragma=busy_timeout(5000)"
	}
	db := must[*sql.DB](t)(sql.Open(driver, address))
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(inTime(t), "create table own_note (note text not null)"); err != nil {
		t.Fatal(err)
	}
	return &books{db}
}

// in runs f in a transaction, which is committed iff f returns nil.
func (b *books) in(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func note(ctx context.Context, tx *sql.Tx, text string) error {
	_, err := tx.ExecContext(ctx, "insert into own_note (note) values ('"+text+"')")
	return err
}

func (b *books) count(t testing.TB, text string) (n int) {
	t.Helper()
	if err := b.db.QueryRowContext(inTime(t), "select count(*) from own_note where note = '"+text+"'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

var tries = flowfabric.Policy{Retry: &flowfabric.RetryPolicy{MaxRetries: 5, Backoff: flowfabric.Backoff{Initial: time.Millisecond, Max: time.Millisecond}}}

func TestU137_a_handler_commits_its_rows_and_its_result_together(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, own := inTime(t), openBooks(t, w)
		var calls atomic.Int32
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, double, func(ctx context.Context, task *flowfabric.Task, in int) (int, error) {
				calls.Add(1)
				return -1, own.in(ctx, func(tx *sql.Tx) error {
					return errors.Join(note(ctx, tx, "done"), embedded.CompleteSQLTx(ctx, tx, task, 2*in))
				})
			})
		})
		run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 21, flowfabric.SubmitOptions{Policy: &tries}))
		if got, err := run.Result(ctx); err != nil || got != 42 {
			t.Fatalf("Result = %d, %v", got, err)
		}
		if n := own.count(t, "done"); n != 1 || calls.Load() != 1 {
			t.Errorf("%d rows after %d calls", n, calls.Load())
		}
	})
}

func TestU137_what_is_rolled_back_has_not_ended_the_work(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, own := inTime(t), openBooks(t, w)
		errBack := errors.New("back")
		var returns atomic.Pointer[error]
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, double, func(ctx context.Context, task *flowfabric.Task, in int) (int, error) {
				err := own.in(ctx, func(tx *sql.Tx) error {
					return errors.Join(note(ctx, tx, "back"), embedded.CompleteSQLTx(ctx, tx, task, in), errBack)
				})
				if !errors.Is(err, errBack) {
					return 0, err
				}
				return 0, *returns.Load()
			})
		})
		for _, c := range []struct {
			returns  error
			category string
		}{{nil, "not_committed"}, {flowfabric.ErrParked, "not_committed"}, {errBack, "handler_error"}} {
			returns.Store(&c.returns)
			run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 1, flowfabric.SubmitOptions{Policy: &flowfabric.Policy{Retry: flowfabric.NoRetry()}}))
			_, err := run.Result(ctx)
			var failed *flowfabric.ExecutionError
			if !errors.As(err, &failed) || failed.Failure == nil || failed.Failure.Category != c.category {
				t.Errorf("a handler that rolled back and returned %v: %v", c.returns, err)
			}
		}
		if n := own.count(t, "back"); n != 0 {
			t.Errorf("%d rows of transactions that were rolled back", n)
		}
	})
}

func TestU137_a_step_inside_a_transaction_has_its_effects_once(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, own := inTime(t), openBooks(t, w)
		var calls atomic.Int32
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, double, func(ctx context.Context, task *flowfabric.Task, in int) (int, error) {
				call := calls.Add(1)
				var sum int
				err := own.in(ctx, func(tx *sql.Tx) error {
					for _, name := range []string{"first", "second"} {
						got, err := embedded.StepSQLTx(ctx, tx, task, name, func(ctx context.Context) (int, error) { return in, note(ctx, tx, name) })
						if err != nil {
							return err
						}
						sum += got
					}
					if call == 1 {
						return errors.New("rolled back")
					}
					return nil
				})
				if err != nil || call == 2 {
					return 0, errors.Join(err, errors.New("again"))
				}
				return sum, nil
			})
		})
		run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 4, flowfabric.SubmitOptions{Policy: &tries}))
		if got, err := run.Result(ctx); err != nil || got != 8 {
			t.Fatalf("Result = %d, %v", got, err)
		}
		if own.count(t, "first") != 1 || own.count(t, "second") != 1 || calls.Load() != 3 {
			t.Errorf("%d and %d rows after %d calls", own.count(t, "first"), own.count(t, "second"), calls.Load())
		}
	})
}

func TestU137_steps_a_submit_and_the_ending_share_a_transaction(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, own := inTime(t), openBooks(t, w)
		next := make(chan flowfabric.ID, 1)
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, echo, func(_ context.Context, _ *flowfabric.Task, in flowfabric.Payload) (flowfabric.Payload, error) {
				return in, nil
			})
			flowfabric.Handle(worker, double, func(ctx context.Context, task *flowfabric.Task, in int) (int, error) {
				return 0, own.in(ctx, func(tx *sql.Tx) error {
					for _, name := range []string{"one", "two"} {
						if _, err := embedded.StepSQLTx(ctx, tx, task, name, func(ctx context.Context) (int, error) { return 1, note(ctx, tx, name) }); err != nil {
							return err
						}
					}
					x, err := embedded.SubmitSQLTx(ctx, w.Client, tx, echo.Submission(flowfabric.Text("next")))
					if err != nil {
						return err
					}
					select {
					case next <- x.ID:
					default:
						t.Errorf("the handler ran twice: attempt %+v", task.Attempt())
					}
					if err := embedded.CompleteSQLTx(ctx, tx, task, 2*in); err != nil {
						return err
					}
					if err := embedded.CompleteSQLTx(ctx, tx, task, in); flowfabric.CodeOf(err) != "execution_not_active" {
						t.Errorf("a second ending in the transaction: %v", err)
					}
					return nil
				})
			})
		})
		run := must[*flowfabric.Run[int]](t)(double.Submit(ctx, w.Client, 3))
		if got, err := run.Result(ctx); err != nil || got != 6 {
			t.Fatalf("Result = %d, %v", got, err)
		}
		steps := must[[]api.StepRecord](t)(w.Executions().Steps(ctx, run.ID()))
		if len(steps) != 2 || steps[0].Name != "one" || steps[1].Name != "two" {
			t.Errorf("steps: %+v", steps)
		}
		if got, err := flowfabric.Attach[string](w.Client, <-next).Result(ctx); err != nil || got != "next" {
			t.Errorf("what was submitted beside it: %q, %v", got, err)
		}
	})
}

func TestU137_U139_a_wait_inside_a_transaction_begins_with_its_commit(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, own := inTime(t), openBooks(t, w)
		tokens := make(chan *flowfabric.Waitpoint, 10)
		early := make(chan bool, 2)
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, echo, func(ctx context.Context, task *flowfabric.Task, _ flowfabric.Payload) (flowfabric.Payload, error) {
				at, err := task.NewWaitpoint(ctx, "answer")
				if err != nil {
					return flowfabric.Payload{}, err
				}
				if _, resumed := task.Resumed(); !resumed && task.Lease().Epoch == 1 {
					tokens <- at
					<-early
				}
				var over *flowfabric.Resume
				err = own.in(ctx, func(tx *sql.Tx) (err error) {
					over, err = embedded.SuspendSQLTx(ctx, tx, task, flowfabric.Suspension{
						Key: "wait", Waitpoints: []flowfabric.Binding{flowfabric.ExistingWaitpoint(at)}, Until: flowfabric.OnSignal("answer", ""), Timeout: time.Hour,
					})
					if err != nil || over != nil {
						return err
					}
					return note(ctx, tx, "waits")
				})
				switch {
				case err != nil:
					return flowfabric.Payload{}, err
				case over == nil:
					return flowfabric.Payload{}, flowfabric.ErrParked
				case len(over.Signals) != 1:
					return flowfabric.Payload{}, flowfabric.Permanent(errors.New("other signals"))
				}
				return over.Signals[0].Payload, nil
			})
		})
		for i, before := range []bool{false, true} {
			run := must[*flowfabric.Run[flowfabric.Payload]](t)(echo.Submit(ctx, w.Client, flowfabric.Text("x")))
			at := <-tokens
			if before { // it comes before the wait begins
				w.signals(t, at, "go", flowfabric.Text("said"))
				early <- true
			} else {
				early <- true
				w.suspended(t, run.ID())
				w.signals(t, at, "go", flowfabric.Text("said"))
			}
			if got, err := run.Result(ctx); err != nil || string(got.Data) != "said" {
				t.Fatalf("Result = %q, %v", got.Data, err)
			}
			if n := own.count(t, "waits"); n != i+1 {
				t.Errorf("%d rows after %d waits", n, i+1)
			}
		}
	})
}
