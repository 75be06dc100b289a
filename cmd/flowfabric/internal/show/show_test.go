package show

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/flowfabric/flowfabric"
)

type thing struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

var things = View[thing]{
	ID: func(t thing) string { return t.Name },
	Columns: []Column[thing]{
		{Name: "NAME", Text: func(t thing) string { return t.Name }},
		{Name: "STATUS", Text: func(t thing) string { return t.Status }},
		{Name: "EXTRA", Text: func(thing) string { return "x" }, Wide: true},
	},
}

func some() iter.Seq2[thing, error] {
	return func(yield func(thing, error) bool) {
		_ = yield(thing{"long name", "failed"}, nil) && yield(thing{"b\n\x1b[2J", "ok"}, nil)
	}
}

func TestU156_each_form_of_a_list(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  func(*Printer)
		want string
	}{
		"pipe":     {func(*Printer) {}, "NAME\tSTATUS\nlong name\tfailed\nb \\x1b[2J\tok\n"},
		"wide":     {func(p *Printer) { p.Wide = true }, "NAME\tSTATUS\tEXTRA\nlong name\tfailed\tx\nb \\x1b[2J\tok\tx\n"},
		"terminal": {func(p *Printer) { p.Terminal = true }, "NAME       STATUS\nlong name  failed\nb \\x1b[2J  ok\n"},
		"json":     {func(p *Printer) { p.JSON = true }, `{"name":"long name","status":"failed"}` + "\n" + `{"name":"b\n\u001b[2J","status":"ok"}` + "\n"},
		"quiet":    {func(p *Printer) { p.Quiet = true }, "long name\nb\n\x1b[2J\n"},
		"template": {func(p *Printer) { p.Template = template.Must(template.New("").Parse("{{.status}}!")) }, "failed!\nok!\n"},
	} {
		var out strings.Builder
		p := &Printer{Out: &out, Err: &out}
		c.set(p)
		if err := List(p, things, some()); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, out.String(), c.want)
		}
	}
}

func TestU156_the_first_things_of_a_list_are_shown_and_no_more_are_asked_for(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]struct {
		asked int
		shown string
	}{0: {3, "a\nb\nc\n"}, 1: {1, "a\n"}, 2: {2, "a\nb\n"}, 3: {3, "a\nb\nc\n"}, 4: {3, "a\nb\nc\n"}} {
		var out strings.Builder
		asked := 0
		all := func(yield func(thing, error) bool) {
			for _, name := range []string{"a", "b", "c"} {
				if asked++; !yield(thing{Name: name}, nil) {
					return
				}
			}
		}
		if err := First(&Printer{Out: &out, Quiet: true}, things, all, limit); err != nil {
			t.Fatal(err)
		}
		if asked != want.asked || out.String() != want.shown {
			t.Errorf("limit %d: asked for %d, shown %q", limit, asked, out.String())
		}
	}
}

func TestU156_a_slice_is_shown_as_a_list_is(t *testing.T) {
	t.Parallel()
	for _, terminal := range []bool{false, true} {
		var walked, known strings.Builder
		all := []thing{{"long name", "failed"}, {"b\n\x1b[2J", "ok"}}
		err := errors.Join(List(&Printer{Out: &walked, Terminal: terminal}, things, some()), All(&Printer{Out: &known, Terminal: terminal}, things, all))
		if err != nil || walked.String() != known.String() || known.Len() == 0 {
			t.Errorf("terminal %t: %v, %q and %q", terminal, err, walked.String(), known.String())
		}
	}
}

func TestU156_a_narrow_terminal_folds_sentences_and_keeps_names_whole(t *testing.T) {
	t.Parallel()
	rows := []thing{{"durability-of-the-store", "ok"}, {"api_keys", "there is no admin key: everybody who reaches the server may do everything"}}
	all := func(yield func(thing, error) bool) { _ = yield(rows[0], nil) && yield(rows[1], nil) }
	for width, want := range map[int]string{
		0: "NAME                     STATUS\ndurability-of-the-store  ok\n" +
			"api_keys                 there is no admin key: everybody who reaches the server may do everything\n",
		60: "NAME                     STATUS\ndurability-of-the-store  ok\n" +
			"api_keys                 there is no admin key: everybody\n" +
			"                         who reaches the server may do\n" +
			"                         everything\n",
		20: "NAME                     STATUS\ndurability-of-the-store  ok\n" +
			"api_keys                 there is no\n                         admin key:\n                         everybody who\n" +
			"                         reaches the\n                         server may do\n                         everything\n",
	} {
		var out strings.Builder
		if err := List(&Printer{Out: &out, Terminal: true, Width: width}, things, all); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("%d columns:\n%s\nwant\n%s", width, out.String(), want)
		}
	}
}

func TestU156_people_are_told_that_a_list_is_empty_and_programs_get_nothing(t *testing.T) {
	t.Parallel()
	none := func(func(thing, error) bool) {}
	view := things
	view.None = "no things"
	for terminal, want := range map[bool]string{true: "no things\n", false: ""} {
		var out, errs strings.Builder
		if err := List(&Printer{Out: &out, Err: &errs, Terminal: terminal}, view, none); err != nil {
			t.Fatal(err)
		}
		if out.String() != "" || errs.String() != want {
			t.Errorf("terminal %t: %q, %q", terminal, out.String(), errs.String())
		}
	}
}

func TestU156_colour_marks_a_status_and_nothing_else(t *testing.T) {
	t.Parallel()
	p := &Printer{Color: true}
	if got := p.paint("STATUS", "failed"); !strings.Contains(got, "\x1b[") || !strings.Contains(got, "failed") {
		t.Errorf("%q", got)
	}
	if got := p.paint("NAME", "failed"); got != "failed" {
		t.Errorf("%q", got)
	}
	p.Color = false
	if got := p.paint("STATUS", "failed"); got != "failed" {
		t.Errorf("%q", got)
	}
}

func TestAn_error_of_the_walk_comes_after_what_was_found(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	trouble := errors.New("trouble")
	err := List(&Printer{Out: &out, Terminal: true}, things, func(yield func(thing, error) bool) {
		_ = yield(thing{"a", "ok"}, nil) && yield(thing{}, trouble)
	})
	if !errors.Is(err, trouble) || !strings.Contains(out.String(), "a ") {
		t.Error(err, out.String())
	}
}

func TestU158_every_class_has_its_exit_code(t *testing.T) {
	t.Parallel()
	for want, errs := range map[int][]error{
		ExitDone:        {nil},
		ExitFailed:      {errors.New("x"), flowfabric.ErrInternal, flowfabric.ErrNotImplemented},
		ExitInvalid:     {flowfabric.ErrInvalid, Invalid("--x", "", "bad")},
		ExitNotFound:    {flowfabric.ErrNotFound},
		ExitRefused:     {flowfabric.ErrConflict, flowfabric.ErrState, flowfabric.ErrFenced, flowfabric.ErrGrant, flowfabric.ErrGone},
		ExitForbidden:   {flowfabric.ErrUnauthenticated, flowfabric.ErrForbidden},
		ExitTimeout:     {ErrTimeout, fmt.Errorf("x: %w", ErrTimeout)},
		ExitUnavailable: {flowfabric.ErrUnavailable, flowfabric.ErrAdmission, flowfabric.ErrLimited},
		ExitUnsuccess:   {&flowfabric.ExecutionError{Status: flowfabric.StatusFailed}, Exit(8)},
		ExitInterrupted: {ErrInterrupted},
	} {
		for _, err := range errs {
			if got := ExitCode(err); got != want {
				t.Errorf("%v: %d, want %d", err, got, want)
			}
		}
	}
}

func TestU157_an_error_has_its_lines(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	Error(&out, fmt.Errorf("wrapped: %w", &flowfabric.Error{Code: "x", Message: "it is so", Field: "lane", Hint: "do that", RequestID: "r-1"}), false, nil)
	if want := "flowfabric: it is so\n  field: lane\n  hint: do that\n  request: r-1\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestU157_a_refusal_without_a_hint_gets_the_advice_of_its_code(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		refusal flowfabric.Error
		want    string
	}{
		{flowfabric.Error{Code: "execution_not_terminal", Class: "state"}, "wait for its end, or cancel it"},
		{flowfabric.Error{Code: "execution_not_terminal", Class: "state", Hint: "mine"}, "mine"},
		{flowfabric.Error{Code: "missing_field", Class: "invalid"}, ""},
		{flowfabric.Error{Class: "internal"}, ""},
	} {
		if got := hintFor(c.refusal.Problem(), nil); got != c.want {
			t.Errorf("%+v: %q, want %q", c.refusal, got, c.want)
		}
	}
}

func TestU156_an_error_as_JSON_is_the_problem_object(t *testing.T) {
	t.Parallel()
	for _, err := range []error{ErrInterrupted, ErrTimeout, errors.New("trouble"), Invalid("--x", "give y", "it is bad")} {
		var out strings.Builder
		Error(&out, err, true, nil)
		var problem struct {
			Detail string `json:"detail"`
			Class  string `json:"class"`
		}
		if err := json.Unmarshal([]byte(out.String()), &problem); err != nil || problem.Detail == "" || problem.Class == "" {
			t.Errorf("%q: %v", out.String(), err)
		}
	}
}

func TestU156_times_are_relative_on_a_terminal_alone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	p := &Printer{Now: func() time.Time { return now }}
	at := now.Add(-90 * time.Minute)
	if got := p.Time(at); got != "2026-05-01T10:30:00.000Z" {
		t.Error(got)
	}
	p.Terminal = true
	for d, want := range map[time.Duration]string{-90 * time.Minute: "90m ago", -3 * time.Hour: "3h ago", 30 * time.Second: "in 30s", -72 * time.Hour: "3d ago"} {
		if got := p.Time(now.Add(d)); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
	if p.Time(time.Time{}) != "" {
		t.Error("the zero time is shown")
	}
}

func TestU159_progress_says_count_rate_and_rest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var out strings.Builder
	p := &Printer{Err: &out, Now: func() time.Time { return now }}
	bar := p.NewProgress("submitted", false)
	bar.At(1, 100)
	if out.Len() > 0 {
		t.Error("work under a second shows progress")
	}
	now = now.Add(10 * time.Second)
	bar.At(50, 100)
	if got := out.String(); got != "submitted 50 of 100, 5/s, 10s left\n" {
		t.Errorf("%q", got)
	}
}
