package base

import (
	"strings"
	"testing"
)

const (
	someTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	someState = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"
)

func TestU215_a_well_formed_trace_context_is_kept_as_it_came(t *testing.T) {
	t.Parallel()
	got := ParseTrace(someTrace, someState, "user=7;secret=no,plan=gold")
	if want := (Trace{Parent: someTrace, State: someState, Baggage: "user=7;secret=no,plan=gold"}); got == nil || *got != want {
		t.Errorf("got %+v", got)
	}
	if id := TraceIDOf(got.Parent); id != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("trace id %q", id)
	}
}

func TestU215_a_malformed_traceparent_counts_as_absent_and_takes_the_tracestate_with_it(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing": "", "rubbish": "rubbish", "too short": someTrace[:54], "capital letters": strings.ToUpper(someTrace),
		"no trace id": "00-00000000000000000000000000000000-b7ad6b7169203331-01", "no parent id": "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"the forbidden version": "ff" + someTrace[2:], "more than version 00 has": someTrace + "-more", "no dash": strings.Replace(someTrace, "-", "_", 1),
		"a later version that goes on without a dash": "01" + someTrace[2:] + "x", "not a version": "0g" + someTrace[2:],
		"not hexadecimal": strings.Replace(someTrace, "0af7", "0xf7", 1), "a blank before": " " + someTrace,
	} {
		if got := ParseTrace(text, someState, ""); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
		if got := ParseTrace(text, someState, "a=b"); got == nil || *got != (Trace{Baggage: "a=b"}) {
			t.Errorf("%s, with baggage: %+v", name, got)
		}
	}
}

func TestU215_of_a_later_version_is_kept_what_version_00_has(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{"01": "01", "ff": "01", "02": "00", "00": "00"} {
		for _, rest := range []string{"", "-what-the-future-brings"} {
			got := ParseTrace("cc"+someTrace[2:53]+flags+rest, "", "")
			if got == nil || got.Parent != someTrace[:53]+want {
				t.Errorf("flags %s, rest %q: %+v", flags, rest, got)
			}
		}
	}
}

func TestU215_a_tracestate_or_baggage_that_is_malformed_or_too_long_is_left_out_alone(t *testing.T) {
	t.Parallel()
	largest := "a=" + strings.Repeat("x", 510)
	for state, kept := range map[string]bool{
		largest: true, largest + "x": false, "a": false, "A=1": false, "=1": false, "a=b=c": false, "a=\x01": false, "a=ü": false, ",": false,
		"a=1, b=2": true, "t@sys=1": true, strings.TrimSuffix(strings.Repeat("a=1,", 33), ","): false,
	} {
		got := ParseTrace(someTrace, state, "")
		if got == nil || got.Parent != someTrace || (got.State == state) != kept || !kept && got.State != "" {
			t.Errorf("tracestate %.40q: %+v", state, got)
		}
	}
	long := "k=" + strings.Repeat("v", 8190)
	for baggage, kept := range map[string]bool{long: true, long + "v": false, "k": false, "=v": false, "k=\n": false, "k=v,": false, "k=": true, "k = v ; p=1": true} {
		got := ParseTrace(someTrace, "", baggage)
		if got == nil || got.Parent != someTrace || (got.Baggage == baggage) != kept {
			t.Errorf("baggage %.40q: %+v", baggage, got)
		}
	}
}

func FuzzParseTrace(f *testing.F) {
	f.Add(someTrace, someState, "a=b")
	f.Add("cc"+someTrace[2:]+"-x", "", "")
	f.Fuzz(func(t *testing.T, parent, state, baggage string) {
		got := ParseTrace(parent, state, baggage)
		if got == nil {
			return
		}
		if again := ParseTrace(got.Parent, got.State, got.Baggage); again == nil || *again != *got {
			t.Errorf("%+v reads back as %+v", got, again)
		}
		if got.Parent != "" && len(TraceIDOf(got.Parent)) != 32 {
			t.Errorf("the trace id of %+v", got)
		}
	})
}
