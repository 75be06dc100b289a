package scenario

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/workapi"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/bench/measure"
)

// observed is a client that counts what workers ask of it. It changes nothing.
type observed struct {
	*flowfabric.Client
	work observedWork
}

func observe(c *flowfabric.Client) *observed {
	o := &observed{}
	o.work.work, o.work.base = c.Work(), time.Now()
	o.Client = flowfabric.WatchWork(flowfabric.WrapWork(c, o.work.send), o.work.answered)
	return o
}

// observedWork is the worker protocol with a tally.
type observedWork struct {
	work workapi.Work
	base time.Time

	registered  atomic.Int64
	emptyClaims atomic.Int64
	completed   atomic.Int64 // acknowledged
	lastEnd     atomic.Int64 // when the last of them was acknowledged, since base
	completes   atomic.Pointer[measure.Durations]
	hear        atomic.Pointer[func(flowfabric.ID)] // is called for every acknowledged completion; nil: it is not called
}

// answered counts registrations, and claims that bring nothing.
func (w *observedWork) answered(answer any) {
	switch a := answer.(type) {
	case *api.RegisterResult:
		w.registered.Add(1)
	case *api.ClaimAnswer:
		if len(a.Tasks) == 0 {
			w.emptyClaims.Add(1)
		}
	}
}

// send counts completions and measures how long their acknowledgement takes.
func (w *observedWork) send(ctx context.Context, items ...api.WorkItem) ([]api.WorkAnswer, error) {
	began := time.Now()
	answers, err := w.work.Do(ctx, items...)
	for i, answer := range answers {
		if items[i].Op == api.OpComplete && answer.Err == nil {
			if all := w.completes.Load(); all != nil {
				all.Add(time.Since(began))
			}
			w.lastEnd.Store(int64(time.Since(w.base)))
			if hear := w.hear.Load(); hear != nil {
				(*hear)(items[i].ID)
			}
			w.completed.Add(1)
		}
	}
	return answers, err
}

// ended is when the last completion was acknowledged.
func (w *observedWork) ended() time.Time { return w.base.Add(time.Duration(w.lastEnd.Load())) }
