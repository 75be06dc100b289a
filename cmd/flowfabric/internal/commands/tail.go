package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// tailFlags are the flags of tail (U169).
type tailFlags struct {
	attempt, from, after          string
	all, noFollow, summary, watch bool
	types, modes                  []string
}

func (f *tailFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.attempt, "attempt", "", "only this attempt, by its index or latest, until it ends")
	fs.BoolVar(&f.all, "all", false, "every attempt in order, not only the newest")
	fs.BoolVar(&f.noFollow, "no-follow", false, "print what is there now, and exit")
	fs.StringVar(&f.from, "from", "", "begin with this frame: its id, such as 0-17, start or end")
	fs.StringVar(&f.after, "after", "", "continue after this frame, which may be a control frame")
	fs.StringSliceVar(&f.types, "type", nil, "only frames of these types, such as stderr")
	fs.StringSliceVar(&f.modes, "mode", nil, "only frames of these modes: durable, summary, best_effort; patches of the summary are printed only if named here")
	fs.BoolVar(&f.summary, "summary", false, "print the summary document instead")
	fs.BoolVar(&f.watch, "watch", false, "with --summary, print each new version until the execution ends")
}

func (s *session) tail() *cobra.Command {
	var flags tailFlags
	cmd := s.command("tail ID", "Print what an execution writes to its stream, until it ends; exit 8 unless it succeeded", `
flowfabric tail 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric tail 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --attempt latest --type stderr
flowfabric tail 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --all --no-follow --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		options, err := flags.options()
		switch {
		case err != nil:
			return err
		case flags.watch:
			return s.watchSummary(ctx, c, flowfabric.ID(args[0]), options)
		case flags.summary:
			found, err := c.Streams().Summary(ctx, flowfabric.ID(args[0]), ops.SummaryOptions{Attempt: options.Attempt})
			if err != nil {
				return err
			}
			return s.printSummary(found)
		default:
			return s.printStream(ctx, c, flowfabric.ID(args[0]), options)
		}
	})
	cmd.Long = "Payloads go to standard output, those of type stderr too: byte for byte in a pipe or a file. On a terminal control characters are escaped,\n" +
		"and frames of type stderr are dimmed. Lines that begin with --- go to standard error: they say that an attempt began or ended, or that frames\n" +
		"are no longer kept. Without --all the newest attempt is printed; when a newer one begins, it supersedes what came before. The command goes on\n" +
		"while the server is away. With --attempt it exits 0 if the attempt succeeded, and 8 otherwise. With --no-follow it exits 0.\n" +
		"--json prints every frame as the API returns it, control frames included."
	flags.register(cmd.Flags())
	cmd.ValidArgsFunction = s.completeIDs
	for name, values := range map[string][]string{
		"attempt": {latestAttempt}, "mode": {api.ModeDurable, api.ModeSummary, api.ModeBestEffort}, "type": {"data", "stdout", "stderr", "log"},
	} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // fails only if the flag is missing
	}
	return cmd
}

// latestAttempt selects the newest attempt.
const latestAttempt = "latest"

// options reads the flags.
func (f *tailFlags) options() (o ops.FollowOptions, err error) {
	o = ops.FollowOptions{FrameFilter: ops.FrameFilter{Types: f.types, Modes: f.modes}, All: f.all, After: f.after, NoWait: f.noFollow}
	frames := f.all || f.noFollow || f.from != "" || f.after != "" || len(f.types)+len(f.modes) > 0
	switch {
	case f.watch && !f.summary:
		return o, show.Invalid("--watch", "flowfabric tail ID --summary --watch", "only the summary is printed again")
	case f.summary && frames:
		return o, show.Invalid("--summary", "only --attempt and --watch go with it", "the summary document has no frames to select")
	case f.attempt != "" && f.all:
		return o, show.Invalid("--all", "give one of --attempt and --all", "one attempt and every attempt are both requested")
	case f.from != "" && f.after != "":
		return o, show.Invalid("--after", "give one of --from and --after", "two positions are given")
	}
	if f.attempt != "" {
		index := ops.LatestAttempt
		if f.attempt != latestAttempt {
			if index, err = number("--attempt", f.attempt); err != nil {
				return o, err
			}
		}
		o.Attempt = &index
	}
	if f.from != "" {
		o.After, err = before(f.from, o.Attempt != nil)
	}
	return o, err
}

// before is the position before a frame. Of one attempt the number of the frame is enough.
func before(from string, bare bool) (string, error) {
	if from == api.FromStart || from == api.FromEnd {
		return from, nil
	}
	attempt, seq, both := strings.Cut(from, "-")
	if !both && bare {
		attempt, seq = "", from
	}
	n, err := strconv.ParseInt(seq, 10, 64)
	if err != nil || n < 1 || !both && !bare {
		return "", show.Invalid("--from", "use the id of a frame as --json prints it, start or end", "%q is not the id of a frame", from)
	}
	text := strconv.FormatInt(n-1, 10)
	if both {
		text = attempt + "-" + text
	}
	return text, nil
}

// printStream prints what an execution writes to its stream. The exit code is 8 if the execution, or the attempt that was requested, ended without
// success.
func (s *session) printStream(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, o ops.FollowOptions) error {
	x, err := c.Get(ctx, id) // a wrong id or address is an error now
	if err != nil {
		return err
	}
	people := !s.printer.JSON && !s.printer.Quiet && s.printer.Template == nil
	if people && x.TotalAttempts == 0 && !x.Status.Terminal() && !o.NoWait {
		s.printer.Note("no attempt has begun, the execution is %s; to see what it waits for: flowfabric explain %s", x.Status, bareID(id))
	}
	ended := ""
	frames := noted(c.Streams().Follow(ctx, id, o), o.Attempt != nil, &ended)
	if people {
		err = s.writeStream(ctx, frames, o)
	} else {
		err = show.List(s.live(), s.frameView(), s.withID(frames))
	}
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case ended != "" && ended != "success" && !o.NoWait:
		return show.Exit(show.ExitUnsuccess)
	}
	return nil
}

// noted passes frames on and notes how the execution, or the one attempt that is followed, ended.
func noted(frames iter.Seq2[api.Frame, error], one bool, ended *string) iter.Seq2[api.Frame, error] {
	return func(yield func(api.Frame, error) bool) {
		for f, err := range frames {
			switch {
			case f.Type == api.StreamClosed:
				*ended = f.Outcome
			case f.Type == api.AttemptClosed && one:
				*ended = strings.TrimPrefix(f.Reason, "attempt_")
			}
			if !yield(f, err) {
				return
			}
		}
	}
}

// withID leaves out what has no id where only ids are printed.
func (s *session) withID(frames iter.Seq2[api.Frame, error]) iter.Seq2[api.Frame, error] {
	return func(yield func(api.Frame, error) bool) {
		for f, err := range frames {
			if s.printer.Quiet && err == nil && f.ID == "" {
				continue
			}
			if !yield(f, err) {
				return
			}
		}
	}
}

func (s *session) frameView() show.View[api.Frame] {
	return show.View[api.Frame]{ID: func(f api.Frame) string { return f.ID }}
}

// writeStream writes frames for people.
func (s *session) writeStream(ctx context.Context, frames iter.Seq2[api.Frame, error], o ops.FollowOptions) error {
	stream := show.NewStream(s.printer, show.StreamOptions{
		Every: o.All, One: o.Attempt != nil, Patches: slices.Contains(o.Modes, api.ModeSummary), Painted: s.printer.Color && isTerminal(s.Err),
	})
	for f, err := range frames {
		if err == nil {
			err = stream.Write(&f)
		}
		if err != nil {
			return errors.Join(err, stream.End())
		}
	}
	if err := stream.End(); err != nil {
		return err
	}
	switch selected := len(o.Types)+len(o.Modes) > 0 || o.After != ""; {
	case stream.Said() || ctx.Err() != nil:
	case selected:
		s.printer.Note("no such frames")
	default:
		s.printer.Note("nothing was written to the stream")
	}
	return nil
}

// watchSummary prints the summary document whenever it has changed, until the execution ends, or the attempt that was requested.
func (s *session) watchSummary(ctx context.Context, c *flowfabric.Client, id flowfabric.ID, o ops.FollowOptions) error {
	if _, err := c.Get(ctx, id); err != nil {
		return err
	}
	ended, shown, attempt := "", int64(0), -1
	for o.Modes = []string{api.ModeSummary}; ctx.Err() == nil && ended == ""; {
		var again bool
		for f, err := range noted(c.Streams().Follow(ctx, id, o), o.Attempt != nil, &ended) {
			if err != nil {
				return err
			}
			if f.SummaryVersion > 0 && (f.Attempt != attempt || f.SummaryVersion > shown) {
				found, err := c.Streams().Summary(ctx, id, ops.SummaryOptions{Attempt: &f.Attempt})
				if again = errors.Is(err, flowfabric.ErrUnavailable); again {
					break // Follow waits until the server is back
				}
				if err == nil {
					shown, attempt, err = found.Version, found.Attempt, s.printAgain(found)
				}
				if err != nil {
					return err
				}
			}
			o.After = f.ID
		}
		if !again {
			break
		}
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case ended != "" && ended != "success":
		return show.Exit(show.ExitUnsuccess)
	}
	return nil
}

// printAgain prints a version of a summary document. A terminal is cleared before.
func (s *session) printAgain(found *api.StreamSummary) error {
	if s.printer.Terminal {
		if _, err := fmt.Fprint(s.Out, clearScreen); err != nil {
			return err
		}
	}
	return s.printSummary(found)
}

// printSummary prints a summary document, indented; for programs with its version and times.
func (s *session) printSummary(found *api.StreamSummary) error {
	p := s.printer
	if p.JSON || p.Quiet || p.Template != nil {
		return show.One(p, show.View[*api.StreamSummary]{ID: func(d *api.StreamSummary) string { return strconv.FormatInt(d.Version, 10) }}, found)
	}
	var text bytes.Buffer
	if err := json.Indent(&text, found.Document, "", "  "); err != nil {
		return err
	}
	if !p.Terminal {
		_, err := fmt.Fprintf(p.Out, "%s\n", text.Bytes())
		return err
	}
	_, err := fmt.Fprintf(p.Out, "%s\n", show.Visible(text.String()))
	p.Note("version %d of attempt %d, %s", found.Version, found.Attempt, p.Time(found.LastUpdated))
	return err
}
