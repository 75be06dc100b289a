package examples

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric"
	budget "github.com/flowfabric/flowfabric/examples/budget/story"
	"github.com/flowfabric/flowfabric/examples/stage"
)

func TestU241_prompts_reserve_are_warned_and_ask_for_more_tokens(t *testing.T) {
	t.Parallel()
	everywhere(t, budget.Budget, func(t *testing.T, p *place) {
		c := p.open(t, "default")
		status, err := c.Budgets().Get(t.Context(), p.Name)
		if err != nil {
			t.Fatal(err)
		}
		if n := status.Dimensions["tokens"]; n.Used != 1550 || n.Overrun != 450 || n.Reserved != 0 || n.EffectiveHard != 3200 {
			t.Errorf("%+v", n)
		}
		if cost := status.Dimensions[flowfabric.CostMicros].Used; cost != 40_000 || status.Breaches != 1 || status.SoftBreaches != 1 || status.LiveHolds != 0 {
			t.Errorf("it cost %d: %+v", cost, status)
		}
		all := executions(t, c, p.Name)
		if len(all) != 5 {
			t.Fatalf("%d prompts, want five", len(all))
		}
		for _, x := range all {
			if x.Status != flowfabric.StatusSucceeded || x.TotalAttempts != 1 {
				t.Errorf("%+v", x)
			}
		}
		waited := map[string]int{}
		for _, x := range all {
			var prompt budget.Prompt
			if err := x.Input.Decode(&prompt); err != nil {
				t.Fatal(err)
			}
			if slices.Contains(events(t, c, x.ID), "execution.blocked") {
				waited[prompt.Question]++
			}
			if prompt.MaxTokens == 0 {
				wantAsked(t, c, x.ID)
			}
		}
		if len(waited) != 2 || waited["why is snow white?"] != 1 {
			t.Errorf("for room waited %v, want one of the first three and the one about snow", waited)
		}
	})
}

// wantAsked fails the test unless the work asked for more, somebody approved it by a link, and its tokens count once.
func wantAsked(t *testing.T, c *flowfabric.Client, id flowfabric.ID) {
	t.Helper()
	causes, signals := waits(t, c, id)
	if !slices.Equal(causes, []string{"budget_approved"}) || len(signals) != 1 || signals[0].Name != "budget_approved" || signals[0].SourceType != "approver" {
		t.Errorf("causes %q, signals %+v", causes, signals)
	}
	wantLinks(t, c, id, "decided")
	if used, err := c.Executions().Usage(t.Context(), id); err != nil || used.Amounts["tokens"] != 600 {
		t.Errorf("%+v, %v", used, err)
	}
}

// A chat endpoint in place of the fake has answers of its own lengths: more essays are ordered until the limit is passed.
func TestU234_a_chat_endpoint_may_replace_the_model(t *testing.T) {
	t.Parallel()
	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Messages  []struct{ Role, Content string }
			MaxTokens int64 `json:"max_tokens"`
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || len(asked.Messages) != 1 || asked.Messages[0].Role != "user" {
			t.Errorf("%+v, %v", asked, err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"choices": [{"message": {"role": "assistant", "content": "because"}}], "usage": {"total_tokens": 250}}`))
	}))
	t.Cleanup(func() {
		chat.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	story := stage.Story{Name: "budget", Tell: func(ctx context.Context, s *stage.Stage) error { return budget.Tell(ctx, s, budget.ChatAt(chat.URL)) }}
	on(t, story, "sqlite", func(t *testing.T) stage.Stage { return stage.Stage{Store: sqliteStore(t)} }, func(t *testing.T, p *place) {
		all := executions(t, p.open(t, "default"), p.Name)
		if len(all) != 6 { // three short ones, one that waits, and two essays: 750, 1000, and 1250 are too many
			t.Errorf("%d prompts, want six", len(all))
		}
		for _, x := range all {
			if x.Status != flowfabric.StatusSucceeded || string(x.Result.Data) != "because" {
				t.Errorf("%+v", x)
			}
		}
	})
}
