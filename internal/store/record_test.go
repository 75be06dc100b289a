package store

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func TestL8_every_field_of_an_execution_comes_back(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		x := drawExecution(t)
		row := RowOf(x)
		back, err := row.Execution(x.Class, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := *x
		if want.Result != nil {
			result := *want.Result
			result.Data = nil // lies in the lease history
			want.Result = &result
		}
		if !reflect.DeepEqual(&want, back) {
			t.Fatalf("wrote\n%s\nread\n%s", show(&want), show(back))
		}
		again := ChangedRowOf(back)
		if string(again.State) != string(row.State) {
			t.Fatalf("equal records have different states:\n%x\n%x", row.State, again.State)
		}
	})
}

func TestL7_an_empty_input_is_not_an_unloaded_one(t *testing.T) {
	t.Parallel()
	x := runningExecution()
	x.Input = core.Payload{ContentType: "text/csv"}
	if row := RowOf(x); row.Input == nil || len(row.Input) != 0 {
		t.Fatalf("an empty input became %v", row.Input)
	}
	x.Input.Size = 5
	if row := RowOf(x); row.Input != nil {
		t.Fatalf("an unloaded input became %v", row.Input)
	}
}

func TestL40_every_field_of_a_lease_record_comes_back(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		rec := drawRecord(t)
		row := HistoryRowOf(&rec)
		back, err := row.Record(rec.ExecutionID)
		if err != nil {
			t.Fatal(err)
		}
		rec.Replaces = false // told to the store, not kept
		if !reflect.DeepEqual(rec, back) {
			t.Fatalf("wrote\n%s\nread\n%s", show(rec), show(back))
		}
	})
}

func TestL30_a_patch_gives_the_attempt_its_final_state(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		rec := drawRecord(t)
		rec.Replaces = false
		row := HistoryRowOf(&rec)
		patch := core.AttemptPatch{State: core.EndedFailure, EndedAt: drawTime(t, "ended"), Failure: drawMaybe(t, "failure", drawFailure)}
		row.PatchState, row.PatchBody = patch.State, EncodePatch(patch)
		back, err := row.Record(rec.ExecutionID)
		if err != nil {
			t.Fatal(err)
		}
		rec.Attempt.State, rec.Attempt.EndedAt, rec.Attempt.Failure = patch.State, patch.EndedAt, patch.Failure
		if !reflect.DeepEqual(rec, back) {
			t.Fatalf("wanted\n%s\nread\n%s", show(rec), show(back))
		}
	})
}

func TestE24_every_field_of_an_event_comes_back(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(rapid.Custom(drawEvent), 0, 2*manyKnown).Draw(t, "events")
		back, err := DecodeCommit(EncodeCommit(events))
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			if class := events[i].Class; class != nil {
				events[i].Class = &core.Class{Namespace: class.Namespace, Lane: class.Lane, Kind: class.Kind}
			}
		}
		if len(events) != len(back) || len(events) > 0 && !reflect.DeepEqual(events, back) {
			t.Fatalf("wrote\n%+v\nread\n%+v", events, back)
		}
	})
}

func TestE24_shared_texts_of_a_commit_are_written_once(t *testing.T) {
	t.Parallel()
	one := EncodeCommit(completions(1))
	hundred := EncodeCommit(completions(100))
	each := (len(hundred) - len(one)) / 99
	if each > 80 {
		t.Fatalf("an event beyond the first takes %d bytes", each)
	}
	back, err := DecodeCommit(hundred)
	if err != nil || back[0].Class != back[99].Class {
		t.Fatalf("events of one class do not share it: %v", err)
	}
}

func TestBytes_cut_short_or_too_long_are_corruption(t *testing.T) {
	t.Parallel()
	x := runningExecution()
	row := RowOf(x)
	for n := range row.State {
		cut := row
		cut.State = row.State[:n]
		if _, err := cut.Execution(x.Class, nil); !errors.Is(err, &base.Error{Code: base.CodeCorruption}) {
			t.Fatalf("a state of %d bytes out of %d: %v", n, len(row.State), err)
		}
	}
	long := row
	long.State = append([]byte{}, append(row.State, 0)...)
	if _, err := long.Execution(x.Class, nil); base.CodeOf(err) != base.CodeCorruption {
		t.Fatalf("a state with a byte too many: %v", err)
	}
	newer := row
	newer.State = append([]byte{rowVersion + 1}, row.State[1:]...)
	if _, err := newer.Execution(x.Class, nil); base.CodeOf(err) != base.CodeCorruption {
		t.Fatalf("a state of another version: %v", err)
	}
	bad := row
	bad.Status = 99
	if _, err := bad.Execution(x.Class, nil); base.CodeOf(err) != base.CodeCorruption {
		t.Fatalf("a status that does not exist: %v", err)
	}
	commit := EncodeCommit(completions(3))
	for n := range commit {
		if _, err := DecodeCommit(commit[:n]); base.CodeOf(err) != base.CodeCorruption {
			t.Fatalf("a commit of %d bytes out of %d: %v", n, len(commit), err)
		}
	}
}

func show(v any) string {
	text, _ := json.MarshalIndent(v, "", " ")
	return string(text)
}
