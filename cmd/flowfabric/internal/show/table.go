package show

import (
	"errors"
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
)

// block is how many rows of a table are aligned together on a terminal, so that a long list starts immediately.
const block = 100

// table collects rows and writes them aligned on a terminal; in a pipe each row is written immediately, its cells separated by
// tabs.
type table struct {
	p       *Printer
	columns []column
	rows    [][]string
	begun   bool
}

// taker receives a value of a list, or the error that ended the iteration. It reports whether more are wanted.
type taker func(item any, err error) (more bool)

// list writes the values of walk, at most limit; 0: all.
func (p *Printer) list(v *view, limit int, walk func(taker)) error {
	t := newTable(p, v)
	var failed error
	found := 0
	walk(func(item any, err error) bool {
		if err != nil {
			failed = errors.Join(t.flush(), err)
			return false
		}
		found++
		done, err := p.machine(v, item)
		if err == nil && !done {
			err = t.add(item)
		}
		failed = err
		return err == nil && found != limit
	})
	if failed != nil {
		return failed
	}
	if found == 0 && v.none != "" && (p.Terminal || p.Namespace != "") { // the name of a namespace may be misspelt
		p.Note("%s%s", v.none, p.place())
	}
	return t.flush()
}

func newTable(p *Printer, v *view) *table {
	t := &table{p: p}
	for _, c := range v.columns {
		if !c.wide || p.Wide {
			t.columns = append(t.columns, c)
		}
	}
	return t
}

func (t *table) add(item any) error {
	row := make([]string, len(t.columns))
	for i, c := range t.columns {
		row[i] = plain(c.text(item))
	}
	if !t.p.Terminal {
		return t.write(row)
	}
	t.rows = append(t.rows, row)
	if len(t.rows) >= block {
		return t.flush()
	}
	return nil
}

func (t *table) head() []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return names
}

// write writes a row to a pipe, after the column names.
func (t *table) write(row []string) error {
	if !t.begun {
		t.begun = true
		if _, err := fmt.Fprintln(t.p.Out, strings.Join(t.head(), "\t")); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(t.p.Out, strings.Join(row, "\t"))
	return err
}

// flush writes the collected rows to a terminal.
func (t *table) flush() error {
	if len(t.rows) == 0 {
		return nil
	}
	lines := t.rows
	if !t.begun {
		t.begun = true
		lines = append([][]string{t.head()}, lines...)
	}
	widths := fitted(lines, t.p.Width)
	for n, line := range lines {
		isHead := n == 0 && len(lines) > len(t.rows)
		for _, part := range folded(line, widths) {
			if err := t.writeAligned(part, widths, isHead); err != nil {
				return err
			}
		}
	}
	t.rows = nil
	return nil
}

// writeAligned writes one line to a terminal.
func (t *table) writeAligned(line []string, widths []int, isHead bool) error {
	var b strings.Builder
	for i, cell := range line {
		shown := t.p.paint(t.columns[i].name, cell)
		if isHead {
			shown = t.p.faint(cell)
		}
		b.WriteString(shown)
		if i < len(line)-1 {
			b.WriteString(strings.Repeat(" ", max(widths[i]-lipgloss.Width(cell), 0)+gap))
		}
	}
	_, err := fmt.Fprintln(t.p.Out, strings.TrimRight(b.String(), " "))
	return err
}

// oneLine joins a text into one line.
var oneLine = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ")

// plain removes line breaks and control characters from a cell.
func plain(text string) string { return Visible(oneLine.Replace(text)) }

// colors of words in status columns.
var colors = map[string]string{
	"succeeded": "2", "completed": "2", "satisfied": "2", "done": "2", "ok": "2", "live": "2", "active": "2", "decided": "2",
	"running": "6", "ready": "4", "waiting": "4", "resumable": "4", "waiting_children": "3", "cancelling": "3", "impossible": "1", "overridden": "3", "delayed": "4", "granted": "6", "pending": "4", "open": "4", "suspended": "5", "blocked": "3", "held": "3",
	"failed": "1", "fail": "1", "dead": "1", "expired": "1", "disabled": "1",
	"cancelled": "3", "skipped": "3", "warn": "3", "paused": "3", "draining": "3", "stopped": "3", "revoked": "3",
}

// paint colours a status.
func (p *Printer) paint(column, text string) string {
	if column != "STATUS" && column != "STATE" {
		return text
	}
	return p.Paint(text, text)
}

// Paint colours a text like a status word, if colours are enabled.
func (p *Printer) Paint(word, text string) string {
	color, known := colors[word]
	if !p.Color || !known {
		return text
	}
	return lipgloss.NewStyle().Foreground(lipgloss.Color(color)).Render(text)
}

func (p *Printer) faint(text string) string {
	if !p.Color {
		return text
	}
	return lipgloss.NewStyle().Faint(true).Render(text)
}
