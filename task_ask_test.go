package flowfabric_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// asked is a question that was put to people.
type asked struct {
	*flowfabric.Run[[]string]
	w        *world
	links    chan []flowfabric.ApprovalLink
	notified atomic.Int64
	answer   chan flowfabric.Decision
}

// asks lets a handler ask, and tells how it was answered.
func (w *world) asks(t *testing.T, question flowfabric.Approval) *asked {
	t.Helper()
	a := &asked{w: w, links: make(chan []flowfabric.ApprovalLink, 1), answer: make(chan flowfabric.Decision, 1)}
	question.Notify = func(_ context.Context, links []flowfabric.ApprovalLink) error {
		a.notified.Add(1)
		a.links <- links
		return nil
	}
	a.Run = w.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
		d, err := task.Ask(ctx, question)
		if err != nil && !errors.Is(err, flowfabric.ErrNoSignal) {
			return nil, err
		}
		a.answer <- d
		return nil, flowfabric.Permanent(err)
	})
	w.awaits(t, a.ID(), question.Key)
	return a
}

// decides lets the holder of a link choose.
func (a *asked) decides(t *testing.T, link flowfabric.ApprovalLink, choice, comment string) api.LinkOutcome {
	t.Helper()
	return must[api.LinkOutcome](t)(a.w.Waitpoints().Decide(inTime(t), link.ID, tokenOf(link.URL), api.LinkDecision{Decision: choice, Comment: comment}))
}

// tokenOf is the token at the end of an address.
func tokenOf(url string) flowfabric.Token {
	return flowfabric.TokenOf(url[strings.LastIndex(url, "/")+1:])
}

func TestU141_ask_waits_for_a_quorum_of_different_people(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		a := w.asks(t, flowfabric.Approval{
			Key: "go-live", Title: "Release?", Message: "It is tested.", Quorum: 3, Approvers: []string{"ann", w.who}, Timeout: time.Hour,
		})
		links := receive(t, a.links)
		page := must[*api.LinkPage](t)(w.Waitpoints().OpenLink(ctx, links[0].ID, tokenOf(links[0].URL)))
		if page.Title != "Release?" || page.Approver != "ann" || page.Needed != 3 || page.Progress != 0 || page.Kind != "wait" || page.Refused != nil {
			t.Errorf("%+v", page)
		}
		if d := page.ExpiresAt.Sub(page.CreatedAt); d != 90*24*time.Hour { // its time runs from the suspend, and an escalation takes it away
			t.Errorf("the link lasts for %s, want until the question ends", d)
		}
		a.decides(t, links[0], "approve", "")
		a.decides(t, links[1], "approve", "")
		receipt := must[api.SignalReceipt](t)(w.Operate().Approve(ctx, a.ID(), ops.Approve{Comment: "at the console"}))
		if receipt.Effect != "appended_to_waitpoint_duplicate" { // on a link and at the console it is one person
			t.Errorf("%+v", receipt)
		}
		inbox := must[[]api.Suspended](t)(all(w.Waitpoints().Inbox(ctx)))
		if len(inbox) != 1 || inbox[0].Execution.ID != a.ID() || inbox[0].Needed != 3 || len(inbox[0].Decisions) != 3 || len(inbox[0].Links) != 2 {
			t.Fatalf("%+v", inbox)
		}
		third := must[flowfabric.ApprovalLink](t)(w.Waitpoints().NewLink(ctx, links[0].WaitpointID, ops.LinkOptions{Approver: "eve"}))
		if outcome := a.decides(t, third, "approve", "fine"); outcome.Outcome != "decided" || outcome.Effect != "resume_condition_satisfied" {
			t.Errorf("%+v", outcome)
		}
		if outcome := a.decides(t, third, "reject", ""); outcome.Outcome != "already_decided" || outcome.Decision != "approve" {
			t.Errorf("a second time: %+v", outcome)
		}
		d := receive(t, a.answer)
		if !d.Approved || !slices.Equal(d.By, []string{"ann", w.who, "eve"}) || d.Comment != "fine" || d.TimedOut || d.Resume.Cause != "signal" {
			t.Errorf("%+v", d)
		}
		must[[]string](t)(a.Result(ctx))
		if a.notified.Load() != 1 {
			t.Errorf("they were told %d times", a.notified.Load())
		}
	})
}

func TestU141_one_rejection_is_a_veto_unless_there_is_none(t *testing.T) {
	t.Parallel()
	for _, noVeto := range []bool{false, true} {
		t.Run(fmt.Sprint(noVeto), func(t *testing.T) {
			t.Parallel()
			onEveryStore(t, func(t *testing.T, w *world) {
				a := w.asks(t, flowfabric.Approval{Key: "go", Approvers: []string{"ann", "ben"}, NoVeto: noVeto, CommentRequired: true})
				links := receive(t, a.links)
				a.decides(t, links[0], "reject", "too early")
				if noVeto {
					a.decides(t, links[1], "approve", "now")
				}
				d := receive(t, a.answer)
				want := flowfabric.Decision{By: []string{"ann"}, Comment: "too early"}
				if noVeto {
					want = flowfabric.Decision{Approved: true, By: []string{"ben"}, Comment: "now"}
				}
				if d.Approved != want.Approved || !slices.Equal(d.By, want.By) || d.Comment != want.Comment {
					t.Errorf("%+v, want %+v", d, want)
				}
				must[[]string](t)(a.Result(inTime(t)))
			})
		})
	}
}

func TestU141_a_question_may_end_without_a_decision(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		resumed := w.asks(t, flowfabric.Approval{Key: "go", Quorum: 2})
		if links := receive(t, resumed.links); len(links) != 0 {
			t.Errorf("links for no person: %v", links)
		}
		must[api.SignalReceipt](t)(w.Operate().Approve(ctx, resumed.ID(), ops.Approve{}))
		must[*flowfabric.Execution](t)(w.Operate().Resume(ctx, resumed.ID()))
		if d := receive(t, resumed.answer); d.Approved || !slices.Equal(d.By, []string{w.who}) || d.Resume.Cause != "operator" {
			t.Errorf("%+v", d)
		}
		if _, err := resumed.Result(ctx); !errors.Is(err, flowfabric.ErrExecutionFailed) || !strings.Contains(err.Error(), "without a signal") {
			t.Errorf("%v", err)
		}
	})
}

func TestU141_a_question_that_resumes_at_its_timeout_says_so(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		decided := make(chan flowfabric.Decision, 1)
		run := w.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
			d, err := task.Ask(ctx, flowfabric.Approval{Key: "go", Timeout: time.Millisecond, OnTimeout: flowfabric.ResumeOnTimeout})
			if err == nil {
				decided <- d
			}
			return nil, err
		})
		if d := receive(t, decided); d.Approved || !d.TimedOut || len(d.By) != 0 {
			t.Errorf("%+v", d)
		}
		must[[]string](t)(run.Result(inTime(t)))
	})
}

func TestU141_a_question_that_makes_no_sense_is_refused(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		run := w.waits(t, func(ctx context.Context, task *flowfabric.Task) ([]string, error) {
			for _, wrong := range []flowfabric.Approval{{}, {Key: "k", Quorum: -1}} {
				if _, err := task.Ask(ctx, wrong); flowfabric.CodeOf(err) != "invalid_argument" {
					t.Errorf("%+v: %v", wrong.Key, err)
				}
			}
			return nil, nil
		})
		must[[]string](t)(run.Result(inTime(t)))
	})
}

// Notify is run again after it failed, and gets the links that it had.
func TestU141_links_are_made_once_however_often_they_have_to_be_sent(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		sent := make(chan string, 2)
		w.work(t, flowfabric.WorkerConfig{}, func(worker *flowfabric.Worker) {
			flowfabric.Handle(worker, wait, func(ctx context.Context, task *flowfabric.Task, _ flowfabric.None) ([]string, error) {
				d, err := task.Ask(ctx, flowfabric.Approval{Key: "go", Approvers: []string{"ann"}, Notify: func(_ context.Context, links []flowfabric.ApprovalLink) error {
					sent <- links[0].ID + " " + links[0].URL
					if task.Attempt().Index == 0 {
						return errors.New("no mail today")
					}
					return nil
				}})
				return d.By, err
			})
		})
		run := must[*flowfabric.Run[[]string]](t)(wait.Submit(ctx, w.Client, flowfabric.None{}, flowfabric.SubmitOptions{Policy: once()}))
		if first, second := receive(t, sent), receive(t, sent); first != second {
			t.Errorf("first %s, then %s", first, second)
		}
		w.awaits(t, run.ID(), "go")
		for _, step := range must[[]api.StepRecord](t)(w.Executions().Steps(ctx, run.ID())) {
			if strings.Contains(string(step.Result.Data), ":") {
				t.Errorf("step %s remembers an address: %s", step.Name, step.Result.Data)
			}
		}
		must[api.SignalReceipt](t)(w.Operate().Approve(ctx, run.ID(), ops.Approve{}))
		if got := must[[]string](t)(run.Result(ctx)); !slices.Equal(got, []string{w.who}) {
			t.Errorf("%q", got)
		}
	})
}
