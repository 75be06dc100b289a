// Package show writes results for people and for programs: tables on a terminal, plain text in a pipe, JSON, ids, templates. It
// does not know the commands.
package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"text/template"
	"time"
)

// Printer writes results to Out and everything else to Err (U156).
type Printer struct {
	Out, Err io.Writer
	JSON     bool               // one document; lists one object per line
	Quiet    bool               // ids only
	Wide     bool               // all columns
	Template *template.Template // nil: none; uses API field names
	Terminal bool               // Out is a terminal: aligned columns, relative times
	Width    int                // of the terminal; 0: unknown
	Color    bool
	Now      func() time.Time

	Namespace string // that the user has named; "": none
}

// place is where nothing was found.
func (p *Printer) place() string {
	if p.Namespace == "" {
		return ""
	}
	return " in namespace " + p.Namespace
}

// Column is one column of a table.
type Column[T any] struct {
	Name string
	Text func(T) string
	Wide bool // only with --wide
}

// View says how values of one type are shown.
type View[T any] struct {
	ID      func(T) string // for --quiet
	Columns []Column[T]
	None    string // shown on a terminal for an empty list; "": nothing
}

// One writes one value, one line per column for people.
func One[T any](p *Printer, v View[T], item T) error { return p.one(untyped(&v), item) }

// List writes values as they arrive. An error of the iterator ends it.
func List[T any](p *Printer, v View[T], items iter.Seq2[T, error]) error {
	return First(p, v, items, 0)
}

// First writes values as List does, at most limit; 0: all.
func First[T any](p *Printer, v View[T], items iter.Seq2[T, error], limit int) error {
	return p.list(untyped(&v), limit, func(take taker) {
		items(func(item T, err error) bool { return take(item, err) })
	})
}

// All writes a slice as List does.
func All[T any](p *Printer, v View[T], items []T) error {
	return p.list(untyped(&v), 0, func(take taker) {
		for _, item := range items {
			if !take(item, nil) {
				return
			}
		}
	})
}

// view is a View without its type parameter, so that the code is compiled once and not for every type.
type view struct {
	id      func(item any) string
	columns []column
	none    string
}

type column struct {
	name string
	text func(item any) string
	wide bool
}

func untyped[T any](v *View[T]) *view {
	u := &view{id: ofAny(v.ID), columns: make([]column, len(v.Columns)), none: v.None}
	for i, c := range v.Columns {
		u.columns[i] = column{c.Name, ofAny(c.Text), c.Wide}
	}
	return u
}

// ofAny converts a View. If inlined, it would be compiled twice for every type.
//
//go:noinline
func ofAny[T any](text func(T) string) func(any) string {
	return func(item any) string { return text(item.(T)) }
}

func (p *Printer) one(v *view, item any) error {
	if done, err := p.machine(v, item); done {
		return err
	}
	width := 0
	for _, c := range v.columns {
		width = max(width, len(c.name))
	}
	for _, c := range v.columns {
		text := Visible(c.text(item))
		if text == "" {
			continue
		}
		name := strings.ToLower(c.name) + ":"
		if _, err := fmt.Fprintf(p.Out, "%-*s %s\n", width+1, name, p.paint(c.name, text)); err != nil {
			return err
		}
	}
	return nil
}

// machine writes the formats for programs; done reports whether one was requested.
func (p *Printer) machine(v *view, item any) (done bool, err error) {
	switch {
	case p.Template != nil:
		return true, p.fill(item)
	case p.JSON:
		var text bytes.Buffer
		to := json.NewEncoder(&text)
		to.SetEscapeHTML(false) // as the API writes it
		if err = to.Encode(item); err == nil {
			_, err = p.Out.Write(visibleJSON(text.Bytes()))
		}
		return true, err
	case p.Quiet:
		_, err = fmt.Fprintln(p.Out, v.id(item))
		return true, err
	default:
		return false, nil
	}
}

// fill executes the template for an item, one line per item. Its data are the API fields.
func (p *Printer) fill(item any) error {
	data, err := json.Marshal(item)
	if err != nil {
		return err
	}
	var fields any
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	if err := p.Template.Execute(p.Out, fields); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.Out)
	return err
}

// Note writes a line for people to Err: progress and hints, not results.
func (p *Printer) Note(format string, args ...any) {
	if !p.Quiet {
		fmt.Fprintln(p.Err, Visible(fmt.Sprintf(format, args...)))
	}
}

// Raw writes bytes unchanged; on a terminal a newline follows if needed.
func (p *Printer) Raw(data []byte) error {
	_, err := p.Out.Write(data)
	if err == nil && p.Terminal && len(data) > 0 && data[len(data)-1] != '\n' {
		_, err = fmt.Fprintln(p.Out)
	}
	return err
}

// Time formats a time: relative on a terminal, else in full. The zero time is "".
func (p *Printer) Time(at time.Time) string {
	switch {
	case at.IsZero():
		return ""
	case !p.Terminal:
		return at.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	d := p.Now().Sub(at)
	if d < 0 {
		return "in " + Span(-d)
	}
	return Span(d) + " ago"
}

// Span formats a duration roughly.
func Span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
