package engine_test

import (
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// onSigning runs a test on every store, with an engine that has the signing key a.
func onSigning(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	onStoresWith(t, withKey, f)
}

// The conditions of most of these tests.
const (
	atA          = `{"type":"single","waitpoint_key":"a"}`
	goAtA        = `{"type":"single","waitpoint_key":"a","name":"go"}`
	operatorOnly = `{"type":"operator_only"}`
	timeoutOnly  = `{"type":"timeout_only"}`
	twoApprovers = `{"type":"count","n":2,"count_kind":"distinct_sources","name":"approved","source_types":["operator","approver"],"waitpoints":["a"]}`
)

func parsedCondition(text string) *condition.Condition {
	c, err := condition.Parse([]byte(text))
	if err != nil {
		panic(err)
	}
	return c
}

// waitFor is a suspend under a task's lease: at fresh waitpoints with the keys of the condition.
func waitFor(task engine.Task, text string, edits ...func(*core.SuspendCommand)) core.SuspendCommand {
	c := core.SuspendCommand{Fence: fence(task), Condition: parsedCondition(text)}
	for _, key := range c.Condition.Keys() {
		c.Waitpoints = append(c.Waitpoints, core.Binding{Key: &key})
	}
	for _, edit := range edits {
		edit(&c)
	}
	return c
}

func timingOut(ms base.Millis, behavior string) func(*core.SuspendCommand) {
	return func(c *core.SuspendCommand) { c.TimeoutMS, c.Behavior = &ms, behavior }
}

func adopting(ids ...base.UUID) func(*core.SuspendCommand) {
	return func(c *core.SuspendCommand) {
		c.Waitpoints = nil
		for _, id := range ids {
			c.Waitpoints = append(c.Waitpoints, core.Binding{UsePending: true, ID: id})
		}
	}
}

func named(key string) func(*core.SuspendCommand) {
	return func(c *core.SuspendCommand) { c.IdempotencyKey = key }
}

// suspend hands the lease back.
func (w *world) suspend(task engine.Task, text string, edits ...func(*core.SuspendCommand)) engine.SuspendAnswer {
	w.t.Helper()
	answer := must(w.e.Suspend(w.ctx(), client, given(task), waitFor(task, text, edits...)))(w.t)
	if answer.Satisfied {
		w.t.Fatal("the wait is over at once")
	}
	return answer
}

// asleep submits, claims and suspends.
func (w *world) asleep(text string, edits ...func(*core.SuspendCommand)) (base.GivenID, engine.SuspendAnswer) {
	w.t.Helper()
	task := w.started(core.Submission{})
	return given(task), w.suspend(task, text, edits...)
}

// pending makes a waitpoint.
func (w *world) pending(task engine.Task, key string) engine.Issued {
	w.t.Helper()
	return must(w.e.CreateWaitpoint(w.ctx(), client, given(task), core.CreateWaitpointCommand{Fence: fence(task), Key: key}))(w.t)
}

// stranger is who has nothing but a token.
var stranger = engine.Caller{Principal: "stranger", Actor: "client", Namespaces: []string{"nowhere"}}

// signal delivers one under a token.
func (w *world) signal(waitpoint base.UUID, token keyring.Token, name string, edits ...func(*core.SignalCommand)) (core.SignalAnswer, error) {
	w.t.Helper()
	c := core.SignalCommand{WaitpointID: waitpoint, Name: name, Payload: core.Payload{Data: []byte("from " + name), ContentType: "text/plain"}}
	for _, edit := range edits {
		edit(&c)
	}
	return w.e.Signal(w.ctx(), stranger, nil, token, c)
}

// signalled delivers a signal to the first waitpoint of a suspension and tells its effect.
func (w *world) signalled(s engine.SuspendAnswer, name string, edits ...func(*core.SignalCommand)) condition.SignalEffect {
	w.t.Helper()
	return must(w.signal(s.Waitpoints[0].ID, s.Tokens[0], name, edits...))(w.t).Effect
}

func (w *world) resume(id base.GivenID, c core.ResumeCommand) (engine.View, bool, error) {
	return w.e.Resume(w.ctx(), operator, id, c, engine.Operator{})
}

// approve is the approval of somebody.
func (w *world) approve(who string, id base.GivenID, c core.ApproveCommand) (core.SignalAnswer, error) {
	return w.e.Approve(w.ctx(), engine.Caller{Principal: who, Actor: "operator"}, id, c, engine.Operator{})
}

// link makes a link for somebody.
func (w *world) link(waitpoint base.UUID, approver string, edits ...func(*core.CreateLinkCommand)) engine.IssuedLink {
	w.t.Helper()
	c := core.CreateLinkCommand{WaitpointID: waitpoint, Approver: approver}
	for _, edit := range edits {
		edit(&c)
	}
	return must(w.e.CreateLink(w.ctx(), operator, c, engine.Operator{}))(w.t)
}

func (w *world) decideLink(l engine.IssuedLink, decision string) (core.DecideAnswer, error) {
	return w.e.Decide(w.ctx(), stranger, l.Token, core.DecideCommand{LinkID: l.ID, Decision: decision})
}

// observed is the suspension that observe shows.
func (w *world) observed(id base.GivenID) *core.Observation {
	w.t.Helper()
	seen := must(w.e.Observe(w.ctx(), client, id))(w.t)
	if seen == nil {
		w.t.Fatal("there was no suspension")
	}
	return seen
}

// heard are the names and payloads of signals.
func heard(signals []core.Signal) []string {
	all := []string{}
	for i := range signals {
		all = append(all, signals[i].Name+": "+string(signals[i].Payload.Data))
	}
	return all
}

// closed is why a waitpoint closed; "" while it is open.
func (w *world) closed(waitpoint base.UUID) core.CloseReason {
	w.t.Helper()
	return must(w.e.Waitpoint(w.ctx(), client, waitpoint))(w.t).CloseReason
}

// spoilWaits makes the first record of an execution's waits unreadable.
func (w *world) spoilWaits(id base.GivenID) {
	w.t.Helper()
	owned := store.Owned{Kind: 15, Owner: id.UUID.String()}
	docs := must(w.store.Read(w.ctx(), store.Want{Owned: []store.Owned{owned}}))(w.t).Owned[owned]
	docs[0].Body = []byte("{")
	w.tamper(store.Changes{PutDocs: docs[:1]})
}

// deeds is what the audit log of a namespace tells, in order.
func (w *world) deeds(namespace string) []string {
	w.t.Helper()
	all := actions(w.told(engine.Caller{Principal: "root", Actor: "operator", Namespaces: []string{namespace}}, core.AuditFilter{}))
	slices.Reverse(all)
	return all
}
