package examples

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	pipeline "github.com/flowfabric/flowfabric/examples/pipeline/story"
	race "github.com/flowfabric/flowfabric/examples/race/story"
	"github.com/flowfabric/flowfabric/examples/stage"
)

// flows are the flows of a kind, the outermost ones, newest first and with counts.
func flows(t *testing.T, c *flowfabric.Client, kind string) []*flowfabric.FlowView {
	t.Helper()
	var all []*flowfabric.FlowView
	for listed, err := range c.Flows().List(t.Context(), flowfabric.FlowQuery{Kind: kind}) {
		if err != nil {
			t.Fatal(err)
		}
		flow, err := c.Flows().Get(t.Context(), listed.ID)
		if err != nil {
			t.Fatal(err)
		}
		if flow.ParentID == "" {
			all = append(all, flow)
		}
	}
	return all
}

// onlyFlow is the one flow of a kind.
func onlyFlow(t *testing.T, c *flowfabric.Client, kind string) *flowfabric.FlowView {
	t.Helper()
	all := flows(t, c, kind)
	if len(all) != 1 {
		t.Fatalf("%d flows of kind %s, want one", len(all), kind)
	}
	return all[0]
}

// members are the executions of a flow, by name.
func members(t *testing.T, c *flowfabric.Client, flow flowfabric.ID) map[string]*flowfabric.Execution {
	t.Helper()
	all := map[string]*flowfabric.Execution{}
	for m, err := range c.Flows().Members(t.Context(), flow) {
		if err != nil {
			t.Fatal(err)
		}
		if all[m.Name], err = c.Get(t.Context(), m.ID); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// flowEvents are the events of a flow itself, in order.
func flowEvents(t *testing.T, c *flowfabric.Client, id flowfabric.ID) []string {
	t.Helper()
	which := ops.EventFilter{FlowID: id, Kinds: []string{"flow."}}
	page, err := c.Events().Read(t.Context(), ops.ReadOptions{After: api.FromStart, EventFilter: which})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, event := range page.Events {
		if event.FlowID == id {
			kinds = append(kinds, event.Kind)
		}
	}
	return kinds
}

func TestU239_a_failed_test_skips_the_rest_of_a_release_and_a_replay_brings_it_to_its_end(t *testing.T) {
	t.Parallel()
	everywhere(t, pipeline.Pipeline, func(t *testing.T, p *place) {
		c := p.open(t, "default")
		flow := onlyFlow(t, c, "release")
		if flow.State != flowfabric.FlowCompleted || flow.Nodes != 7 || flow.Edges != 11 || flow.Counts["completed"] != 7 {
			t.Errorf("%+v", flow)
		}
		if got, want := flowEvents(t, c, flow.ID), []string{"flow.created", "flow.failed", "flow.reopened", "flow.completed"}; !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		all := members(t, c, flow.ID)
		runs := map[string]int{}
		for name, x := range all {
			runs[name] = x.RunIndex
			if x.Status != flowfabric.StatusSucceeded {
				t.Errorf("%s is %s", name, x.Status)
			}
		}
		if want := map[string]int{"build": 0, "unit": 0, "browser": 1, "load": 0, "sign-off": 1, "roll-out": 1, "alarm": 0}; !maps.Equal(runs, want) {
			t.Errorf("runs %v, want %v", runs, want)
		}
		for suite, machine := range map[string]string{"browser": "desktop", "load": "big"} {
			var report pipeline.Report
			if err := all[suite].Result.Decode(&report); err != nil || report.Machine != machine || report.Image != "image-of-4.2" {
				t.Errorf("%s: %+v, %v", suite, report, err)
			}
		}
		wantText(t, all["alarm"], "browser is failed: permanent")
		wantText(t, all["roll-out"], "image-of-4.2, approved by ana@example.com, is on one machine, then all of them")
		wantLinks(t, c, all["sign-off"].ID, "decided")
	})
}

// wantText fails the test on another result.
func wantText(t *testing.T, x *flowfabric.Execution, want string) {
	t.Helper()
	if got := string(x.Result.Data); got != want {
		t.Errorf("%s left %q, want %q", x.Name, got, want)
	}
}

func TestU240_the_first_good_answer_wins_and_who_still_thinks_is_cancelled(t *testing.T) {
	t.Parallel()
	everywhere(t, race.Race, func(t *testing.T, p *place) {
		c := p.open(t, "default")
		flow := onlyFlow(t, c, "race")
		if flow.State != flowfabric.FlowCompleted {
			t.Errorf("%+v", flow)
		}
		all := members(t, c, flow.ID)
		for name, want := range map[string]flowfabric.Status{
			"hasty": flowfabric.StatusFailed, "sound": flowfabric.StatusSucceeded, "chosen": flowfabric.StatusSucceeded,
			"deep": flowfabric.StatusCancelled, "deeper": flowfabric.StatusCancelled, "deepest": flowfabric.StatusCancelled,
		} {
			x := all[name]
			if x.Status != want || want == flowfabric.StatusCancelled && (x.Reason != "join_satisfied" || x.Cancellation.Source != "join") {
				t.Errorf("%s is %s: %s, %+v", name, x.Status, x.Reason, x.Cancellation)
			}
		}
		var best race.Answer
		if err := all["chosen"].Result.Decode(&best); err != nil || best.Runner != "sound" || best.Tokens != 6 {
			t.Errorf("%+v, %v", best, err)
		}
		wantStanding(t, c, all["sound"].ID, race.Standing{State: "done", Words: 6})
		wantStanding(t, c, all["hasty"].ID, race.Standing{State: "knows nothing"})
		if texts, ends := said(t, c, all["sound"].ID); !slices.Equal(texts, []string{best.Text}) || !slices.Equal(ends, []string{"attempt_success"}) {
			t.Errorf("the winner has said %q and ended by %q", texts, ends)
		}
	})
}

// wantStanding fails the test on another summary document of a runner.
func wantStanding(t *testing.T, c *flowfabric.Client, id flowfabric.ID, want race.Standing) {
	t.Helper()
	summary, err := c.Streams().Summary(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var standing race.Standing
	if err := json.Unmarshal(summary.Document, &standing); err != nil || standing != want {
		t.Errorf("%s, want %+v: %v", summary.Document, want, err)
	}
}

// A chat endpoint answers for all runners: one of them wins, and none fails.
func TestU234_a_chat_endpoint_may_run_the_race(t *testing.T) {
	t.Parallel()
	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"choices": [{"message": {"role": "assistant", "content": "because"}}], "usage": {"total_tokens": 7}}`))
	}))
	t.Cleanup(func() {
		chat.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	story := stage.Story{Name: "race", Tell: func(ctx context.Context, s *stage.Stage) error { return race.Tell(ctx, s, race.ChatAt(chat.URL)) }}
	on(t, story, "sqlite", func(t *testing.T) stage.Stage { return stage.Stage{Store: sqliteStore(t)} }, func(t *testing.T, p *place) {
		c := p.open(t, "default")
		flow := onlyFlow(t, c, "race")
		var best race.Answer
		if err := members(t, c, flow.ID)["chosen"].Result.Decode(&best); err != nil || best.Text != "because" || !slices.Contains(race.Runners, best.Runner) {
			t.Errorf("%+v, %v", best, err)
		}
		if flow.State != flowfabric.FlowCompleted || flow.Counts["failed"] != 0 {
			t.Errorf("%+v", flow)
		}
	})
}

// wantRounds fails the test unless each policy of a cancel has reached the members that it is for.
func wantRounds(t *testing.T, c *flowfabric.Client, parcels map[string]*flowfabric.Execution) {
	t.Helper()
	const succeeded, cancelled = flowfabric.StatusSucceeded, flowfabric.StatusCancelled
	for policy, want := range map[flowfabric.CancelPolicy][]flowfabric.Status{
		flowfabric.CancelFlowOnly: {succeeded, succeeded, succeeded},
		flowfabric.CancelPending:  {succeeded, succeeded, cancelled},
		flowfabric.CancelAll:      {succeeded, cancelled, cancelled},
	} {
		for i, name := range []string{"first", "second", "third"} {
			x := parcels[string(policy)+"-"+name]
			if x == nil || x.Status != want[i] || x.Status == cancelled && (x.Reason != "flow_cancelled" || x.Cancellation.Source != "flow") {
				t.Errorf("%s of %s: %+v, want %s", name, policy, x, want[i])
			}
		}
	}
	rounds := flows(t, c, "round")
	if len(rounds) != 3 {
		t.Errorf("%d rounds, want three", len(rounds))
	}
	for _, f := range rounds {
		if f.State != flowfabric.FlowCancelled || f.Cancelled == nil || f.Cancelled.Reason != "the van is needed" {
			t.Errorf("%+v", f)
		}
	}
}
