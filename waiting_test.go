package flowfabric_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// hand is a worker of a test that speaks the protocol itself.
type hand struct {
	*world
	t *testing.T
}

// claims takes the next piece of work, whatever it takes to get it.
func (h hand) claims(ttl time.Duration) *api.Claimed {
	h.t.Helper()
	for ctx := inTime(h.t); ctx.Err() == nil; {
		answer := must[api.ClaimAnswer](h.t)(h.Work().Claim(ctx, api.ClaimRequest{
			WorkerID: "hand", InstanceID: "hand", Lanes: []string{"default"}, Wait: time.Second, LeaseTTL: ttl,
		}))
		if len(answer.Tasks) > 0 {
			return answer.Tasks[0]
		}
	}
	h.t.Fatal("there is nothing to claim")
	return nil
}

// does sends one command.
func (h hand) does(item api.WorkItem) api.WorkAnswer {
	h.t.Helper()
	return must[[]api.WorkAnswer](h.t)(h.Work().Do(inTime(h.t), item))[0]
}

// suspends waits, under that lease and key, for a signal at a waitpoint of that name.
func (h hand) suspends(task *api.Claimed, key, at string) api.WorkAnswer {
	h.t.Helper()
	return h.does(api.WorkItem{Op: api.OpSuspend, ID: task.ID, Lease: task.Lease, Suspension: &flowfabric.Suspension{
		Key: key, Waitpoints: []flowfabric.Binding{flowfabric.NewWaitpoint(at)}, Continuation: flowfabric.Text("page 7"),
	}})
}

func (h hand) submits() flowfabric.ID {
	h.t.Helper()
	return must[flowfabric.SubmitResult](h.t)(h.Submit(inTime(h.t), flowfabric.Submission{Kind: "k"})).ID
}

// A lost answer: the suspend is sent again by who made it, whatever has happened since.
func TestW56_a_suspend_whose_answer_was_lost_gets_it_also_after_the_resume(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		h := hand{w, t}
		h.submits()
		first := h.claims(time.Minute)
		suspended := h.suspends(first, "wait", "at")
		if suspended.Err != nil || suspended.Outcome != "suspended" || len(suspended.Waitpoints) != 1 || suspended.Resume != nil {
			t.Fatalf("%+v", suspended)
		}
		at := suspended.Waitpoints[0]
		check := func(when string) {
			t.Helper()
			again := h.suspends(first, "wait", "at")
			if again.Err != nil || again.Outcome != "suspended" || again.SuspensionID != suspended.SuspensionID || again.Waitpoints[0].ID != at.ID ||
				again.Waitpoints[0].Token.Reveal() != at.Token.Reveal() || again.Waitpoints[0].CallbackURL != at.CallbackURL {
				t.Errorf("%s: %+v", when, again)
			}
			if other := h.suspends(first, "wait", "elsewhere"); flowfabric.CodeOf(other.Err) != "idempotency_conflict" {
				t.Errorf("%s, something else under the key: %v", when, other.Err)
			}
		}
		check("while it is open")
		if receipt := w.signals(t, &at, "go", flowfabric.Text("hello")); receipt.Effect != "resume_condition_satisfied" {
			t.Errorf("%+v", receipt)
		}
		check("after the resume")
		second := h.claims(time.Minute)
		check("after the next claim")
		if second.How != "resumed" || second.Attempt.ID != first.Attempt.ID || second.Lease.Epoch != first.Lease.Epoch+1 || second.Resume == nil {
			t.Fatalf("%+v", second)
		}
		resume := second.Resume
		if resume.SuspensionID != suspended.SuspensionID || resume.Cause != "signal" || len(resume.Signals) != 1 ||
			string(resume.Signals[0].Payload.Data) != "hello" || string(resume.Continuation.Data) != "page 7" {
			t.Errorf("%+v", resume)
		}
		passed := h.suspends(second, "wait", "at")
		if passed.Err != nil || passed.Outcome != "already_satisfied" || passed.Resume == nil || string(passed.Resume.Signals[0].Payload.Data) != "hello" {
			t.Errorf("under the new lease: %+v", passed)
		}
		if done := h.does(api.WorkItem{Op: api.OpComplete, ID: second.ID, Lease: second.Lease}); done.Err != nil {
			t.Errorf("a wait that was passed has taken the lease: %v", done.Err)
		}
	})
}

// The worker dies with what it got: the next one asks again and gets the same.
func TestW56_a_crash_after_the_approval_and_a_reclaim_pass_the_wait(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		h := hand{w, t}
		id := h.submits()
		first := h.claims(time.Minute)
		if a := h.suspends(first, "wait", "at"); a.Outcome != "suspended" {
			t.Fatalf("%+v", a)
		}
		must[api.SignalReceipt](t)(w.Operate().Approve(inTime(t), id, ops.Approve{Comment: "yes"}))
		second := h.claims(500 * time.Millisecond) // and is heard of no more
		third := h.claims(time.Minute)
		if second.How != "resumed" || third.How != "reclaimed" || third.Attempt.Index != second.Attempt.Index+1 || third.Resume != nil {
			t.Fatalf("%s, then %s attempt %d with %+v", second.How, third.How, third.Attempt.Index, third.Resume)
		}
		passed := h.suspends(third, "wait", "at")
		if passed.Err != nil || passed.Outcome != "already_satisfied" || len(passed.Resume.Signals) != 1 || passed.Resume.Signals[0].SourceIdentity != w.who {
			t.Errorf("%+v", passed)
		}
		if stale := h.suspends(second, "other", "at"); flowfabric.CodeOf(stale.Err) != "stale_lease" {
			t.Errorf("under the lease that lapsed: %v", stale.Err)
		}
	})
}

func TestU132_waits_are_shown_to_every_caller_and_their_tokens_to_operators(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, h := inTime(t), hand{w, t}
		id := h.submits()
		task := h.claims(time.Minute)
		if found, err := w.Executions().Suspension(ctx, id); found != nil || err != nil {
			t.Errorf("before the first wait: %+v, %v", found, err)
		}
		made := h.does(api.WorkItem{Op: api.OpWaitpoint, ID: id, Lease: task.Lease, Waitpoint: &api.NewWaitpoint{Key: "early", ExpiresIn: time.Hour}})
		if made.Err != nil || len(made.Waitpoints) != 1 || made.Waitpoints[0].State != "pending" || made.Waitpoints[0].Token.IsZero() {
			t.Fatalf("%+v", made)
		}
		early := made.Waitpoints[0]
		w.signals(t, &early, "first", flowfabric.JSON(map[string]int{"n": 1}))
		until := flowfabric.AllOf(flowfabric.OnSignal("early", "first"), flowfabric.CountOf(2, flowfabric.DistinctSignals, "late"))
		suspension := &flowfabric.Suspension{
			Waitpoints: []flowfabric.Binding{flowfabric.ExistingWaitpoint(&early), flowfabric.NewWaitpoint("late")}, Until: until,
			Timeout: time.Hour, OnTimeout: flowfabric.EscalateOnTimeout, ReasonCode: flowfabric.WaitingForToolResult,
		}
		suspended := h.does(api.WorkItem{Op: api.OpSuspend, ID: id, Lease: task.Lease, Suspension: suspension})
		if suspended.Err != nil || len(suspended.Waitpoints) != 2 || suspended.TimeoutAt.IsZero() {
			t.Fatalf("%+v", suspended)
		}
		late := suspended.Waitpoints[1]
		w.signals(t, &late, "second", flowfabric.Text("two"))

		open := must[*api.SuspensionRecord](t)(w.Executions().Suspension(ctx, id))
		if open.ID != suspended.SuspensionID || open.Cause != "" || open.ReasonCode != "waiting_for_tool_result" || open.OnTimeout != flowfabric.EscalateOnTimeout ||
			len(open.Signals) != 2 || len(open.Waitpoints) != 2 || open.Waitpoints[1].WaitpointID != late.ID {
			t.Errorf("%+v", open)
		}
		if diff := cmp.Diff(until, open.Until, cmpopts.IgnoreUnexported(flowfabric.Condition{})); diff != "" {
			t.Errorf("the condition: %s", diff)
		}
		signals := must[[]flowfabric.SignalRecord](t)(all(w.Executions().Signals(ctx, id, ops.SignalQuery{SuspensionID: open.ID})))
		if len(signals) != 2 || signals[0].Name != "first" || string(signals[1].Payload.Data) != "two" || !signals[0].Matched || signals[0].SourceVerified {
			t.Errorf("%+v", signals)
		}
		page := must[flowfabric.Page[flowfabric.SignalRecord]](t)(w.Executions().SignalsPage(ctx, id, ops.SignalQuery{PageOptions: flowfabric.PageOptions{Limit: 1}}))
		if len(page.Items) != 1 || page.NextCursor == "" {
			t.Errorf("%+v", page)
		}
		listed := must[[]flowfabric.Waitpoint](t)(all(w.Waitpoints().List(ctx, ops.WaitpointQuery{ExecutionID: id})))
		if len(listed) != 2 || !listed[0].Token.IsZero() || listed[0].CallbackURL != "" || listed[0].SignalCount != 1 {
			t.Errorf("%+v", listed)
		}
		waiting := must[[]api.Suspended](t)(all(w.Waitpoints().Suspended(ctx, ops.SuspendedQuery{ReasonCode: flowfabric.WaitingForToolResult})))
		if len(waiting) != 1 || len(waiting[0].Progress) != 2 || waiting[0].Progress[1].Progress != 1 || waiting[0].Progress[1].Needed != 2 {
			t.Errorf("%+v", waiting)
		}
		if inbox := must[flowfabric.Page[api.Suspended]](t)(w.Waitpoints().InboxPage(ctx)); len(inbox.Items) != 0 {
			t.Errorf("people are asked: %+v", inbox)
		}

		shown := must[*flowfabric.Waitpoint](t)(w.Waitpoints().Token(ctx, id, late.ID))
		if shown.Token.Reveal() != late.Token.Reveal() || shown.CallbackURL != late.CallbackURL || shown.State != "active" {
			t.Errorf("%+v", shown)
		}
		fresh := must[*flowfabric.Waitpoint](t)(w.Waitpoints().Reissue(ctx, late.ID))
		if _, err := w.Signal(ctx, flowfabric.Signal{WaitpointID: late.ID, Token: late.Token, Name: "x"}); flowfabric.CodeOf(err) != "invalid_token" {
			t.Errorf("the token before: %v", err)
		}
		if _, err := w.Waitpoints().Close(ctx, late.ID); flowfabric.CodeOf(err) != "waitpoint_active" {
			t.Errorf("close: %v", err)
		}
		w.signals(t, fresh, "third", flowfabric.Payload{})
		closed := must[*api.SuspensionRecord](t)(w.Executions().Suspension(ctx, id))
		if closed.Cause != "signal" || closed.CloserSignalID == "" || len(closed.Signals) != 3 {
			t.Errorf("%+v", closed)
		}
		gone := must[*flowfabric.Waitpoint](t)(w.Waitpoints().Get(ctx, late.ID))
		if gone.State != "closed" || gone.CloseReason != "resumed" || gone.MatchedSignals != 2 {
			t.Errorf("%+v", gone)
		}
	})
}

func TestU132_an_operator_closes_waitpoints_withdraws_links_and_resumes(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, h := inTime(t), hand{w, t}
		id := h.submits()
		task := h.claims(time.Minute)
		make := func(key string) flowfabric.Waitpoint {
			answer := h.does(api.WorkItem{Op: api.OpWaitpoint, ID: id, Lease: task.Lease, Waitpoint: &api.NewWaitpoint{Key: key}})
			if answer.Err != nil {
				t.Fatal(answer.Err)
			}
			return answer.Waitpoints[0]
		}
		one, two := make("one"), make("two")
		for _, want := range []string{"closed", "already_closed"} {
			if result := must[api.CloseResult](t)(w.Waitpoints().Close(ctx, one.ID, ops.CloseOptions{Reason: "enough"})); result.Outcome != want {
				t.Errorf("%s, want %s", result.Outcome, want)
			}
		}
		if _, err := w.Signal(ctx, flowfabric.Signal{WaitpointID: one.ID, Token: one.Token, Name: "x"}); flowfabric.CodeOf(err) != "waitpoint_closed" {
			t.Errorf("at a closed one: %v", err)
		}
		asks := ops.LinkOptions{Approver: "ann", Decisions: []flowfabric.LinkChoice{{ID: "later", Label: "Later", SignalName: "postponed"}}, Lease: &task.Lease}
		link := must[flowfabric.ApprovalLink](t)(w.Waitpoints().NewLink(ctx, two.ID, asks))
		if link.WaitpointID != two.ID || link.ExecutionID != id || !strings.Contains(link.URL, "/approve/"+link.ID+"/") {
			t.Errorf("%+v", link)
		}
		links := must[[]flowfabric.ApprovalLink](t)(w.Waitpoints().Links(ctx, two.ID))
		if len(links) != 1 || links[0].State != "open" || links[0].URL != "" || links[0].Choices[0].SignalName != "postponed" {
			t.Errorf("%+v", links)
		}
		if again := must[flowfabric.ApprovalLink](t)(w.Waitpoints().LinkURL(ctx, link.ID)); again.URL != link.URL {
			t.Errorf("another address: %+v", again)
		}
		for range 2 {
			if err := w.Waitpoints().RevokeLink(ctx, link.ID); err != nil {
				t.Error(err)
			}
		}
		if _, err := w.Waitpoints().Decide(ctx, link.ID, tokenOf(link.URL), api.LinkDecision{Decision: "later"}); flowfabric.CodeOf(err) != "link_revoked" {
			t.Errorf("a link that was withdrawn: %v", err)
		}
		page := must[*api.LinkPage](t)(w.Waitpoints().OpenLink(ctx, link.ID, tokenOf(link.URL)))
		if flowfabric.CodeOf(page.Refused) != "link_revoked" || page.State != "revoked" {
			t.Errorf("%+v", page)
		}
		for _, wrong := range []struct{ id, token string }{{link.ID, "a:b"}, {task.Lease.ID, "a:b"}, {"no-id", "a:b"}} {
			if _, err := w.Waitpoints().OpenLink(ctx, wrong.id, flowfabric.TokenOf(wrong.token)); flowfabric.CodeOf(err) != "link_not_found" {
				t.Errorf("%v: %v", wrong, err)
			}
		}
		suspended := h.does(api.WorkItem{Op: api.OpSuspend, ID: id, Lease: task.Lease, Suspension: &flowfabric.Suspension{Until: flowfabric.OperatorOnly()}})
		if suspended.Outcome != "suspended" {
			t.Fatalf("%+v", suspended)
		}
		if _, err := w.Operate().Resume(ctx, id, ops.ResumeOptions{ExpectedSuspensionID: two.ID}); flowfabric.CodeOf(err) != "suspension_mismatch" {
			t.Errorf("another suspension: %v", err)
		}
		expected := ops.ResumeOptions{ExpectedSuspensionID: suspended.SuspensionID, Delay: time.Hour}
		for range 2 {
			if x := must[*flowfabric.Execution](t)(w.Operate().Resume(ctx, id, expected)); x.Status != flowfabric.StatusDelayed {
				t.Errorf("it is %s", x.Status)
			}
		}
		if _, err := w.Operate().Resume(ctx, id); flowfabric.CodeOf(err) != "execution_not_suspended" {
			t.Errorf("once more: %v", err)
		}
	})
}

func TestU132_W7_what_is_no_id_is_refused_and_what_does_not_exist_is_not_found(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx := inTime(t)
		points := w.Waitpoints()
		const absent = "01890000-0000-7000-8000-000000000001"
		for name, call := range map[string]func(id string) error{
			"Get":     func(id string) error { _, err := points.Get(ctx, id); return err },
			"Token":   func(id string) error { _, err := points.Token(ctx, flowfabric.ID(id), absent); return err },
			"Reissue": func(id string) error { _, err := points.Reissue(ctx, id); return err },
			"Close":   func(id string) error { _, err := points.Close(ctx, id); return err },
			"NewLink": func(id string) error {
				_, err := points.NewLink(ctx, id, ops.LinkOptions{Approver: "a"})
				return err
			},
			"Links":      func(id string) error { _, err := points.Links(ctx, id); return err },
			"LinkURL":    func(id string) error { _, err := points.LinkURL(ctx, id); return err },
			"RevokeLink": func(id string) error { return points.RevokeLink(ctx, id) },
			"Page": func(id string) error {
				_, err := points.Page(ctx, ops.WaitpointQuery{ExecutionID: flowfabric.ID(id)})
				return err
			},
			"Suspension":      func(id string) error { _, err := w.Executions().Suspension(ctx, flowfabric.ID(id)); return err },
			"SuspensionsPage": func(id string) error { _, err := w.Executions().SuspensionsPage(ctx, flowfabric.ID(id)); return err },
			"SignalsPage":     func(id string) error { _, err := w.Executions().SignalsPage(ctx, flowfabric.ID(id)); return err },
			"Resume":          func(id string) error { _, err := w.Operate().Resume(ctx, flowfabric.ID(id)); return err },
			"Approve": func(id string) error {
				_, err := w.Operate().Approve(ctx, flowfabric.ID(id), ops.Approve{})
				return err
			},
		} {
			if err := call("no-id"); flowfabric.CodeOf(err) != "invalid_id" {
				t.Errorf("%s of what is no id: %v", name, err)
			}
			if err := call(absent); !errors.Is(err, flowfabric.ErrNotFound) {
				t.Errorf("%s of nothing: %v", name, err)
			}
		}
		for _, s := range []flowfabric.Signal{{WaitpointID: "no-id"}, {WaitpointID: absent}, {WaitpointID: absent, ExecutionID: "no-id"}} {
			if _, err := w.Signal(ctx, s); flowfabric.CodeOf(err) != "missing_token" {
				t.Errorf("%+v: %v", s, err)
			}
			s.Token = flowfabric.TokenOf("k:" + strings.Repeat("0", 64))
			if _, err := w.Signal(ctx, s); flowfabric.CodeOf(err) != "invalid_token" {
				t.Errorf("%+v: %v", s, err)
			}
		}
	})
}

func TestU132_a_condition_says_what_its_maker_is_called(t *testing.T) {
	t.Parallel()
	all := []flowfabric.Condition{
		flowfabric.OnSignal("k", "n"), flowfabric.AllOf(flowfabric.OnSignal("", "")), flowfabric.AnyOf(), flowfabric.CountOf(2, flowfabric.DistinctSources, "a", "b"),
		flowfabric.OperatorOnly(), flowfabric.TimeoutOnly(),
	}
	var types []string
	for _, c := range all {
		types = append(types, c.Type)
	}
	if !slices.Equal(types, []string{"single", "all_of", "any_of", "count", "operator_only", "timeout_only"}) {
		t.Errorf("%q", types)
	}
	at := &flowfabric.Waitpoint{ID: "w", Key: "k"}
	if got := []flowfabric.Binding{flowfabric.NewWaitpoint("k"), flowfabric.ExistingWaitpoint(at)}; !reflect.DeepEqual(got, []flowfabric.Binding{{Fresh: &api.FreshWaitpoint{Key: "k"}}, {UsePending: &api.PendingWaitpoint{ID: "w"}}}) {
		t.Errorf("%+v", got)
	}
}
