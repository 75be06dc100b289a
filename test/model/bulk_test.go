package model

import (
	"context"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// bulkCommand starts a job over a filter.
type bulkCommand struct {
	C engine.Caller
	R engine.BulkRequest
}

func (c bulkCommand) op() string { return "bulk " + c.R.Action }

// started is the answer to the start of a job; ended is what the job has to say when it is over.
type (
	started struct {
		ID    base.UUID
		Total int // of the model alone
	}
	ended struct {
		State   string
		Done    int
		Refused map[base.Code]int
	}
)

// onModel is L137 and L138: the job acts on what was created before it, each by the rules of its own operation.
func (c bulkCommand) onModel(m *reference) (any, error) {
	answer, job := started{ID: m.ids.next()}, ended{State: "done", Refused: map[base.Code]int{}}
	for _, id := range m.sorted() {
		r := m.records[id]
		if !m.matches(c.R.Filter, r) {
			continue
		}
		answer.Total++
		if r.x.CreatedAt > m.now() { // the clock was set back
			continue
		}
		m.settle(r)
		if err := m.apply(c.C, r, c.act); err != nil {
			job.Refused[base.CodeOf(err)]++
		} else {
			job.Done++
		}
	}
	m.jobs[answer.ID] = job
	return answer, nil
}

// matches holds a record against a filter of which no timer changes the answer.
func (m *reference) matches(f core.Filter, r *record) bool {
	class := r.x.Class
	return (f.Lane == nil || slices.Contains(f.Lane, class.Lane)) && (f.Kind == nil || slices.Contains(f.Kind, class.Kind))
}

func (c bulkCommand) act(r *record, fx *core.Effects) (err error) {
	by, reason := c.C.Principal, c.R.Reason
	switch c.R.Action {
	case "cancel":
		_, err = r.x.Cancel(fx, core.CancelCommand{Source: "operator", By: by, Reason: reason})
	case "hold":
		_, err = r.x.PlaceHold(fx, by, reason)
	default:
		_, err = r.x.ReleaseHold(fx, reason)
	}
	return err
}

func (c bulkCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	view, err := on.e.Bulk(ctx, c.C, c.R)
	return started{ID: view.JobID}, err
}

// checkJobs compares what the jobs say that were started since the last look. They have ended by now.
func (k *trial) checkJobs() {
	for id, want := range k.m.jobs {
		for _, s := range k.subjects {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			view, err := s.e.BulkStatus(ctx, operator, id)
			cancel()
			if err != nil {
				k.d.t.Fatalf("%s: job %s: %v", s.name, id, err)
			}
			if diff := cmp.Diff(want, ended{State: view.State, Done: view.Done, Refused: view.Refused}, same); diff != "" {
				k.d.t.Fatalf("the end of job %s (-model +%s):\n%s", id, s.name, diff)
			}
		}
		delete(k.m.jobs, id)
	}
}

func (d *drawing) bulk(action string) command {
	f := pickOne(d, "filter", core.Filter{Kind: []string{"k2"}}, core.Filter{Lane: []string{"b"}}, core.Filter{Lane: []string{"a", fairLane}, Kind: []string{"k1"}})
	return bulkCommand{C: operator, R: engine.BulkRequest{Action: action, Filter: f, Reason: pickOne(d, "reason", "", "all of them")}}
}
