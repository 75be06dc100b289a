package commands

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// The size of a batch, and the maximum size of a line.
const (
	batchItems = 500
	batchBytes = 8 << 20
	lineBytes  = 96 << 20
)

// submitMany submits the lines of a file in batches; each item succeeds or fails separately.
func (s *session) submitMany(ctx context.Context, c *flowfabric.Client, flags submission, args []string) error {
	if len(args) > 0 {
		return show.Invalid("KIND", "omit it", "with --bulk every line has its own kind")
	}
	from := s.In
	if flags.bulk != "-" {
		file, err := os.Open(flags.bulk)
		if err != nil {
			return show.Invalid("--bulk", "", "%s", err)
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	b := &bulkSubmit{session: s, client: c, progress: s.printer.NewProgress("submitted", isTerminal(s.Err))}
	err := b.readAll(ctx, from)
	b.progress.End()
	s.printer.Note("%d submitted, %d of them duplicates, %d refused", b.done, b.duplicates, b.refused)
	if err == nil && b.refused > 0 {
		return show.Exit(show.ExitFailed)
	}
	return err
}

// bulkSubmit is a bulk submit in progress.
type bulkSubmit struct {
	session                   *session
	client                    *flowfabric.Client
	progress                  *show.Progress
	batch                     []flowfabric.Submission
	lines                     []int // of the batch, by line number
	bytes                     int
	done, duplicates, refused int
}

func (b *bulkSubmit) readAll(ctx context.Context, from io.Reader) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, lineBytes)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var sub flowfabric.Submission
		if err := json.Unmarshal(lines.Bytes(), &sub); err != nil {
			b.refuse(n, err)
			continue
		}
		b.batch, b.lines, b.bytes = append(b.batch, sub), append(b.lines, n), b.bytes+len(lines.Bytes())
		if len(b.batch) >= batchItems || b.bytes >= batchBytes {
			if err := b.send(ctx); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return show.Invalid("--bulk", "", "%s", err)
	}
	return b.send(ctx)
}

func (b *bulkSubmit) send(ctx context.Context) error {
	if len(b.batch) == 0 {
		return nil
	}
	results, err := b.client.SubmitMany(ctx, b.batch)
	if err != nil {
		return err
	}
	for i, result := range results {
		if result.Err != nil {
			b.refuse(b.lines[i], result.Err)
			continue
		}
		b.done++
		if result.Duplicate {
			b.duplicates++
		}
		if err := b.session.printSubmitted(result); err != nil {
			return err
		}
	}
	b.progress.At(b.done, 0)
	b.batch, b.lines, b.bytes = nil, nil, 0
	return nil
}

// refuse prints which line was refused and why; the other lines continue.
func (b *bulkSubmit) refuse(line int, err error) {
	b.refused++
	message := err.Error()
	var refusal *flowfabric.Error
	if errors.As(err, &refusal) {
		message = refusal.Message
		if refusal.Field != "" {
			message = refusal.Field + ": " + message
		}
	}
	b.session.printer.Note("line %d: %s", line, message)
}
