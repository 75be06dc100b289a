package scenario

import (
	"slices"
	"testing"
)

func TestS24_S41_keys_works_off_a_backlog_with_a_key_each_and_tells_the_ratio(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, cfg Config) {
		report := run(t, "keys", cfg, "fairness.many.submit", "quota.many.submit")
		for _, want := range []string{"fairness.ratio", "quota.ratio", "fairness.few.per_s", "quota.many.per_s", "quota.many.heap_bytes.waiting"} {
			if report.Samples[0].Counts[want] < 0 || report.Summary.Counts[want].N == 0 {
				t.Errorf("%s is not told: %v", want, report.Samples[0].Counts)
			}
		}
		var names []string
		for _, c := range report.Samples[0].Checks {
			names = append(names, c.Name)
		}
		for _, want := range []string{"fairness.few.succeeded", "fairness.many.lost", "quota.many.ended_twice"} {
			if !slices.Contains(names, want) {
				t.Errorf("%s is not looked at: %v", want, names)
			}
		}
	})
}

func TestS24_keys_refuses_variants_that_it_does_not_have(t *testing.T) {
	t.Parallel()
	if _, err := Run(t.Context(), named(t, "keys"), Config{Store: "sqlite:" + t.TempDir(), Quick: true, Variants: []string{"happy"}}); err == nil {
		t.Error("it ran")
	}
}
