package show

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric"
)

func TestU156_what_steers_a_terminal_is_shown_and_not_done(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain, ünïcode 漢字 👩‍👩‍👧":         "plain, ünïcode 漢字 👩‍👩‍👧",
		"two\nlines\tand a tab":           "two\nlines\tand a tab",
		"\x1b]52;c;ZXZpbA==\a\x1b[2J":     `\x1b]52;c;ZXZpbA==\x07\x1b[2J`,
		"over\rwritten\b":                 `over\x0dwritten\x08`,
		"\u009b2J\u0085":                  `\x9b2J\x85`,
		"exe\u202egnp.\u2066x\u2069":      `exe\u202egnp.\u2066x\u2069`,
		"in\u200bvisible\u2028\ufeff\x7f": `in\u200bvisible\u2028\ufeff\x7f`,
		"no text\x9b2J\xff":               "no text\uFFFD2J\uFFFD",
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestU156_json_shows_what_steers_a_terminal_as_the_same_value(t *testing.T) {
	t.Parallel()
	view := View[string]{ID: func(x string) string { return x }}
	for text, want := range map[string]string{
		"plain, ünïcode <b> 漢字 👩‍👩‍👧":    `"plain, ünïcode <b> 漢字 👩‍👩‍👧"`,
		"\u009b2J\u0085\x7f\x1b[2J":      `"\u009b2J\u0085\u007f\u001b[2J"`,
		"exe\u202egnp\u200b":             `"exe\u202egnp\u200b"`,
		"a tag \U000e0041, two\nlines\t": `"a tag \udb40\udc41, two\nlines\t"`,
	} {
		var out bytes.Buffer
		if err := One(&Printer{Out: &out, JSON: true}, view, text); err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != text || out.String() != want+"\n" {
			t.Errorf("%q is written as %s, want %s: %v", text, out.String(), want, err)
		}
	}
}

func TestU156_every_form_for_people_shows_texts_of_others_safely(t *testing.T) {
	t.Parallel()
	const evil = "\x1b[2J\u202e"
	type text struct{ Name string }
	view := View[text]{ID: func(x text) string { return x.Name }, Columns: []Column[text]{{Name: "NAME", Text: func(x text) string { return x.Name }}}}
	for name, write := range map[string]func(p *Printer) error{
		"one":  func(p *Printer) error { return One(p, view, text{evil}) },
		"list": func(p *Printer) error { return All(p, view, []text{{evil}}) },
		"note": func(p *Printer) error { p.Note("it says %s", evil); return nil },
		"error": func(p *Printer) error {
			Error(p.Err, &flowfabric.Error{Code: "invalid_argument", Message: evil, Field: evil, Hint: evil, RequestID: evil}, false, nil)
			return nil
		},
	} {
		var out bytes.Buffer
		if err := write(&Printer{Out: &out, Err: &out}); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.ContainsAny(got, "\x1b\u202e") || !strings.Contains(got, `\x1b[2J\u202e`) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
