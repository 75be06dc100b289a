package core

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestE24_any_text_survives_as_json(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		o := newObject()
		o.str("a", text)
		o.strs("b", []string{text, ""})
		var got map[string]any
		if err := json.Unmarshal(o.done(), &got); err != nil {
			t.Fatal(err)
		}
		want := strings.ToValidUTF8(text, "\ufffd")
		if len([]rune(want)) != len([]rune(text)) { // ToValidUTF8 joins runs of bad bytes, JSON replaces each
			want = string([]rune(text))
		}
		if diff := cmp.Diff(map[string]any{"a": want, "b": []any{want, ""}}, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestE24_absent_values_leave_no_field_and_order_is_that_of_the_calls(t *testing.T) {
	t.Parallel()
	o := newObject()
	o.strIf("gone", "")
	o.moment("gone", 0)
	o.flagIf("gone", false)
	o.raw("gone", nil)
	o.num("z", -1)
	o.open("m")
	o.flagIf("yes", true)
	o.shut()
	o.moment("at", storyStart)
	o.raw("a", json.RawMessage(`[1]`))
	o.strs("none", nil)
	const want = `{"z":-1,"m":{"yes":true},"at":"2023-11-14T22:13:20.000Z","a":[1],"none":[]}`
	if got := string(o.done()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// LC23: every path into a terminal status is told by exactly one completion with the right outcome.
func TestL145_every_path_into_a_terminal_status_tells_exactly_one_completion(t *testing.T) {
	t.Parallel()
	outcomes := map[Status]string{Succeeded: "success", Failed: "failed", Cancelled: "cancelled", Expired: "expired", Skipped: "skipped"}
	for _, status := range []Status{Succeeded, Failed, Cancelled, Expired, Skipped} {
		s := broughtTo(t, tablePolicy, status)
		if s.ended != 1 {
			t.Errorf("%s: %d completions", status, s.ended)
		}
		data := s.last("execution.completed")
		if data["outcome"] != outcomes[status] || data["status"] != status.String() || (data["failure"] != nil) != (status == Failed) {
			t.Errorf("%s: %v", status, data)
		}
		if status == Skipped {
			if diff := cmp.Diff([]any{"a"}, data["edges"]); diff != "" {
				t.Error(diff)
			}
		}
	}
}

func TestL30_an_attempt_that_waits_gets_its_final_state_when_the_execution_ends(t *testing.T) {
	t.Parallel()
	for _, status := range []Status{Delayed, Suspended} {
		s := broughtTo(t, `{}`, status)
		s.now++
		must[bool](t)(s.cancel(nil))
		if a := s.history[1].Attempt; a.State != EndedCancelled || a.EndedAt != s.now {
			t.Errorf("%s: %+v", status, a)
		}
	}
}
