package commands

import (
	"context"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// linkFlags are the flags of link (U173).
type linkFlags struct {
	approver, title, message, expires string
	decisions                         []string
	commentRequired                   bool
}

func (f *linkFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.approver, "approver", "", "who decides: a name or an address; a person counts once")
	fs.StringVar(&f.title, "title", "", "heading of the page")
	fs.StringVar(&f.message, "message", "", "text of the page")
	fs.StringVar(&f.expires, "expires", "", "expiry: a time, or a duration from now, 1m to 2160h; default 168h")
	fs.BoolVar(&f.commentRequired, "comment-required", false, "require a comment with the decision")
	fs.StringArrayVar(&f.decisions, "decision", nil, "a button, as id=label=signal; may be repeated; default: approve and reject")
}

func (f *linkFlags) options() (o ops.LinkOptions, err error) {
	o = ops.LinkOptions{Approver: f.approver, Title: f.title, Message: f.message, CommentRequired: f.commentRequired}
	if f.approver == "" {
		return o, show.Invalid("--approver", "give --approver with a name or an address", "the approver is missing")
	}
	if f.expires != "" {
		if o.ExpiresIn, err = time.ParseDuration(f.expires); err != nil {
			at, err := moment("--expires", f.expires, ahead)
			if err != nil {
				return o, err
			}
			o.ExpiresIn = time.Until(at)
		}
	}
	for _, text := range f.decisions {
		id, rest, _ := strings.Cut(text, "=")
		last := strings.LastIndexByte(rest, '=') // labels may contain one
		if last < 0 {
			return o, show.Invalid("--decision", "write --decision 'ship=Ship it=approved'", "%q is not id=label=signal", text)
		}
		o.Decisions = append(o.Decisions, flowfabric.LinkChoice{ID: id, Label: rest[:last], SignalName: rest[last+1:]})
	}
	return o, nil
}

// link creates a link. Its address is printed alone on its line, so that it can be sent on.
func (s *session) link() *cobra.Command {
	var flags linkFlags
	cmd := s.command("link WAITPOINT", "Create a link by which a person decides without an account, and print its address", `
flowfabric link 0190b5a2-8d10-7c55-8f31-2b7e9d604c11 --approver ana@example.com
flowfabric link 0190b5a2-8d10-7c55-8f31-2b7e9d604c11 --approver ana@example.com --title 'Ship 1.2?' --expires 24h --comment-required
flowfabric link 0190b5a2-8d10-7c55-8f31-2b7e9d604c11 --approver ben --decision 'ship=Ship it=approved' --decision 'stop=Not yet=rejected' --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		options, err := flags.options()
		if err != nil {
			return err
		}
		link, err := c.Waitpoints().NewLink(ctx, args[0], options)
		if err != nil {
			return err
		}
		if err := s.printAddress(link, s.printer.Quiet); err != nil {
			return err
		}
		s.printer.Note("link %s for %s, expires %s", link.ID, options.Approver, s.printer.Time(link.ExpiresAt))
		return nil
	})
	flags.register(cmd.Flags())
	cmd.ValidArgsFunction = s.completeWaitpoints
	return cmd
}

// printAddress prints only the address, or the id. The JSON of an ApprovalLink omits the address.
func (s *session) printAddress(link flowfabric.ApprovalLink, idOnly bool) error {
	return show.One(s.bare(), show.View[api.IssuedLink]{ID: func(l api.IssuedLink) string {
		if idOnly {
			return l.ID
		}
		return l.URL
	}}, link.Issued())
}

// links lists the links of a waitpoint.
func (s *session) links() *cobra.Command {
	cmd := s.command("links WAITPOINT", "List the links of a waitpoint and their decisions, without addresses", `
flowfabric links 0190b5a2-8d10-7c55-8f31-2b7e9d604c11
flowfabric links 0190b5a2-8d10-7c55-8f31-2b7e9d604c11 --wide
flowfabric links 0190b5a2-8d10-7c55-8f31-2b7e9d604c11 --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		all, err := c.Waitpoints().Links(ctx, args[0])
		if err != nil {
			return err
		}
		return show.All(s.printer, s.linkView(), all)
	})
	cmd.ValidArgsFunction = s.completeWaitpoints
	cmd.Args = orBelow(cobra.ExactArgs(1))
	cmd.AddCommand(s.linkURL(), s.linkRevoke())
	return cmd
}

func (s *session) linkURL() *cobra.Command {
	cmd := s.command("url LINK", "Print the address of a link; this is recorded in the audit log", `
flowfabric links url 0190b5a2-9e27-7b06-a4d8-51c3f0e8d7b2
flowfabric links url 0190b5a2-9e27-7b06-a4d8-51c3f0e8d7b2 --json
flowfabric links url 0190b5a2-9e27-7b06-a4d8-51c3f0e8d7b2 --timeout 5s
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		link, err := c.Waitpoints().LinkURL(ctx, args[0])
		if err != nil {
			return err
		}
		return s.printAddress(link, false)
	})
	cmd.ValidArgsFunction = s.completeLinks
	return cmd
}

func (s *session) linkRevoke() *cobra.Command {
	reason := ""
	cmd := s.command("revoke LINK", "Revoke a link that has not been used", `
flowfabric links revoke 0190b5a2-9e27-7b06-a4d8-51c3f0e8d7b2
flowfabric links revoke 0190b5a2-9e27-7b06-a4d8-51c3f0e8d7b2 --reason 'she is on leave'
flowfabric links revoke 0190b5a2-9e27-7b06-a4d8-51c3f0e8d7b2 --timeout 5s
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		if err := c.Waitpoints().RevokeLink(ctx, args[0], ops.CloseOptions{Reason: reason}); err != nil {
			return err
		}
		s.printer.Note("withdrawn: %s", args[0])
		return nil
	})
	cmd.Flags().StringVar(&reason, "reason", "", "reason, recorded in the event")
	cmd.ValidArgsFunction = s.completeLinks
	return cmd
}
