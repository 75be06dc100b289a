package core

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

func TestS36_a_quota_without_settings_limits_nothing_a_minute_long(t *testing.T) {
	t.Parallel()
	var s QuotaSettings
	if err := s.Normalize(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(QuotaSettings{WindowMS: 60_000}, s); diff != "" {
		t.Error(diff)
	}
}

func TestS36_settings_are_held_to_their_bounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		field string // "" passes
		edit  func(*QuotaSettings)
	}{
		{"no rate", "", func(s *QuotaSettings) { s.RateLimit = 0 }},
		{"the highest rate", "", func(s *QuotaSettings) { s.RateLimit = 1_000_000 }},
		{"a rate above it", "rate_limit", func(s *QuotaSettings) { s.RateLimit = 1_000_001 }},
		{"a rate below zero", "rate_limit", func(s *QuotaSettings) { s.RateLimit = -1 }},
		{"the shortest window", "", func(s *QuotaSettings) { s.WindowMS = 1000 }},
		{"a shorter window", "window_ms", func(s *QuotaSettings) { s.WindowMS = 999 }},
		{"a negative window", "window_ms", func(s *QuotaSettings) { s.WindowMS = -1 }},
		{"the longest window", "", func(s *QuotaSettings) { s.WindowMS = 86_400_000 }},
		{"a longer window", "window_ms", func(s *QuotaSettings) { s.WindowMS = 86_400_001 }},
		{"the most slots", "", func(s *QuotaSettings) { s.ConcurrencyLimit = 1_000_000 }},
		{"more slots", "concurrency_limit", func(s *QuotaSettings) { s.ConcurrencyLimit = 1_000_001 }},
		{"fewer than no slots", "concurrency_limit", func(s *QuotaSettings) { s.ConcurrencyLimit = -1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := QuotaSettings{RateLimit: 1, ConcurrencyLimit: 1}
			c.edit(&s)
			err := s.Normalize()
			if c.field == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			expect(t, err, base.CodeInvalidArgument, c.field)
		})
	}
}

func TestS36_a_quota_id_is_a_name(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"a", "Gpu.eu-1:x_y", strings.Repeat("q", 128)} {
		if err := CheckQuotaID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"", "-a", "a/b", "a b", "é", strings.Repeat("q", 129)} {
		expect(t, CheckQuotaID(id), base.CodeInvalidArgument, "quota_id")
	}
}

func TestS36_a_change_is_told_once_with_the_old_and_the_new_settings(t *testing.T) {
	t.Parallel()
	fx := &Effects{Now: storyStart, Actor: Actor{Type: "operator", ID: "ann"}, RequestID: "r"}
	q := NewQuota("gpu", fx.Now)
	first := QuotaSettings{RateLimit: 5, WindowMS: base.Minute}
	second := QuotaSettings{RateLimit: 5, WindowMS: base.Minute, ConcurrencyLimit: 2, PerKey: true}
	if !q.Change(fx, first) || q.Change(fx, first) {
		t.Fatal("only what differs is a change")
	}
	fx.Now = fx.Now.Add(5)
	if !q.Change(fx, second) {
		t.Fatal("it differs")
	}
	q.Delete(fx)
	want := Quota{ID: "gpu", Settings: second, Revision: 2, CreatedAt: storyStart, UpdatedAt: storyStart.Add(5)}
	if diff := cmp.Diff(want, *q); diff != "" {
		t.Error(diff)
	}
	var told []string
	for _, e := range fx.Events {
		told = append(told, e.Kind+" "+e.Actor.ID+" "+string(e.Data.JSON()))
	}
	const one = `{"rate_limit":5,"window_ms":60000,"concurrency_limit":0,"per_key":false}`
	const two = `{"rate_limit":5,"window_ms":60000,"concurrency_limit":2,"per_key":true}`
	diff := cmp.Diff([]string{
		`quota.changed ann {"quota":"gpu","new":` + one + `}`,
		`quota.changed ann {"quota":"gpu","old":` + one + `,"new":` + two + `}`,
		`quota.changed ann {"quota":"gpu","old":` + two + `}`,
	}, told)
	if diff != "" {
		t.Error(diff)
	}
}
