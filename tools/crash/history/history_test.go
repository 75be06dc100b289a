package history_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/tools/crash/history"
)

func at(second int) time.Time { return time.Unix(1_700_000_000+int64(second), 0).UTC() }

func event(id int, kind, execution, data string) history.Event {
	return history.Event{ID: fmt.Sprint("e", id), Kind: kind, At: at(id), Execution: execution, Data: json.RawMessage(data)}
}

// good is a run without contradictions: x was taken over from a worker that had stored its first step, y waits for x in a flow and was
// cancelled while it ran, z was signalled.
func good() *history.Facts {
	f := &history.Facts{
		Executions: map[string]history.Execution{
			"x": {ID: "x", Kind: "steps", Key: "kx", Status: "succeeded", Result: "rx", Expected: "succeeded", WantResult: "rx"},
			"y": {ID: "y", Kind: "slow", Status: "cancelled", Expected: "succeeded", WantResult: "ry"},
			"z": {ID: "z", Kind: "wait", Key: "kz", Status: "succeeded", Result: "rz", Expected: "succeeded", WantResult: "rz"},
		},
		Flows:    map[string]string{"f": "completed"},
		Upstream: map[string][]string{"y": {"x"}},
		Leases: map[string][]history.Lease{"x": {
			{Epoch: 1, ID: "l1", Acquired: at(2), Expired: at(3)}, {Epoch: 2, ID: "l2", Acquired: at(4), Expired: at(5)},
		}},
		Signals:   map[string][]history.Signal{"z": {{ID: "s1"}}},
		Usage:     map[string]int64{"x": 2},
		WantUsage: map[string]int64{"x": 2},
		Budget:    history.Budget{Used: 2},
	}
	call := func(process, name, execution string, began, ended int64, outcome history.Outcome, more func(*history.Call)) {
		c := history.Call{Process: process, Number: int64(len(f.Calls)), Name: name, Execution: execution, Began: began, Ended: ended, Outcome: outcome}
		if more != nil {
			more(&c)
		}
		f.Calls = append(f.Calls, c)
	}
	lease := func(epoch int64, id, key, result string) func(*history.Call) {
		return func(c *history.Call) { c.Epoch, c.Lease, c.Key, c.Result = epoch, id, key, result }
	}
	key := func(key string) func(*history.Call) { return func(c *history.Call) { c.Key = key } }
	call("c", history.Submit, "x", 1, 2, history.Done, key("kx"))
	call("c", history.Flow, "f", 1, 2, history.Done, key("kf"))
	call("c", history.Submit, "z", 1, 2, history.Done, key("kz"))
	call("w1", history.Claim, "x", 4, 4, history.Done, lease(1, "l1", "", ""))
	call("w1", history.Effect, "x", 5, 5, history.Done, func(c *history.Call) { c.Epoch, c.Key, c.Value = 1, "a", "key of a" })
	call("w1", history.Step, "x", 6, 7, history.Done, lease(1, "l1", "a", ""))
	call("w1", history.Complete, "x", 8, 0, history.Unknown, lease(1, "l1", "", "rx"))
	call("w2", history.Claim, "x", 10, 10, history.Done, lease(2, "l2", "", ""))
	call("w2", history.Complete, "x", 11, 12, history.Done, lease(2, "l2", "", "rx"))
	call("c", history.Get, "x", 13, 14, history.Done, func(c *history.Call) { c.Value, c.Result = "succeeded", "rx" })
	call("w2", history.Claim, "y", 15, 15, history.Done, lease(1, "m1", "", ""))
	call("c", history.Cancel, "y", 16, 17, history.Done, nil)
	call("w2", history.Complete, "y", 17, 18, history.Refused, lease(1, "m1", "", "ry"))
	call("c", history.Sign, "z", 15, 16, history.Done, func(c *history.Call) { c.Key, c.Value = "sz", "s1" })
	f.Log = []history.Event{
		event(1, "execution.submitted", "x", `{}`), event(2, "lease.acquired", "x", `{"lease_epoch":1,"expires_at":"`+at(3).Format(time.RFC3339)+`"}`),
		event(3, "lease.expired", "x", `{"lease_epoch":1}`), event(4, "lease.acquired", "x", `{"lease_epoch":2}`),
		event(5, "execution.completed", "x", `{"lease_epoch":2}`),
		event(6, "execution.submitted", "y", `{}`), event(7, "lease.acquired", "y", `{"lease_epoch":1}`),
		event(8, "execution.completed", "y", `{"lease_epoch":1}`),
		event(9, "execution.submitted", "z", `{}`), event(10, "execution.resumed", "z", `{"suspension_id":"u"}`),
		event(11, "execution.completed", "z", `{}`),
	}
	var ids []string
	for _, e := range f.Log {
		ids = append(ids, e.ID)
	}
	f.Followed = map[string][]string{"follower": ids}
	return f
}

func TestA_run_without_contradictions_has_no_findings(t *testing.T) {
	t.Parallel()
	for _, finding := range history.Check(good()) {
		t.Error(finding)
	}
}

// the call of that process and name.
func find(f *history.Facts, process, name string) *history.Call {
	i := slices.IndexFunc(f.Calls, func(c history.Call) bool { return c.Process == process && c.Name == name })
	return &f.Calls[i]
}

func change(f *history.Facts, id string, how func(*history.Execution)) {
	x := f.Executions[id]
	how(&x)
	f.Executions[id] = x
}

// bad is a contradiction in an otherwise good run, and the rule that finds it.
type bad struct {
	rule, what string
	spoil      func(f *history.Facts)
}

// amongCalls are contradictions between answers and what is stored.
func amongCalls() []bad {
	return []bad{
		{"I1", "an acknowledged execution is gone", func(f *history.Facts) { delete(f.Executions, "x") }},
		{"I1", "an acknowledged flow is gone", func(f *history.Facts) { delete(f.Flows, "f") }},
		{"I1", "an acknowledged signal is gone", func(f *history.Facts) { f.Signals["z"] = nil }},
		{"I8", "a key was answered with two executions", func(f *history.Facts) {
			again := *find(f, "c", history.Submit)
			again.Execution = "z"
			f.Calls = append(f.Calls, again)
		}},
		{"I8", "a key is stored twice", func(f *history.Facts) { change(f, "z", func(x *history.Execution) { x.Key = "kx" }) }},
		{"I7", "an execution has not ended", func(f *history.Facts) { change(f, "z", func(x *history.Execution) { x.Status = "suspended" }) }},
		{"I7", "an execution failed that should not", func(f *history.Facts) { change(f, "z", func(x *history.Execution) { x.Status = "failed" }) }},
		{"I7", "an execution was cancelled without a command", func(f *history.Facts) { change(f, "z", func(x *history.Execution) { x.Status = "cancelled" }) }},
		{"I7", "a flow has not ended", func(f *history.Facts) { f.Flows["f"] = "open" }},
		{"I5", "a result is another one", func(f *history.Facts) { change(f, "x", func(x *history.Execution) { x.Result = "other" }) }},
		{"I5", "an end that was read has changed", func(f *history.Facts) {
			find(f, "c", history.Get).Value = "failed"
		}},
		{"I4", "two leases completed it", func(f *history.Facts) {
			c := find(f, "w1", history.Complete)
			c.Outcome, c.Ended = history.Done, 9
		}},
		{"I3", "a stale worker wrote", func(f *history.Facts) {
			f.Calls = append(f.Calls, history.Call{Process: "w1", Number: 99, Name: history.Step, Key: "b", Execution: "x", Epoch: 1, Lease: "l1", Began: 11, Ended: 12, Outcome: history.Done})
		}},
		{"linear", "a stale worker wrote", func(f *history.Facts) {
			f.Calls = append(f.Calls, history.Call{Process: "w1", Number: 99, Name: history.Step, Key: "b", Execution: "x", Epoch: 1, Lease: "l1", Began: 11, Ended: 12, Outcome: history.Done})
		}},
		{"linear", "a reader saw an end before it was possible", func(f *history.Facts) {
			g := find(f, "c", history.Get)
			g.Began, g.Ended = 2, 3
		}},
		{"linear", "a reader does not find what was acknowledged", func(f *history.Facts) {
			g := find(f, "c", history.Get)
			g.Outcome, g.Code, g.Value = history.Refused, "execution_not_found", ""
		}},
		{"linear", "a cancel was refused before the end", func(f *history.Facts) {
			f.Calls = append(f.Calls, history.Call{Process: "d", Name: history.Cancel, Execution: "x", Began: 2, Ended: 3, Outcome: history.Refused, Code: "execution_not_active"})
		}},
		{"linear", "it was replayed before its end", func(f *history.Facts) {
			f.Calls = append(f.Calls, history.Call{Process: "d", Name: history.Replay, Execution: "x", Began: 5, Ended: 6, Outcome: history.Done})
		}},
	}
}

// amongRecords are contradictions in the log, the lease history, and what the store counts.
func amongRecords() []bad {
	return []bad{
		{"I2", "an epoch was granted twice", func(f *history.Facts) { find(f, "w1", history.Claim).Epoch = 2 }},
		{"I2", "leases overlap", func(f *history.Facts) { f.Leases["x"][1].Acquired = at(2) }},
		{"I2", "a lease was never closed", func(f *history.Facts) { f.Leases["x"][0].Expired = time.Time{} }},
		{"I10", "an epoch is missing in the lease history", func(f *history.Facts) { f.Leases["x"][1].Epoch = 3 }},
		{"I10", "an epoch is missing in the log", func(f *history.Facts) { f.Log[3].Data = json.RawMessage(`{"lease_epoch":3}`) }},
		{"I2", "a lease is closed that is not open", func(f *history.Facts) { f.Log[4].Data = json.RawMessage(`{"lease_epoch":1}`) }},
		{"I16", "a lease expired early", func(f *history.Facts) { f.Log[2].At = at(2) }},
		{"I6", "an event is missing", func(f *history.Facts) { f.Log = f.Log[:10] }},
		{"I6", "time runs backwards", func(f *history.Facts) { f.Log[4].At = at(1) }},
		{"I4", "it completes twice", func(f *history.Facts) { f.Log[9].Kind = "execution.completed" }},
		{"I5", "it is claimed after its end", func(f *history.Facts) {
			f.Log = append(f.Log, event(12, "lease.acquired", "x", `{"lease_epoch":3}`))
		}},
		{"I11", "a suspension is resumed twice", func(f *history.Facts) {
			f.Log = slices.Insert(f.Log, 10, event(10, "execution.resumed", "z", `{"suspension_id":"u"}`))
		}},
		{"I6", "a follower missed an event", func(f *history.Facts) { f.Followed["follower"] = f.Followed["follower"][1:] }},
		{"I6", "a follower saw another order", func(f *history.Facts) {
			ids := f.Followed["follower"]
			ids[0], ids[1] = ids[1], ids[0]
		}},
		{"I6", "a follower saw an event twice", func(f *history.Facts) { f.Followed["follower"] = append(f.Followed["follower"], "e11") }},
		{"I11", "a key of a signal named two", func(f *history.Facts) {
			again := *find(f, "c", history.Sign)
			again.Value = "s2"
			f.Calls = append(f.Calls, again)
		}},
		{"I11", "a signal was stored twice", func(f *history.Facts) { f.Signals["z"] = append(f.Signals["z"], history.Signal{ID: "s2"}) }},
		{"I12", "a member did not wait", func(f *history.Facts) { f.Log[4].Kind = "other" }},
		{"I13", "a cancelled execution succeeded", func(f *history.Facts) {
			change(f, "y", func(x *history.Execution) { x.Status, x.Result = "succeeded", "ry" })
		}},
		{"I9", "usage was booked twice", func(f *history.Facts) { f.Usage["x"], f.Budget.Used = 4, 4 }},
		{"I9", "usage was lost", func(f *history.Facts) { f.Budget.Used = 0 }},
		{"I9", "a reservation leaks", func(f *history.Facts) { f.Budget.Reserved = 1 }},
		{"step", "a stored step ran again", func(f *history.Facts) {
			f.Calls = append(f.Calls, history.Call{Process: "w2", Name: history.Effect, Execution: "x", Epoch: 2, Key: "a", Value: "key of a", Began: 10, Ended: 10, Outcome: history.Done})
		}},
		{"effect", "an effect key changes", func(f *history.Facts) {
			f.Calls = append(f.Calls, history.Call{Process: "w1", Name: history.Effect, Execution: "x", Epoch: 1, Key: "a", Value: "another", Began: 5, Ended: 5, Outcome: history.Done})
		}},
		{"doctor", "the system has found something", func(f *history.Facts) { f.Problems = []string{"a check failed"} }},
	}
}

func TestEach_contradiction_is_found_by_its_rule(t *testing.T) {
	t.Parallel()
	for _, b := range append(amongCalls(), amongRecords()...) {
		t.Run(b.rule+" "+b.what, func(t *testing.T) {
			t.Parallel()
			f := good()
			b.spoil(f)
			findings := history.Check(f)
			if !slices.ContainsFunc(findings, func(found history.Finding) bool { return found.Rule == b.rule }) {
				t.Errorf("%s was not found; found: %v", b.rule, findings)
			}
		})
	}
}

func TestA_child_may_be_cancelled_with_its_parent(t *testing.T) {
	t.Parallel()
	for parent, want := range map[string]int{"y": 0, "z": 1} { // y was cancelled
		f := good()
		f.Executions["child"] = history.Execution{ID: "child", Status: "cancelled", Expected: "succeeded", Parent: parent}
		for _, e := range []history.Event{event(12, "execution.submitted", "child", `{}`), event(13, "execution.completed", "child", `{}`)} {
			f.Log, f.Followed["follower"] = append(f.Log, e), append(f.Followed["follower"], e.ID)
		}
		if findings := history.Check(f); len(findings) != want {
			t.Errorf("a child of %s: %v", parent, findings)
		}
	}
}

func TestAn_unknown_call_may_have_taken_effect_or_not(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"succeeded", "cancelled"} {
		f := &history.Facts{
			Executions: map[string]history.Execution{"x": {ID: "x", Key: "k", Status: status}},
			Log: []history.Event{
				event(1, "execution.submitted", "x", `{}`), event(2, "lease.acquired", "x", `{"lease_epoch":1}`),
				event(3, "execution.completed", "x", `{"lease_epoch":1}`),
			},
			Calls: []history.Call{
				{Process: "c", Number: 1, Name: history.Submit, Key: "k", Began: 1, Outcome: history.Unknown},
				{Process: "w", Number: 1, Name: history.Claim, Execution: "x", Epoch: 1, Lease: "l", Began: 3, Ended: 3, Outcome: history.Done},
				{Process: "w", Number: 2, Name: history.Complete, Execution: "x", Epoch: 1, Lease: "l", Began: 4, Outcome: history.Unknown},
				{Process: "c", Number: 2, Name: history.Cancel, Execution: "x", Began: 4, Outcome: history.Unknown},
				{Process: "c", Number: 3, Name: history.Get, Execution: "x", Began: 9, Ended: 10, Outcome: history.Done, Value: status},
			},
		}
		for _, finding := range history.Check(f) {
			t.Error(finding)
		}
	}
}

func TestMany_unknown_calls_do_not_make_the_search_long(t *testing.T) {
	t.Parallel()
	f := &history.Facts{
		Executions: map[string]history.Execution{"x": {ID: "x", Key: "k", Status: "succeeded"}},
		Log: []history.Event{
			event(1, "execution.submitted", "x", `{}`), event(2, "lease.acquired", "x", `{"lease_epoch":1}`),
			event(3, "execution.completed", "x", `{"lease_epoch":1}`),
		},
	}
	call := func(c history.Call, began, ended int64, outcome history.Outcome) {
		c.Process, c.Number, c.Began, c.Ended, c.Outcome = "c", int64(len(f.Calls)), began, ended, outcome
		f.Calls = append(f.Calls, c)
	}
	for i := range int64(40) {
		call(history.Call{Name: history.Submit, Key: "k"}, i, 0, history.Unknown)
	}
	call(history.Call{Name: history.Claim, Execution: "x", Epoch: 1, Lease: "l"}, 50, 50, history.Done)
	for i := range int64(40) {
		call(history.Call{Name: history.Step, Execution: "x", Key: "a", Epoch: 1, Lease: "l"}, 60+i, 0, history.Unknown)
		call(history.Call{Name: history.Complete, Execution: "x", Epoch: 1, Lease: "l"}, 60+i, 0, history.Unknown)
		call(history.Call{Name: history.Get, Execution: "x"}, 60+i, 0, history.Unknown)
	}
	for _, finding := range history.Check(f) {
		t.Error(finding)
	}
}

func TestA_journal_keeps_the_calls_of_a_process_that_was_killed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "j")
	clock := int64(0)
	j, err := history.OpenJournal(path, "w", func() int64 { clock++; return clock })
	if err != nil {
		t.Fatal(err)
	}
	end, err := j.Begin(history.Call{Name: history.Step, Execution: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if err := end(history.Call{Name: history.Step, Execution: "x", Outcome: history.Done}); err != nil {
		t.Fatal(err)
	}
	if err := j.Note(history.Call{Name: history.Effect, Execution: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Begin(history.Call{Name: history.Complete, Execution: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"process":"w","numb`); err != nil { // cut off
		t.Fatal(err)
	}
	_ = file.Close()
	calls, err := history.ReadJournals(path, filepath.Join(t.TempDir(), "was never written"))
	if err != nil || len(calls) != 3 {
		t.Fatalf("%v, %v", calls, err)
	}
	for i, want := range []history.Outcome{history.Done, history.Done, history.Unknown} {
		if calls[i].Outcome != want {
			t.Errorf("call %d: %+v", i, calls[i])
		}
	}
}
