package commands

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

func TestU173_what_work_waits_for_is_said_in_words(t *testing.T) {
	t.Parallel()
	type c = flowfabric.Condition
	for want, condition := range map[string]c{
		"any signal":                  {Type: "single"},
		"signal paid at shop":         {Type: "single", Key: "shop", Name: "paid"},
		"an operator":                 {Type: "operator_only"},
		"its timeout":                 {Type: "timeout_only"},
		"all of (an operator; x)":     {Type: "all_of", Members: []c{{Type: "operator_only"}, {Type: "x"}}},
		"any of (signal a; signal b)": {Type: "any_of", Members: []c{{Type: "single", Name: "a"}, {Type: "single", Name: "b"}}},
		"signal approved from 2 different sources (operator or approver) at a, b": {
			Type: "count", N: 2, CountKind: "distinct_sources", Name: "approved", SourceTypes: []string{"operator", "approver"}, Keys: []string{"a", "b"},
		},
		"any signal from 2 different sources": {Type: "count", N: 2, CountKind: "distinct_sources"},
		"any signal 3 times at a":             {Type: "count", N: 3, CountKind: "distinct_signals", Keys: []string{"a"}},
		"signal done from tool at 2 of a, b":  {Type: "count", N: 2, CountKind: "distinct_waitpoints", Name: "done", SourceTypes: []string{"tool"}, Keys: []string{"a", "b"}},
	} {
		if got := conditionText(condition); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	record := api.SuspensionRecord{Until: c{Type: "operator_only"}, TimeoutAt: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), OnTimeout: flowfabric.FailOnTimeout}
	if got := waitText(&show.Printer{}, record); got != "an operator; times out 2026-05-01T12:00:00.000Z: fail" {
		t.Error(got)
	}
}

func TestU173_the_flags_of_a_link_say_whom_it_asks_and_what(t *testing.T) {
	t.Parallel()
	f := linkFlags{approver: "ana", expires: "90m", decisions: []string{"ship=a = b=approved", "stop==rejected"}}
	o, err := f.options()
	if err != nil || o.ExpiresIn != 90*time.Minute || o.Decisions[0] != (flowfabric.LinkChoice{ID: "ship", Label: "a = b", SignalName: "approved"}) ||
		o.Decisions[1] != (flowfabric.LinkChoice{ID: "stop", SignalName: "rejected"}) {
		t.Errorf("%+v %v", o, err)
	}
	for _, bad := range []linkFlags{{}, {approver: "ana", expires: "soon"}, {approver: "ana", decisions: []string{"ship"}}, {approver: "ana", decisions: []string{"ship=it"}}} {
		if _, err := bad.options(); show.ExitCode(err) != show.ExitInvalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestU173_a_watched_list_is_written_again_only_when_it_reads_otherwise(t *testing.T) {
	t.Parallel()
	for terminal, want := range map[bool]string{false: "a\nb\n", true: clearScreen + "a\n" + clearScreen + "b\n" + clearScreen + "none\n"} {
		synctest.Test(t, func(t *testing.T) {
			var out, errs bytes.Buffer
			s := &session{App: &App{Out: &out, Err: &errs}, printer: &show.Printer{Out: &out, Err: &errs, Terminal: terminal, Now: time.Now}}
			texts := []string{"a", "a", "b", "", ""}
			done := errors.New("seen all")
			ctx, cancel := context.WithCancelCause(t.Context())
			view := show.View[string]{ID: strings.Clone, None: "none", Columns: []show.Column[string]{{Name: "X", Text: strings.Clone}}}
			err := s.watch(ctx, func(p *show.Printer) error {
				p.Quiet = texts[0] != "" // ids alone, without a head
				items := texts[:1]
				if texts[0] == "" {
					items = nil
				}
				if texts = texts[1:]; len(texts) == 0 {
					cancel(done)
				}
				return show.All(p, view, items)
			})
			if !errors.Is(err, done) || out.String() != want || errs.Len() > 0 {
				t.Errorf("%v %q %q, want %q", err, out.String(), errs.String(), want)
			}
		})
	}
}
