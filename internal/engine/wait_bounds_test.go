package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/store"
)

// large is a signal with the largest payload that there may be: 32 of them are what one answer carries of an execution.
func large(c *core.SignalCommand) {
	c.Payload = core.Payload{ContentType: "text/x", Data: make([]byte, core.MaxSignalPayload), Size: core.MaxSignalPayload}
}

// room wants all signals to tell their size, so many of them to have their bytes, and the last one, which counts, to be among these.
func room(t *testing.T, what string, signals []core.Signal, whole int) {
	t.Helper()
	loaded := 0
	for _, s := range signals {
		same(t, what+": size", s.Payload.Size, core.MaxSignalPayload)
		if s.Payload.Data != nil {
			loaded++
		}
	}
	last := signals[len(signals)-1]
	same(t, what, [3]any{loaded, last.Matched, len(last.Payload.Data)}, [3]any{whole, true, core.MaxSignalPayload})
}

func TestW80_W82_payloads_that_have_no_room_are_left_out_and_those_that_count_come_first(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		named := func(c *core.SuspendCommand) { c.IdempotencyKey = "wait" }
		id, at := w.asleep(goAtA, named)
		for range 33 {
			w.signalled(at, "no", large)
		}
		w.signalled(at, "go", large)
		room(t, "observe", must(w.e.Observe(w.ctx(), client, id))(t).Signals, 32)
		task := w.claim()
		room(t, "claim", task.Resumed.Signals, 32)
		again := must(w.e.Suspend(w.ctx(), client, id, waitFor(task, goAtA, named)))(t)
		room(t, "a wait that is passed", again.Signals, 32)
		first := must(w.e.Signals(w.ctx(), client, id, engine.SignalQuery{}))(t)
		rest := must(w.e.Signals(w.ctx(), client, id, engine.SignalQuery{Cursor: first.Next}))(t)
		same(t, "lists bring all in parts", [3]int{len(first.Items), len(rest.Items), len(rest.Items[0].Payload.Data)}, [3]int{32, 2, core.MaxSignalPayload})
	})
}

func TestS21_W80_waits_have_room_in_an_answer_only_beside_the_inputs(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		task := w.started(core.Submission{Input: largeInput})
		at := w.suspend(task, atA, func(c *core.SuspendCommand) {
			c.Continuation = &core.Payload{ContentType: "text/c", Data: []byte("on"), Size: 2}
		})
		w.signalled(at, "x")
		w.submitMany(15, core.Submission{Input: largeInput})
		r := ask()
		r.Max = 16
		tasks := w.take(r)
		same(t, "leases", len(tasks), 16)
		for _, got := range tasks {
			if given(got) == given(task) {
				signal := got.Resumed.Signals[0]
				same(t, "left out", [4]any{signal.Payload.Size, signal.Payload.Data == nil, got.Resumed.Continuation.Size, got.Resumed.Continuation.Data == nil}, [4]any{6, true, 2, true})
				return
			}
		}
		t.Error("the resumed work was not given")
	})
}

func TestW10_bytes_that_are_missing_keep_no_other_task_from_its_worker(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		bad, wait := w.asleep(atA)
		good, other := w.asleep(atA)
		w.signalled(wait, "x")
		w.signalled(other, "x")
		w.tamper(store.Changes{DropDocs: []store.DocRef{{Kind: 16, Owner: bad.UUID.String(), Key: "g00000001"}}})
		r := ask()
		r.Max = 2
		tasks := w.take(r)
		same(t, "tasks", [2]any{len(tasks), given(tasks[0]).UUID}, [2]any{1, good.UUID})
	})
}

// lostLooks is a store that loses so many looks at records of waits.
type lostLooks struct {
	store.Store
	left atomic.Int64
}

func (l *lostLooks) Read(ctx context.Context, want store.Want) (*store.Loaded, error) {
	if len(want.Owned) > 0 && l.left.Add(-1) >= 0 {
		return nil, &store.Fault{Kind: store.Unavailable, Err: errors.New("the store is gone")}
	}
	return l.Store.Read(ctx, want)
}

func TestW10_a_store_that_is_gone_for_a_moment_costs_no_claim(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		_, at := w.asleep(atA)
		w.signalled(at, "x")
		looks := &lostLooks{Store: w.store}
		closeEngine(t, w.e)
		w.e = w.openEngine(looks)
		looks.left.Store(3)
		task := w.claim()
		toldWait(t, task, at, core.CauseSignal, "x: from x")

		at = w.suspend(task, atA)
		w.signalled(at, "x")
		fresh := w.submit(core.Submission{})
		looks.left.Store(1000)
		r := ask()
		r.Max = 2
		tasks := w.take(r)
		same(t, "what needs no look is given", [2]any{len(tasks), given(tasks[0])}, [2]any{1, fresh})
	})
}

func TestW10_lists_pass_over_what_cannot_be_read(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		w.unaudited = true
		row, _ := w.asleep(atA)
		records, _ := w.asleep(atA)
		said, _ := w.asleep(twoApprovers)
		must(w.approve("op1", said, core.ApproveCommand{Name: "approved", Comment: "fine"}))(t)
		w.turn(10) // lists are in order of time
		good, at := w.asleep(atA)
		w.spoil(row)
		w.spoilWaits(records)
		w.tamper(store.Changes{
			DropDocs: []store.DocRef{{Kind: 16, Owner: said.UUID.String(), Key: "g00000001"}},
			PutDocs:  []store.Doc{{DocRef: store.DocRef{Kind: 18, Key: "01"}, Body: []byte("{")}},
		})
		same(t, "suspended", w.suspendedIDs(client, engine.SuspendedQuery{}), []base.UUID{said.UUID, good.UUID})
		waitpoints := must(w.e.Waitpoints(w.ctx(), client, engine.WaitpointQuery{}))(t).Items
		listed := slices.ContainsFunc(waitpoints, func(p core.WaitpointView) bool { return p.ID == at.Waitpoints[0].ID }) // those of one moment may come in any order
		same(t, "waitpoints", [2]any{len(waitpoints), listed}, [2]any{2, true})
	})
}

func TestU85_a_payload_that_is_longer_than_any_comment_is_not_loaded_for_the_inbox(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		id, _ := w.asleep(`{"type":"operator_only"}`, func(c *core.SuspendCommand) { c.Waitpoints = []core.Binding{{Key: ptr("a")}} })
		must(w.approve("op1", id, core.ApproveCommand{Name: "approved", Payload: &core.Payload{Data: make([]byte, 40<<10), Size: 40 << 10}}))(t)
		must(w.approve("op2", id, core.ApproveCommand{Name: "approved", Comment: "fine"}))(t)
		decisions := must(w.e.Suspended(w.ctx(), client, engine.SuspendedQuery{}))(t).Items[0].Decisions
		same(t, "decisions", [3]any{len(decisions), decisions[0].Payload.Data == nil, string(decisions[1].Payload.Data)}, [3]any{2, true, `{"comment":"fine"}`})
	})
}

func TestW8_a_page_ends_after_ten_thousand_marks_and_goes_on_there(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		w.unaudited = true
		id, at := w.asleep(atA, func(c *core.SuspendCommand) { c.ReasonCode = "waiting_for_approval" })
		var foreign []store.Doc
		for i := range 10_001 {
			key := fmt.Sprintf("00000000-0000-7000-8000-%012x", i)
			foreign = append(
				foreign,
				store.Doc{DocRef: store.DocRef{Kind: 18, Key: key}, Body: []byte(`{"execution_id":"{fp:1}:` + key + `","namespace":"other","waitpoint_key":"a"}`)},
				store.Doc{DocRef: store.DocRef{Kind: 20, Key: fmt.Sprintf("default\x01%016x\x01%s", 1, key)}, Body: []byte(`{"lane":"l","reason_code":"waiting_for_signal"}`)},
			)
		}
		w.tamper(store.Changes{PutDocs: foreign})
		own := engine.Caller{Principal: "me", Actor: "client", Namespaces: []string{base.DefaultNamespace}}
		waitpoints := must(w.e.Waitpoints(w.ctx(), own, engine.WaitpointQuery{}))(t)
		same(t, "a short page", [2]any{len(waitpoints.Items), waitpoints.Next != ""}, [2]any{0, true})
		waitpoints = must(w.e.Waitpoints(w.ctx(), own, engine.WaitpointQuery{Cursor: waitpoints.Next}))(t)
		same(t, "the page behind it", [3]any{len(waitpoints.Items), waitpoints.Items[0].ID, waitpoints.Next}, [3]any{1, at.Waitpoints[0].ID, ""})

		q := engine.SuspendedQuery{ReasonCodes: []string{"waiting_for_approval"}}
		suspended := must(w.e.Suspended(w.ctx(), own, q))(t)
		same(t, "a short page of the inbox", [2]any{len(suspended.Items), suspended.Next != ""}, [2]any{0, true})
		q.Cursor = suspended.Next
		suspended = must(w.e.Suspended(w.ctx(), own, q))(t)
		same(t, "the page behind it", [3]any{len(suspended.Items), suspended.Items[0].ExecutionID.UUID, suspended.Next}, [3]any{1, id.UUID, ""})
	})
}

func TestW33_WI5_a_token_is_judged_without_a_lock_and_whatever_state_its_target_is_in(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		w.unaudited = true
		held, at := w.asleep(atA)
		tx, _ := w.beginOn(w.store, store.Want{Executions: []base.UUID{held.UUID}})
		_, err := w.signal(at.Waitpoints[0].ID, spoilt(at.Tokens[0]), "go")
		tx.Rollback(w.ctx())
		want := refused(t, err, base.CodeInvalidToken)

		link := w.link(at.Waitpoints[0].ID, "ann")
		w.spoil(held)
		_, err = w.signal(at.Waitpoints[0].ID, spoilt(at.Tokens[0]), "go")
		same(t, "a row that cannot be read", refused(t, err, base.CodeInvalidToken).Message, want.Message)
		_, err = w.signal(at.Waitpoints[0].ID, at.Tokens[0], "go")
		refused(t, err, base.CodeCorruption)
		_, err = w.e.OpenLink(w.ctx(), stranger, link.ID, spoilt(link.Token))
		refused(t, err, base.CodeLinkNotFound)
		_, err = w.e.OpenLink(w.ctx(), stranger, link.ID, link.Token)
		refused(t, err, base.CodeCorruption)

		w.tamper(store.Changes{PutDocs: []store.Doc{{DocRef: store.DocRef{Kind: 17, Key: at.Waitpoints[0].ID.String()}, Body: []byte("{")}}})
		closeEngine(t, w.e)
		w.e = w.openEngine(w.store) // one that remembers nothing
		_, err = w.signal(at.Waitpoints[0].ID, at.Tokens[0], "go")
		same(t, "a place that cannot be read", refused(t, err, base.CodeInvalidToken).Message, want.Message)
	})
}

func TestU113_an_integrity_check_finds_ids_that_lead_to_nothing(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		w.unaudited = true
		_, at := w.asleep(atA)
		w.link(at.Waitpoints[0].ID, "ann")
		same(t, "whole", must(w.e.Integrity(w.ctx()))(t).Differences, nil)
		places := must(w.store.Read(w.ctx(), store.Want{Scans: []store.Scan{{Kind: 17}, {Kind: 19}}}))(t).Scanned
		var leaked []store.Doc
		var want []engine.Difference
		for i, place := range []store.Doc{places[0][0], places[1][0]} {
			place.Key = fmt.Sprintf("01000000-0000-7000-8000-%012x", i)
			leaked = append(leaked, place)
			want = append(want, engine.Difference{What: "wait_marks", Key: place.Key, Stored: 1})
		}
		w.tamper(store.Changes{PutDocs: leaked})
		same(t, "leaked", must(w.e.Integrity(w.ctx()))(t).Differences, want)
	})
}
