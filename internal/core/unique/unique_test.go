package unique

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func wantCode(t *testing.T, err error, code base.Code, field string) *base.Error {
	t.Helper()
	var e *base.Error
	if !errors.As(err, &e) || e.Code != code || e.Field != field {
		t.Fatalf("got %v, want %s of %q", err, code, field)
	}
	return e
}

func TestT48_a_rule_within_its_bounds(t *testing.T) {
	t.Parallel()
	r, err := Rule{Key: "a"}.Check()
	if err != nil || r != (Rule{Key: "a", While: Live, OnConflict: Existing}) {
		t.Error(r, err)
	}
	for _, good := range []Rule{{Key: strings.Repeat("a", 128)}, {Key: "a", While: None, WindowMS: 1000}, {Key: "a", WindowMS: 90 * base.Day, OnConflict: Replace}} {
		if _, err := good.Check(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for _, row := range []struct {
		r     Rule
		field string
	}{
		{Rule{}, "unique.key"},
		{Rule{Key: strings.Repeat("a", 129)}, "unique.key"},
		{Rule{Key: "a\n"}, "unique.key"},
		{Rule{Key: "a", While: "ever"}, "unique.while"},
		{Rule{Key: "a", OnConflict: "ask"}, "unique.on_conflict"},
		{Rule{Key: "a", While: None}, "unique.window_ms"},
		{Rule{Key: "a", WindowMS: 999}, "unique.window_ms"},
		{Rule{Key: "a", WindowMS: 90*base.Day + 1}, "unique.window_ms"},
	} {
		_, err := row.r.Check()
		wantCode(t, err, base.CodeInvalidArgument, row.field)
	}
}

// holders are a holder in each state, by name.
func holders() map[string]Holder {
	h := Holder{ID: base.IDOf(base.UUID{7}), CreatedAt: 100_000, Creator: "ana"}
	waits, runs, retries, ended := h, h, h, h
	waits.Status = "queued"
	runs.Status, runs.Acquired = "running", true
	retries.Status, retries.Acquired = "delayed", true
	ended.Status, ended.Acquired, ended.Terminal = "succeeded", true, true
	return map[string]Holder{"waits": waits, "runs": runs, "retries": retries, "ended": ended}
}

func TestT48_T49_TC7_each_while_and_each_answer_for_each_state_of_the_holder(t *testing.T) {
	t.Parallel()
	conflicts := map[While][]string{Live: {"waits", "runs", "retries"}, Queued: {"waits"}, None: nil}
	for while, states := range conflicts {
		for state, h := range holders() {
			for _, window := range []base.Millis{0, 5000} {
				for _, now := range []base.Time{104_999, 105_000} {
					if while == None && window == 0 {
						continue
					}
					conflict := strings.Contains(strings.Join(states, " "), state) || window > 0 && now < 105_000
					for _, policy := range []OnConflict{Existing, Reject, Replace} {
						r := Rule{Key: "k", While: while, WindowMS: window, OnConflict: policy}
						got, err := r.Judge(&h, Submitter{Name: "ana"}, now)
						want, code := Decision{Take: true}, base.Code("")
						switch {
						case !conflict:
						case policy == Existing:
							want = Decision{Existing: h.ID}
						case policy == Reject:
							want, code = Decision{}, base.CodeUniqueConflict
						case !h.Terminal:
							want.Cancel = h.ID
						}
						if got != want || base.CodeOf(err) != code {
							t.Errorf("%+v against one that %s at %d: %+v, %v; want %+v", r, state, now, got, err, want)
						}
					}
				}
			}
		}
	}
	if got, err := (Rule{Key: "k", While: Live, OnConflict: Reject}).Judge(nil, Submitter{}, 1); err != nil || got != (Decision{Take: true}) {
		t.Error(got, err)
	}
}

func TestT49_only_the_creator_and_operators_replace(t *testing.T) {
	t.Parallel()
	h := holders()["runs"]
	r := Rule{Key: "k", While: Live, OnConflict: Replace}
	_, err := r.Judge(&h, Submitter{Name: "ben"}, 1)
	e := wantCode(t, err, base.CodeUniqueConflict, "unique.key")
	if e.Details["execution_id"] != h.ID.UUID.String() || e.Details["status"] != "running" {
		t.Error(e.Details)
	}
	if got, err := r.Judge(&h, Submitter{Name: "ben", Operate: true}, 1); err != nil || got.Cancel != h.ID {
		t.Error(got, err)
	}
}

func TestTI5_one_holder_is_in_conflict_at_a_time(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		r := Rule{Key: "k", While: Live, OnConflict: rapid.SampledFrom([]OnConflict{Existing, Reject, Replace}).Draw(t, "policy")}
		var all []*Holder
		var last *Holder
		for i := range rapid.IntRange(1, 30).Draw(t, "submits") {
			if last != nil && rapid.Bool().Draw(t, "ends") {
				last.Terminal = true
			}
			d, err := r.Judge(last, Submitter{Name: "ana"}, base.Time(i+1))
			if err != nil || !d.Take {
				continue
			}
			if !d.Cancel.IsZero() {
				last.Terminal = true
			}
			last = &Holder{ID: base.IDOf(base.UUID{byte(i + 1)}), CreatedAt: base.Time(i + 1), Creator: "ana"}
			all = append(all, last)
			live := 0
			for _, h := range all {
				if !h.Terminal {
					live++
				}
			}
			if live != 1 {
				t.Fatalf("%d executions of the key are live", live)
			}
		}
	})
}

func TestT50_a_key_of_an_input_and_its_record(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{InputKey("a", []byte("bc")): true, InputKey("ab", []byte("c")): true, InputKey("a", nil): true, InputKey("", []byte("abc")): true}
	if input := []byte("bc"); len(keys) != 4 || !keys[InputKey("a", input)] {
		t.Error(keys)
	}
	if _, err := (Rule{Key: InputKey("a", nil)}).Check(); err != nil {
		t.Error(err)
	}
	r := Record{Namespace: "default", Kind: "mail", Key: "k", Holder: base.IDOf(base.UUID{1})}
	back, err := Decode(r.Encode())
	if err != nil || back != r || !r.HeldBy(r.Holder) || r.HeldBy(base.IDOf(base.UUID{2})) {
		t.Error(back, err)
	}
	for _, bad := range []string{"", "{}", `{"v":2,"namespace":"n","kind":"k","key":"k","holder":"` + r.Holder.Full() + `"}`, `{"v":1,"namespace":"n","kind":"k","key":"k"}`} {
		_, err := Decode([]byte(bad))
		if base.CodeOf(err) != base.CodeCorruption {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Record{Namespace: "default", Kind: "mail", Key: "k", Holder: base.IDOf(base.UUID{1})}.Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode(data)
		if err != nil {
			wantCode(t, err, base.CodeCorruption, "")
			return
		}
		if again, err := Decode(r.Encode()); err != nil || again != r {
			t.Fatalf("%+v is read as %+v: %v", r, again, err)
		}
	})
}
