package show

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Progress shows the progress of something that takes more than a second (U159): a bar on a terminal, else a line every ten
// seconds.
type Progress struct {
	w        io.Writer
	what     string
	terminal bool
	now      func() time.Time
	began    time.Time
	last     time.Time
	drawn    bool
}

const (
	quietStart = time.Second      // shorter operations show no bar
	barEvery   = time.Second / 10 // how often a bar is drawn
	lineEvery  = 10 * time.Second
	barWidth   = 30
)

// NewProgress starts a progress display. A quiet printer writes nothing.
func (p *Printer) NewProgress(what string, terminal bool) *Progress {
	w := p.Err
	if p.Quiet {
		w = io.Discard
	}
	now := p.Now()
	return &Progress{w: w, what: what, terminal: terminal, now: p.Now, began: now, last: now}
}

// At shows that done of total are done; total 0: unknown.
func (b *Progress) At(done, total int) {
	now := b.now()
	every := lineEvery
	if b.terminal {
		every = barEvery
	}
	if now.Sub(b.began) < quietStart || now.Sub(b.last) < every {
		return
	}
	b.last = now
	text := fmt.Sprintf("%s %d", b.what, done)
	rate := float64(done) / now.Sub(b.began).Seconds()
	if total > 0 {
		text = fmt.Sprintf("%s %d of %d", b.what, done, total)
	}
	text += fmt.Sprintf(", %.0f/s", rate)
	if total > done && rate > 0 {
		text += ", " + Span(time.Duration(float64(total-done)/rate*float64(time.Second))) + " left"
	}
	if !b.terminal {
		fmt.Fprintln(b.w, text)
		return
	}
	b.drawn = true
	if total > 0 {
		full := min(barWidth*done/total, barWidth)
		text = "[" + strings.Repeat("=", full) + strings.Repeat(" ", barWidth-full) + "] " + text
	}
	fmt.Fprintf(b.w, "\r\x1b[K%s", text)
}

// End removes the bar.
func (b *Progress) End() {
	if b.drawn {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}
