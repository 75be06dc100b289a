package store

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// What is read is written and read again: it must be the same, and nothing may panic.

func FuzzExecutionRow(f *testing.F) {
	for _, x := range []*core.Execution{runningExecution(), admittedExecution()} {
		p := RowOf(x)
		f.Add(p.Origin, p.State)
		f.Add(unsealed(f, p.Origin), unsealed(f, p.State)) // whose bytes mean something when they change
	}
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, origin, state []byte) {
		class := &core.Class{ID: 1}
		p := Row{Status: core.Running, Class: 1, Origin: origin, State: state, Input: []byte("x")}
		x, err := p.Execution(class, nil)
		if err != nil {
			mustBeCorruption(t, err)
			return
		}
		x.Input.Size = 1 // the bytes that are there decide
		again := RowOf(x)
		back, err := again.Execution(class, nil)
		if err != nil || !reflect.DeepEqual(x, back) {
			t.Fatalf("read\n%s\nthen\n%s\n%v", show(x), show(back), err)
		}
	})
}

func FuzzHistoryRow(f *testing.F) {
	rec := core.LeaseRecord{EndedAt: 5, End: core.EndComplete, Result: &core.Payload{Data: []byte("r")}, Answer: json.RawMessage(`{}`)}
	row := HistoryRowOf(&rec)
	f.Add(row.Body, int64(5), uint8(0), []byte{})
	f.Add(unsealed(f, row.Body), int64(5), uint8(0), []byte{})
	metered := core.LeaseRecord{EndedAt: 5, End: core.EndRelease, Attempt: *admittedExecution().Attempt}
	f.Add(HistoryRowOf(&metered).Body, int64(5), uint8(0), []byte{})
	f.Add(row.Body, int64(5), uint8(core.EndedFailure), EncodePatch(core.AttemptPatch{EndedAt: 7, Failure: &core.Failure{Message: "m"}}))
	f.Fuzz(func(t *testing.T, body []byte, ended int64, state uint8, patch []byte) {
		for _, has := range []bool{false, true} {
			row := HistoryRow{EndedAt: base.Time(ended), Body: body, PatchState: core.AttemptState(state), PatchBody: patch, HasResult: has}
			rec, err := row.Record(base.ID{})
			if err != nil {
				mustBeCorruption(t, err)
				continue
			}
			if rec.Result != nil {
				rec.Result.Data, rec.Result.Size = []byte{}, 0
			}
			again := HistoryRowOf(&rec)
			back, err := again.Record(base.ID{})
			if err != nil || !reflect.DeepEqual(rec, back) {
				t.Fatalf("read\n%s\nthen\n%s\n%v", show(rec), show(back), err)
			}
		}
	})
}

func FuzzCommit(f *testing.F) {
	f.Add(EncodeCommit(nil))
	f.Add(EncodeCommit(completions(3)))
	f.Add(unsealed(f, EncodeCommit(completions(3))))
	told := runCycle(f, 2)
	f.Add(EncodeCommit(slices.Concat(told.submitted, told.acquired, told.completed)))
	f.Fuzz(func(t *testing.T, data []byte) {
		events, err := DecodeCommit(data)
		if err != nil {
			mustBeCorruption(t, err)
			return
		}
		back, err := DecodeCommit(EncodeCommit(events))
		if err != nil || !reflect.DeepEqual(events, back) {
			t.Fatalf("read\n%+v\nthen\n%+v\n%v", events, back, err)
		}
		for i := range events {
			if string(events[i].Data.JSON()) != string(back[i].Data.JSON()) {
				t.Fatalf("read\n%s\nthen\n%s", events[i].Data.JSON(), back[i].Data.JSON())
			}
		}
	})
}

func mustBeCorruption(t *testing.T, err error) {
	t.Helper()
	if base.CodeOf(err) != base.CodeCorruption {
		t.Fatal(err)
	}
}
