package commands

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	approval "github.com/flowfabric/flowfabric/examples/approval/story"
	budget "github.com/flowfabric/flowfabric/examples/budget/story"
	callback "github.com/flowfabric/flowfabric/examples/callback/story"
	chat "github.com/flowfabric/flowfabric/examples/chat/story"
	crash "github.com/flowfabric/flowfabric/examples/crash/story"
	embed "github.com/flowfabric/flowfabric/examples/embed/story"
	hello "github.com/flowfabric/flowfabric/examples/hello/story"
	incident "github.com/flowfabric/flowfabric/examples/incident/story"
	live "github.com/flowfabric/flowfabric/examples/live-page/story"
	order "github.com/flowfabric/flowfabric/examples/order-tx/story"
	pipeline "github.com/flowfabric/flowfabric/examples/pipeline/story"
	race "github.com/flowfabric/flowfabric/examples/race/story"
	retry "github.com/flowfabric/flowfabric/examples/retry-and-cancel/story"
	shell "github.com/flowfabric/flowfabric/examples/shell-worker/story"
	"github.com/flowfabric/flowfabric/examples/stage"
	tenants "github.com/flowfabric/flowfabric/examples/tenants/story"
	webhooks "github.com/flowfabric/flowfabric/examples/webhooks/story"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// tale is an entry of demo.
type tale struct {
	stage.Story
	short string
}

// tales are the demos; the first is the default.
var tales = []tale{
	{hello.Hello, "submit, work, result; submitting the same order twice charges once"},
	{approval.Approval, "a release waits for two of three people, who decide by link or in the terminal"},
	{callback.Callback, "a payment provider calls back twice, before the handler waits"},
	{webhooks.Webhooks, "a receiver verifies the signatures of webhooks, handles a repeated one once and refuses a forged one"},
	{chat.Chat, "the tokens of a model live in the terminal; its worker is killed in the middle of the answer"},
	{crash.Crash, "a worker is killed with -9 in the middle of four steps; another one takes over"},
	{pipeline.Pipeline, "a release as one graph: a test fails, the rest is skipped, and a replay completes it"},
	{race.Race, "five models answer one question; the first good answer wins, and the others are cancelled"},
	{budget.Budget, "prompts under a token budget: reserved, warned, and raised by an approval"},
	{incident.Incident, "workers die until the engine gives up; an operator replays"},
	{order.OrderTx, "an order and its work in one SQL transaction; a rollback leaves neither"},
	{shellWorker(), "a worker made of curl and jq, and tr as a worker"},
	{tenants.Tenants, "two tenants with keys, a fair share, limits and an audit log"},
	{retry.RetryAndCancel, "retries by category, cancelling work and flows, and a replay of everything that failed"},
	{livePage(), "a web page follows one run by server-sent events and survives a reload"},
	{embed.Embed, "engine, worker and server inside a net/http program, behind its own login"},
}

// shellWorker runs with this program as the one whose work command it shows.
func shellWorker() stage.Story {
	return stage.Story{Name: "shell-worker", Tell: func(ctx context.Context, s *stage.Stage) error {
		return shell.Tell(ctx, s, s.Self[0])
	}}
}

// livePage keeps the page open until the user ends it, if a user can: on a terminal.
func livePage() stage.Story {
	return stage.Story{Name: "live-page", Tell: func(ctx context.Context, s *stage.Stage) error { return live.Tell(ctx, s, isTerminal(s.Out)) }}
}

// completeDemos completes the names of demos.
func completeDemos(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var offers []string
	for _, t := range tales {
		if len(args) == 0 {
			offers = append(offers, t.Name+"\t"+t.short)
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}

func (s *session) demo() *cobra.Command {
	list := false
	store := ""
	cmd := &cobra.Command{
		Use: "demo [STORY]", Short: "Run a demo in the terminal; it needs no services and leaves nothing behind", Args: counted(cobra.MaximumNArgs(1)),
		Example: examples("flowfabric demo\nflowfabric demo crash\nflowfabric demo --list"),
	}
	cmd.ValidArgsFunction = completeDemos
	cmd.Flags().BoolVar(&list, "list", false, "list the demos")
	cmd.Flags().StringVar(&store, "store", "", "use this store instead of a temporary file")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if list {
			return show.All(s.printer, taleView, tales)
		}
		t, err := taleOf(args)
		if err != nil {
			return err
		}
		at, err := s.stage(cmd, t, store)
		if err != nil {
			return err
		}
		return s.during(cmd, func(ctx context.Context) error { return t.play(ctx, at) })
	}
	return cmd
}

// stage returns the demo's environment: the given store, the server if a flag names one, else a temporary file.
func (s *session) stage(cmd *cobra.Command, t tale, store string) (stage.Stage, error) {
	self, err := os.Executable()
	if err != nil {
		return stage.Stage{}, err
	}
	at := stage.Stage{Store: store, Out: s.Out, Self: []string{self, "demo", t.Name}}
	if !cmd.Flags().Changed("server") {
		return at, nil
	}
	values, err := s.clientSettings(cmd)
	if err != nil {
		return at, err
	}
	at.Key = settings.Get[string](values, "key")
	at.Server, err = oneServer(values)
	return at, err
}

// play runs the demo. A demo that cannot run there is bad input.
func (t tale) play(ctx context.Context, at stage.Stage) error {
	err := stage.Play(ctx, t.Story, at)
	var misuse *stage.Misuse
	if errors.As(err, &misuse) {
		return show.Invalid("STORY", "", "%s", misuse.Text)
	}
	return err
}

var taleView = show.View[tale]{
	ID: func(t tale) string { return t.Name },
	Columns: []show.Column[tale]{
		{Name: "STORY", Text: func(t tale) string { return t.Name }},
		{Name: "WHAT HAPPENS", Text: func(t tale) string { return t.short }},
	},
}

func taleOf(args []string) (tale, error) {
	if len(args) == 0 {
		return tales[0], nil
	}
	var names []string
	for _, t := range tales {
		if t.Name == args[0] {
			return t, nil
		}
		names = append(names, t.Name)
	}
	hint := "see flowfabric demo --list"
	if args[0] == "testing" { // an example as well, but a test suite
		hint = "run it from a clone: go run ./examples/testing"
	}
	if near := jsonx.Nearest(args[0], names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return tale{}, show.Invalid("STORY", hint, "unknown demo %q", args[0])
}
