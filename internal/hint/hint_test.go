package hint

import "testing"

func TestU157_a_hint_is_in_the_words_of_its_reader(t *testing.T) {
	t.Parallel()
	flags := func(name string) string { return map[string]string{"max_affected": "--max-affected"}[name] }
	facts := func(name string) string { return map[string]string{"limit": "5"}[name] }
	for text, want := range map[string][3]string{
		"narrow the filter, or raise `max_affected`": {"narrow the filter, or raise max_affected", "narrow the filter, or raise MaxAffected", "narrow the filter, or raise --max-affected"},
		"name one with `FlowFabric-Namespace`":       {"name one with FlowFabric-Namespace", "name one with ConnectConfig.Namespace", "name one with --namespace or FF_NAMESPACE"},
		"`current.limit` is the limit":               {"current.limit is the limit", `Current["limit"] is the limit`, "5 is the limit"},
		"`current.missing_edges`":                    {"current.missing_edges", `Current["missing_edges"]`, "missing edges"},
		"see `GET /v1/workers`":                      {"see GET /v1/workers", "see Workers.List", "see flowfabric workers list"},
		"`budget_ids` or `grace_ms`":                 {"budget_ids or grace_ms", "BudgetIDs or Grace", "budget_ids or grace_ms"},
		"run `openssl rand -hex 32`":                 {"run openssl rand -hex 32", "run openssl rand -hex 32", "run openssl rand -hex 32"},
		"nothing, or one `open":                      {"nothing, or one `open", "nothing, or one `open", "nothing, or one `open"},
		"":                                           {},
	} {
		if got := [3]string{Plain(text), Go(text), Command(text, flags, facts)}; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if Flag("FlowFabric-Namespace") != "--namespace" || Flag("Retry-After") != "" || Flag("X-Else") != "" {
		t.Error("flags of headers")
	}
}
