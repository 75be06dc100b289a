package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// outcomes are the terminal statuses.
var outcomes = []Status{Succeeded, Failed, Expired, Cancelled, Skipped}

func TestF23_the_table_of_kinds_and_outcomes(t *testing.T) {
	t.Parallel()
	const yes, no = EdgeSatisfied, EdgeImpossible
	for kind, want := range map[EdgeKind][]EdgeState{ // in the order of outcomes
		SuccessOnly: {yes, no, no, no, no},
		FailureOnly: {no, yes, yes, yes, no},
		AnyTerminal: {yes, yes, yes, yes, yes},
	} {
		for i, outcome := range outcomes {
			e := Edge{Kind: kind, State: EdgePending}
			if !e.Resolve(EndedRun{Status: outcome, Run: 2}, 9) || e.State != want[i] || e.End.Status != outcome || e.End.Run != 2 || e.Resolved != 9 {
				t.Errorf("%s by %s: %+v", kind, outcome, e)
			}
		}
		if !kind.Known() {
			t.Errorf("%s is known", kind)
		}
	}
	if EdgeKind("maybe").Known() || EdgeKind("").Known() {
		t.Error("there are three kinds")
	}
}

func TestF1_an_edge_leaves_pending_once_until_it_is_reopened(t *testing.T) {
	t.Parallel()
	e := Edge{Kind: SuccessOnly, State: EdgePending}
	e.Resolve(EndedRun{Status: Failed}, 1)
	if e.Resolve(EndedRun{Status: Succeeded, Run: 1}, 2) || e.State != EdgeImpossible || e.Resolved != 1 {
		t.Errorf("%+v", e)
	}
	e.reopen()
	if e.State != EdgePending || e.End != nil || e.Resolved != 0 {
		t.Errorf("%+v", e)
	}
	if !e.Resolve(EndedRun{Status: Succeeded, Run: 1}, 3) || e.State != EdgeSatisfied {
		t.Errorf("%+v", e)
	}
}

func TestF34_what_an_edge_gives_its_downstream(t *testing.T) {
	t.Parallel()
	result := &ResultRef{Epoch: 3, ContentType: "text/plain", Size: 4}
	from := NodeRef{Name: "up"}
	give := func(kind EdgeKind, pass string, end *EndedRun) (NamedInput, bool) {
		e := Edge{From: from, Kind: kind, Pass: pass, State: EdgePending}
		if end != nil {
			e.Resolve(*end, 7)
		}
		return e.Input()
	}
	in, ok := give(SuccessOnly, "x", &EndedRun{Status: Succeeded, Result: result})
	if diff := cmp.Diff(NamedInput{Name: "x", From: from, Outcome: Succeeded, Result: result, At: 7}, in); diff != "" || !ok {
		t.Error(diff)
	}
	in, ok = give(AnyTerminal, "x", &EndedRun{Status: Failed, Reason: "max_retries_exhausted"})
	if diff := cmp.Diff(NamedInput{Name: "x", From: from, Outcome: Failed, FailureReason: "max_retries_exhausted", At: 7}, in); diff != "" || !ok {
		t.Error(diff)
	}
	for what, gives := range map[string]func() (NamedInput, bool){
		"no name":    func() (NamedInput, bool) { return give(SuccessOnly, "", &EndedRun{Status: Succeeded}) },
		"impossible": func() (NamedInput, bool) { return give(SuccessOnly, "x", &EndedRun{Status: Failed}) },
		"pending":    func() (NamedInput, bool) { return give(SuccessOnly, "x", nil) },
	} {
		if in, ok := gives(); ok {
			t.Errorf("%s: %+v", what, in)
		}
	}
}

func TestF35_F36_of_inputs_that_share_a_name_the_one_resolved_first_is_frozen(t *testing.T) {
	t.Parallel()
	edge := func(from, pass string, at base.Time, outcome Status) Edge {
		e := Edge{From: NodeRef{Name: from}, Kind: SuccessOnly, Pass: pass, State: EdgePending}
		if at != 0 {
			e.Resolve(EndedRun{Status: outcome}, at)
		}
		return e
	}
	frozen := FreezeInputs([]Edge{
		edge("late", "x", 9, Succeeded), edge("early", "x", 4, Succeeded), edge("earlier-but-failed", "x", 1, Failed),
		edge("b", "w", 5, Succeeded), edge("a", "w", 5, Succeeded), edge("waits", "v", 0, Succeeded), edge("silent", "", 2, Succeeded),
	})
	var got []string
	for _, in := range frozen {
		got = append(got, in.Name+" of "+in.From.Name)
	}
	if diff := cmp.Diff([]string{"w of a", "x of early"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestF27_the_end_of_a_run_names_outcome_run_and_result(t *testing.T) {
	t.Parallel()
	s := begin(t, `{}`)
	if _, err := s.complete(s.claim(), &Payload{Data: []byte("out"), ContentType: "text/plain", Size: 3}); err != nil {
		t.Fatal(err)
	}
	end := s.x.EndedRun()
	want := EndedRun{Status: Succeeded, Result: &ResultRef{Of: s.x.ID, Epoch: 1, ContentType: "text/plain", Size: 3}}
	if diff := cmp.Diff(want, end); diff != "" {
		t.Error(diff)
	}
	s.x.ResultOf = base.IDOf(base.UUID{9}) // of a flow node: the bytes are those of another
	if end := s.x.EndedRun(); end.Result.Of != base.IDOf(base.UUID{9}) {
		t.Errorf("%+v", end.Result)
	}
	failed := begin(t, `{}`)
	if _, err := failed.fail(failed.claim(), "permanent"); err != nil {
		t.Fatal(err)
	}
	if end := failed.x.EndedRun(); end.Status != Failed || end.Reason == "" || end.Result != nil {
		t.Errorf("%+v", end)
	}
	empty := begin(t, `{}`)
	if _, err := empty.complete(empty.claim(), nil); err != nil {
		t.Fatal(err)
	}
	if end := empty.x.EndedRun(); end.Result != nil {
		t.Errorf("%+v", end)
	}
}
