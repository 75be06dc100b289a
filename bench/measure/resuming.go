package measure

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/workapi"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// Resuming takes the times of executions that suspend for a signal (U254). The signal is sent, with the token, as soon as the
// suspension is acknowledged.
type Resuming struct {
	SuspendToRunning   Durations // from sending the suspend to the call of the handler that goes on
	SuspendToCompleted Durations // to the acknowledged completion
	SignalToRunning    Durations // from sending the signal to that call

	Resumed   atomic.Int64 // calls of the handler that went on
	Completed atomic.Int64

	client *flowfabric.Client
	rounds sync.Map // of *resumeRound by execution
	failed atomic.Pointer[error]
}

// resumeRound is one execution on its way.
type resumeRound struct {
	mu                sync.Mutex
	suspended, called time.Time // when the suspend and the signal were sent
}

// NewResuming watches what workers of Client do.
func NewResuming(c *flowfabric.Client) *Resuming { return &Resuming{client: c} }

// Client is the client that the workers are to use.
func (r *Resuming) Client() *flowfabric.Client {
	return flowfabric.WrapWork(r.client, resumingWork{r.client.Work(), r}.Do)
}

// Err is the first signal that was refused.
func (r *Resuming) Err() error {
	if failed := r.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

const resumeKey = "go"

// Handle suspends until the signal comes. It is the handler of the work.
func (r *Resuming) Handle(ctx context.Context, task *flowfabric.Task, _ []byte) (flowfabric.None, error) {
	if _, resumed := task.Resumed(); resumed {
		r.running(task.ID())
	}
	_, err := task.TrySuspend(ctx, flowfabric.Suspension{
		Key: resumeKey, Waitpoints: []flowfabric.Binding{flowfabric.NewWaitpoint(resumeKey)}, Until: flowfabric.OnSignal(resumeKey, resumeKey),
	})
	return flowfabric.None{}, err
}

func (r *Resuming) round(id flowfabric.ID) *resumeRound {
	round, _ := r.rounds.LoadOrStore(id, &resumeRound{})
	return round.(*resumeRound)
}

func (r *Resuming) running(id flowfabric.ID) {
	now, round := time.Now(), r.round(id)
	round.mu.Lock()
	defer round.mu.Unlock()
	r.SuspendToRunning.Add(now.Sub(round.suspended))
	r.SignalToRunning.Add(now.Sub(round.called))
	r.Resumed.Add(1)
}

// signal sends the signal.
func (r *Resuming) signal(ctx context.Context, id flowfabric.ID, w flowfabric.Waitpoint, suspended time.Time) {
	round := r.round(id)
	round.mu.Lock()
	round.suspended, round.called = suspended, time.Now()
	round.mu.Unlock()
	receipt, err := r.client.Signal(ctx, flowfabric.Signal{WaitpointID: w.ID, Token: w.Token, Name: resumeKey})
	if err == nil && receipt.Outcome != "accepted" {
		err = errors.New("the signal was not accepted: " + receipt.Outcome)
	}
	if err != nil {
		r.failed.CompareAndSwap(nil, &err)
	}
}

type resumingWork struct {
	work workapi.Work
	r    *Resuming
}

// Do looks at suspensions and completions.
func (w resumingWork) Do(ctx context.Context, items ...api.WorkItem) ([]api.WorkAnswer, error) {
	sent := time.Now()
	answers, err := w.work.Do(ctx, items...)
	for i := range answers {
		switch answer, id := &answers[i], items[i].ID; {
		case answer.Err != nil:
		case items[i].Op == api.OpSuspend && answer.Outcome == "suspended":
			go w.r.signal(context.WithoutCancel(ctx), id, answer.Waitpoints[0], sent)
		case items[i].Op == api.OpComplete:
			round := w.r.round(id)
			round.mu.Lock()
			w.r.SuspendToCompleted.Add(time.Since(round.suspended))
			round.mu.Unlock()
			w.r.rounds.Delete(id)
			w.r.Completed.Add(1)
		}
	}
	return answers, err
}
