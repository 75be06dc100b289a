// Package story is the incident example: each worker that takes a piece of work dies of it, until the engine hands it out no more. An operator
// asks the engine why at each point, and replays it when the cause is gone.
package story

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/examples/stage"
)

// Incident is the story.
var Incident = stage.Story{Name: "incident", Tell: tell}

// Page is the work: answer the pager.
const Page flowfabric.Kind[string, string] = "answer-page"

const (
	lease    = 600 * time.Millisecond // short, so that a death is noticed soon
	reclaims = 2                      // how often the work is taken over from the dead
	patience = 10 * time.Second       // for one claim
)

func tell(ctx context.Context, s *stage.Stage) error {
	client, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	run, err := Page.Submit(ctx, client, "disk of db-3 is full", flowfabric.SubmitOptions{
		Lane: s.Name, Policy: &flowfabric.Policy{MaxReclaims: reclaims},
	})
	if err != nil {
		return err
	}
	s.Say("The pager rings: %s. It may be taken over %d times from responders that vanish.", run.ID(), reclaims)
	seen, err := point(ctx, s, client, run.ID(), api.FromStart)
	if err != nil {
		return err
	}
	for n := range reclaims + 1 {
		if err := die(ctx, s, client, n); err != nil {
			return err
		}
		if seen, err = point(ctx, s, client, run.ID(), seen); err != nil {
			return err
		}
	}
	if _, err := run.Wait(ctx); err != nil {
		return err
	}
	s.Say("The last lease lapses too, and the cap is reached: no other worker gets the work.")
	if seen, err = point(ctx, s, client, run.ID(), seen); err != nil {
		return err
	}
	return replay(ctx, s, client, run, seen)
}

// die claims the work as a responder would, and is never heard of again.
func die(ctx context.Context, s *stage.Stage, client *flowfabric.Client, n int) error {
	name := fmt.Sprintf("%s-%d", s.Name, n)
	answer, err := client.Work().Claim(ctx, api.ClaimRequest{
		WorkerID: "responder", InstanceID: name, Lanes: []string{s.Name}, LeaseTTL: lease, Wait: patience,
	})
	if err != nil {
		return err
	}
	if len(answer.Tasks) == 0 {
		return errors.New("no worker was given the work")
	}
	task := answer.Tasks[0]
	s.Say("Responder %s takes it (%s, attempt %d) and is never heard of again.", name, task.How, task.Attempt.Index)
	return nil
}

// point shows how the work stands, why it does not run, and what has happened since the last look.
func point(ctx context.Context, s *stage.Stage, client *flowfabric.Client, id flowfabric.ID, after string) (next string, err error) {
	x, err := client.Get(ctx, id)
	if err != nil {
		return "", err
	}
	s.Show("it is %s; reason: %s, reclaims: %d, replays: %d", x.Status, cmp.Or(x.Reason, "none"), x.ReclaimCount, x.ReplayCount)
	why, err := client.Executions().Explain(ctx, id)
	if err != nil {
		return "", err
	}
	s.Show("explain: %s", why.Summary)
	for _, blocker := range why.Blockers {
		s.Show("  %s: %s", blocker.Code, blocker.Message)
	}
	return s.ShowEvents(ctx, client, id, after)
}

// replay is what the operator does when the cause is found.
func replay(ctx context.Context, s *stage.Stage, client *flowfabric.Client, run *flowfabric.Run[string], seen string) error {
	s.Say("The stairs are mended. An operator replays it, and a responder who lives does the work.")
	action := ops.Action{Reason: "the stairs are mended", Expect: ops.Expect{Status: flowfabric.StatusFailed}}
	if _, err := client.Operate().Replay(ctx, run.ID(), ops.ReplayOptions{Action: action}); err != nil {
		return err
	}
	w := flowfabric.NewWorker(client, flowfabric.WorkerConfig{ID: "responder", Lanes: []string{s.Name}, Logger: s.Log})
	flowfabric.Handle(w, Page, func(_ context.Context, _ *flowfabric.Task, page string) (string, error) {
		return page + ": no longer", nil
	})
	stop := stage.Start(ctx, w)
	result, err := run.Result(ctx)
	if err != nil {
		return errors.Join(err, stop())
	}
	s.Show("%s", result)
	if _, err := point(ctx, s, client, run.ID(), seen); err != nil {
		return errors.Join(err, stop())
	}
	return stop()
}
