package engine_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// must fails the test on an error.
func must[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		return value
	}
}

// ok fails the test on an error.
func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
}

// refused fails the test unless err has that code; it returns the error.
func refused(t *testing.T, err error, code base.Code) *base.Error {
	t.Helper()
	if base.CodeOf(err) != code {
		t.Fatalf("error %v, want code %s", err, code)
	}
	var refusal *base.Error
	errors.As(err, &refusal)
	return refusal
}

// same fails the test unless both are equal.
func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func ptr[T any](v T) *T { return &v }

// policy is the part of a submission that says how it runs.
func policy(text string) core.Submission { return core.Submission{PolicyJSON: []byte(text)} }

// submit creates an execution; kind "k" unless given.
func (w *world) submit(s core.Submission) base.GivenID {
	w.t.Helper()
	if s.Kind == "" {
		s.Kind = "k"
	}
	answer, err := w.e.Submit(w.ctx(), client, s)
	if err != nil {
		w.t.Fatalf("submit: %v", err)
	}
	if answer.Outcome != "created" {
		w.t.Fatalf("submit: %s", answer.Outcome)
	}
	return answer.ID.Given()
}

// submitMany creates n executions of one shape, in order of their ids' creation.
func (w *world) submitMany(n int, s core.Submission) []base.GivenID {
	w.t.Helper()
	if s.Kind == "" {
		s.Kind = "k"
	}
	all := make([]core.Submission, n)
	for i := range all {
		all[i] = s
	}
	ids := make([]base.GivenID, n)
	for i, item := range must(w.e.SubmitMany(w.ctx(), client, all, false))(w.t) {
		ok(w.t, item.Err)
		ids[i] = item.ID.Given()
	}
	return ids
}

// ask is a claim of one by worker w1, without waiting.
func ask() engine.ClaimRequest {
	return engine.ClaimRequest{WorkerID: "w", InstanceID: "w1", Lanes: []string{"default"}}
}

// take claims what the request asks for.
func (w *world) take(r engine.ClaimRequest) []engine.Task {
	w.t.Helper()
	return must(w.e.Claim(w.ctx(), client, r))(w.t).Tasks
}

// claim waits for one execution of the default lane.
func (w *world) claim() engine.Task {
	w.t.Helper()
	return w.claimAs(ask())
}

// claimAs waits until the request finds exactly one.
func (w *world) claimAs(r engine.ClaimRequest) engine.Task {
	w.t.Helper()
	r.Wait = 20 * time.Second
	tasks := w.take(r)
	if len(tasks) != 1 {
		w.t.Fatalf("the claim found %d", len(tasks))
	}
	return tasks[0]
}

// nothing fails the test if there is work in the default lane.
func (w *world) nothing() {
	w.t.Helper()
	if tasks := w.take(ask()); len(tasks) != 0 {
		w.t.Fatalf("the claim found %s", tasks[0].Execution.ID)
	}
}

// started submits and claims.
func (w *world) started(s core.Submission) engine.Task {
	w.t.Helper()
	id := w.submit(s)
	r := ask()
	if s.Lane != "" {
		r.Lanes = []string{s.Lane}
	}
	task := w.claimAs(r)
	if task.Execution.ID.UUID != id.UUID {
		w.t.Fatalf("claimed %s, want %s", task.Execution.ID, id.ID())
	}
	return task
}

// given is the id of a task.
func given(task engine.Task) base.GivenID { return task.Execution.ID.Given() }

// fence is the fence of a task's lease.
func fence(task engine.Task) core.Fence {
	x := task.Execution
	return core.Fence{LeaseID: x.Lease.ID, Epoch: x.LeaseEpoch, AttemptID: x.Lease.AttemptID}
}

// get reads an execution.
func (w *world) get(id base.GivenID) *core.Execution {
	w.t.Helper()
	return must(w.e.Describe(w.ctx(), client, id))(w.t).Execution
}

// public is the public state of an execution.
func (w *world) public(id base.GivenID) string {
	w.t.Helper()
	view := must(w.e.Describe(w.ctx(), client, id))(w.t)
	state, _ := core.Derive(view.Execution, view.Lane)
	return state
}

// vector is the state vector of an execution.
func (w *world) vector(id base.GivenID) core.Vector {
	w.t.Helper()
	view := must(w.e.Describe(w.ctx(), client, id))(w.t)
	_, v := core.Derive(view.Execution, view.Lane)
	return v
}

// becomes waits until the sweep has brought the execution into a status.
func (w *world) becomes(id base.GivenID, status core.Status) *core.Execution {
	w.t.Helper()
	var x *core.Execution
	eventually(w.t, "status "+status.String(), func() bool {
		x = w.get(id)
		return x.Status == status
	})
	return x
}

// is fails the test unless the execution has this status and reason.
func (w *world) is(id base.GivenID, status core.Status, reason core.Reason) *core.Execution {
	w.t.Helper()
	x := w.get(id)
	if x.Status != status || x.Reason != reason {
		w.t.Fatalf("%s %s, want %s %s", x.Status, x.Reason, status, reason)
	}
	return x
}

func (w *world) complete(task engine.Task) core.CompleteAnswer {
	w.t.Helper()
	return must(w.e.Complete(w.ctx(), client, given(task), fence(task), nil))(w.t)
}

func (w *world) fail(task engine.Task, class string) core.FailAnswer {
	w.t.Helper()
	return must(w.e.Fail(w.ctx(), client, given(task), core.FailCommand{Fence: fence(task), Class: class, Message: "it broke"}))(w.t)
}

func (w *world) delay(task engine.Task, until base.Time) core.LeaveAnswer {
	w.t.Helper()
	return must(w.e.Delay(w.ctx(), client, given(task), fence(task), until))(w.t)
}

func (w *world) release(task engine.Task) core.LeaveAnswer {
	w.t.Helper()
	return must(w.e.Release(w.ctx(), client, given(task), fence(task), "stopping"))(w.t)
}

func (w *world) cancel(id base.GivenID) {
	w.t.Helper()
	must(w.e.Cancel(w.ctx(), operator, id, nil, "", engine.Operator{Reason: "no more"}))(w.t)
}

func (w *world) replay(id base.GivenID) *core.Execution {
	w.t.Helper()
	return must(w.e.Replay(w.ctx(), operator, id, engine.ReplayRequest{}, engine.Operator{Reason: "again"}))(w.t).Execution
}

func (w *world) hold(id base.GivenID) {
	w.t.Helper()
	must(w.e.Hold(w.ctx(), operator, id, engine.Operator{Reason: "stay"}))(w.t)
}

func (w *world) releaseHold(id base.GivenID) {
	w.t.Helper()
	must(w.e.ReleaseHold(w.ctx(), operator, id, engine.Operator{}))(w.t)
}

func (w *world) revoke(id base.GivenID) core.RevokeAnswer {
	w.t.Helper()
	return must(w.e.Revoke(w.ctx(), operator, id, engine.RevokeRequest{}, engine.Operator{Reason: "stop it"}))(w.t).RevokeAnswer
}

// renew extends a task's lease and returns the error of that one renewal.
func (w *world) renew(task engine.Task, ttl base.Millis) (engine.LeaseView, error) {
	w.t.Helper()
	items := must(w.e.Renew(w.ctx(), client, []engine.LeaseRef{{ID: given(task), Fence: fence(task), TTL: ttl}}))(w.t)
	return items[0].Lease, items[0].Err
}

// lane states the settings of a lane.
func (w *world) lane(name string, s core.LaneSettings) {
	w.t.Helper()
	must(w.e.PutLane(w.ctx(), operator, name, s, engine.Operator{}))(w.t)
}

// attempts lists the attempts of an execution.
func (w *world) attempts(id base.GivenID) []core.Attempt {
	w.t.Helper()
	return must(w.e.Attempts(w.ctx(), client, id))(w.t)
}

// events reads the whole log through a filter. A reader may lag behind the commit by a moment (E33); a list waits for what was
// committed before it (L131), so after one the log is known up to here. Without timers no lists are made, and an engine knows what it
// has committed itself.
func (w *world) events(f engine.EventFilter) []engine.LoggedEvent {
	w.t.Helper()
	if !w.cfg.NoTimers {
		must(w.e.List(w.ctx(), client, engine.ListRequest{Limit: ptr(0)}))(w.t)
	}
	var all []engine.LoggedEvent
	r := engine.EventsRequest{After: "start", Limit: 1000, Filter: f}
	for {
		page := must(w.e.ReadEvents(w.ctx(), client, r))(w.t)
		all = append(all, page.Events...)
		if page.AtEnd {
			return all
		}
		r.After = page.Next
	}
}

// story is the kinds of the events of an execution, in order.
func (w *world) story(id base.GivenID) []string {
	w.t.Helper()
	kinds := []string{}
	for _, ev := range w.events(engine.EventFilter{ExecutionID: &id}) {
		kinds = append(kinds, ev.Kind)
	}
	return kinds
}

// count tells how many events of a kind an execution has.
func (w *world) count(id base.GivenID, kind string) int {
	w.t.Helper()
	return len(w.events(engine.EventFilter{ExecutionID: &id, Kinds: []string{kind}}))
}

// data reads the data of an event.
func data(t *testing.T, ev engine.LoggedEvent) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(ev.Data.JSON(), &fields); err != nil {
		t.Fatalf("data of %s: %v", ev.Kind, err)
	}
	return fields
}

// untouched runs a command that must change nothing, and compares the execution before and after, byte for byte (L78).
func (w *world) untouched(id base.GivenID, command func() error, code base.Code) *base.Error {
	w.t.Helper()
	before, story := w.get(id), w.story(id)
	err := command()
	if code == "" {
		ok(w.t, err)
	} else {
		refused(w.t, err, code)
	}
	same(w.t, "record after a command that changes nothing", w.get(id), before)
	same(w.t, "events after a command that changes nothing", w.story(id), story)
	var refusal *base.Error
	errors.As(err, &refusal)
	return refusal
}
