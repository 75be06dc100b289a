package engine_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

const (
	countedUps   = 600
	countedDowns = 400
	endsByRead   = 24 // so many members may end before a reader looks again
)

// countedFlow is a flow of a thousand members that run, of which every tenth of the first fails.
func countedFlow() core.FlowSubmission {
	s := core.FlowSubmission{Kind: "counted"}
	for i := range countedUps {
		node := core.FlowNode{Name: fmt.Sprintf("up%03d", i), Kind: "good"}
		if i%10 == 0 {
			node.Kind = "bad"
		}
		s.Nodes = append(s.Nodes, node)
	}
	for i := range countedDowns {
		s.Nodes = append(s.Nodes, core.FlowNode{Name: fmt.Sprintf("down%03d", i), Kind: "good", After: []string{fmt.Sprintf("up%03d", i), fmt.Sprintf("up%03d", i+200)}})
	}
	return s
}

// pace lets members end as readers come along, so that each of them looks many times while others are about to end.
type pace struct {
	allowed chan struct{}
	left    atomic.Int64
	over    chan struct{} // closed when all have ended
}

// allow lets so many members end. The last of them may be at it when it returns.
func (p *pace) allow() {
	for range endsByRead {
		select {
		case p.allowed <- struct{}{}:
		case <-p.over:
		}
	}
}

// work works off what comes, as fast as it is allowed to.
func (p *pace) work(ctx context.Context, w *world, e *engine.Engine) {
	for ctx.Err() == nil {
		r := ask()
		r.Max, r.Wait = 20, 20*time.Second
		got, err := e.Claim(ctx, client, r)
		if err != nil && ctx.Err() == nil {
			w.t.Errorf("claim: %v", err)
		}
		for _, task := range got.Tasks {
			end := succeeds
			if task.Execution.Class.Kind == "bad" {
				end = fails
			}
			select {
			case <-p.allowed:
			case <-ctx.Done():
				return
			}
			if err := untilKnown(ctx, func() error { return end(e, w, task) }); err != nil {
				w.t.Errorf("end: %v", err)
			}
			if p.left.Add(-1) == 0 {
				close(p.over)
			}
		}
	}
}

// untilKnown repeats a call that a store under load did not answer, as workers do.
func untilKnown(ctx context.Context, call func() error) error {
	for {
		err := call()
		if code := base.CodeOf(err); code != base.CodeStoreUnavailable && code != base.CodeTimeout || ctx.Err() != nil {
			return err
		}
	}
}

// moment is what a reader saw of a flow.
type moment struct{ completed, failed, skipped int }

func (m moment) ended() int { return m.completed + m.failed + m.skipped }

// checkMoment looks whether all that a view tells is of one moment, and none before the last one that the same reader saw.
func checkMoment(t *testing.T, view engine.FlowView, last moment) moment {
	t.Helper()
	total := 0
	for state, n := range view.Counts {
		if total += n; n < 0 {
			t.Errorf("%d are %s", n, state)
		}
	}
	c := view.Counts
	now := moment{c["completed"], c["failed"], c["skipped"]}
	same(t, "FI10: members", []int{total, view.Nodes}, []int{countedUps + countedDowns, countedUps + countedDowns})
	same(t, "FI10: the record and its members", []any{view.Ends, view.Open},
		[]any{core.FlowEnds{Completed: now.completed, Failed: now.failed, Skipped: now.skipped}, total - now.ended()})
	same(t, "joins", []int{view.Joins["pending"] + view.Joins["satisfied"] + view.Joins["impossible"], view.Joins["impossible"]}, []int{countedDowns, now.skipped})
	if now.completed < last.completed || now.failed < last.failed || now.skipped < last.skipped {
		t.Errorf("FI9: %+v after %+v", now, last)
	}
	phase := "blocked"
	switch {
	case now.ended() == total:
		phase = ""
	case c["active"] > 0:
		phase = "running"
	case c["waiting"] > 0:
		phase = "waiting"
	}
	same(t, "F4, F6: phase", []any{view.Phase, view.State.Terminal()}, []any{phase, phase == ""})
	return now
}

func TestF4_F6_F59_FI9_FI10_counts_and_phase_hold_at_every_moment_while_a_thousand_members_run(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		engines := []*engine.Engine{w.e, w.another1()}
		flow := w.submitFlow(countedFlow())
		ctx, over := context.WithCancel(w.ctx())
		defer over()
		p := &pace{allowed: make(chan struct{}), over: make(chan struct{})}
		p.left.Store(960)
		var workers, readers sync.WaitGroup
		for i := range 6 {
			workers.Go(func() { p.work(ctx, w, engines[i%2]) })
		}
		var halfway atomic.Int64
		for i := range 2 {
			readers.Go(func() {
				var last moment
				for look := i; last.ended() < countedUps+countedDowns; look++ {
					p.allow()
					view, err := engines[look%2].Flow(ctx, client, flow.Flow.ID.Given())
					if err != nil {
						t.Errorf("get_flow: %v", err)
						return
					}
					if last = checkMoment(t, view, last); last.ended() > 0 && view.Open > 0 {
						halfway.Add(1)
					}
				}
			})
		}
		readers.Wait()
		over()
		workers.Wait()
		if end := checkMoment(t, w.flow(flow), moment{}); end != (moment{completed: 900, failed: 60, skipped: 40}) {
			t.Errorf("F5: ended as %+v", end)
		}
		if halfway.Load() < 20 {
			t.Errorf("only %d looks came while members ran: this proves nothing", halfway.Load())
		}
	})
}
