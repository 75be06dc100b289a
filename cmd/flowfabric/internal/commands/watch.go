package commands

import (
	"bytes"
	"context"
	"time"

	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// watchEvery is the interval between two reads of a watched list.
const watchEvery = time.Second

// clearScreen clears a terminal.
const clearScreen = "\x1b[H\x1b[2J"

// watch writes a list, and again whenever it changes, until ctx ends; a terminal is cleared before.
func (s *session) watch(ctx context.Context, list func(p *show.Printer) error) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	shown, p := "", *s.printer
	for {
		var text bytes.Buffer
		if p.Out = &text; p.Terminal {
			text.WriteString(clearScreen)
			p.Err = &text // the note on an empty list belongs to it
		}
		if err := list(&p); err != nil {
			return err
		}
		if text.String() != shown {
			shown = text.String()
			if _, err := s.Out.Write(text.Bytes()); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
