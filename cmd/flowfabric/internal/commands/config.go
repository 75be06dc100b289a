package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// serverSettings reads the settings of serve and dev.
func (s *session) serverSettings(cmd *cobra.Command, dev bool) (*settings.Values, []settings.Problem) {
	flags := given(cmd)
	values, problems := settings.Load(settings.Server(), settings.Sources{Dev: dev, File: flags["config"], Environ: s.Environ, Flags: flags})
	s.ignored(values)
	return values, problems
}

// serverFlags adds the server settings to a command.
func serverFlags(cmd *cobra.Command) {
	settingFlags(cmd.Flags(), settings.Server())
	cmd.Flags().String("config", "", "file of FF_NAME=value lines")
	cmd.SetUsageFunc(serverUsage)
}

func (s *session) config() *cobra.Command {
	dev, running := false, false
	cmd := &cobra.Command{
		Use: "config", Short: "Print the effective settings and their sources", Args: counted(cobra.NoArgs),
		Example: examples("flowfabric config\nflowfabric config --dev --json\nflowfabric config --running"),
	}
	serverFlags(cmd)
	cmd.Flags().BoolVar(&dev, "dev", false, "settings of dev instead of serve")
	cmd.Flags().BoolVar(&running, "running", false, "settings of the running server")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if running {
			return s.during(cmd, func(ctx context.Context) error { return s.runningConfig(ctx, cmd) })
		}
		values, problems := s.serverSettings(cmd, dev)
		if err := s.problems(problems); err != nil {
			return err
		}
		return show.All(s.printer, settingView, values.Rows())
	}
	return cmd
}

var settingView = show.View[settings.Row]{
	ID: func(r settings.Row) string { return r.Name + "=" + r.Value },
	Columns: []show.Column[settings.Row]{
		{Name: "SETTING", Text: func(r settings.Row) string { return r.Name }},
		{Name: "VALUE", Text: func(r settings.Row) string { return r.Value }},
		{Name: "SOURCE", Text: func(r settings.Row) string { return r.Source }},
	},
}

func (s *session) runningConfig(ctx context.Context, cmd *cobra.Command) error {
	answer, err := ask(ctx, s, cmd, wire.GetSettings, &wire.None{})
	if err != nil {
		return err
	}
	var rows []settings.Row
	for _, setting := range answer.Settings {
		rows = append(rows, settings.Row{Name: setting.Name, Value: settingText(setting.Value), Source: setting.Source})
	}
	return show.All(s.printer, settingView, rows)
}

// settingText formats a value: strings as they are, anything else as JSON.
func settingText(value any) string {
	if value == nil {
		return ""
	}
	if text, ok := value.(string); ok {
		return text
	}
	text, _ := json.Marshal(value) // it was read from JSON
	return string(text)
}

// info shows the server and the caller's identity.
func (s *session) info() *cobra.Command {
	return &cobra.Command{
		Use: "info", Short: "Show the server's version, store, features and limits, and your identity", Args: counted(cobra.NoArgs),
		Example: examples("flowfabric info\nflowfabric info --json\nflowfabric info --template '{{.version}}'"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.during(cmd, func(ctx context.Context) error {
				info, err := ask(ctx, s, cmd, wire.GetInfo, &wire.None{})
				if err != nil {
					return err
				}
				who, err := ask(ctx, s, cmd, wire.Whoami, &wire.None{})
				if err != nil {
					return err
				}
				return show.One(s.printer, infoView, identified{*info, *who})
			})
		},
	}
}

// identified is the server and the caller in one document.
type identified struct {
	api.Info
	Caller api.Principal `json:"caller"`
}

// MarshalJSON writes one flat document.
func (i identified) MarshalJSON() ([]byte, error) { return wire.Marshal(&i) }

var infoView = show.View[identified]{
	ID: func(i identified) string { return i.Version },
	Columns: []show.Column[identified]{
		{Name: "VERSION", Text: func(i identified) string { return strings.TrimSpace(i.Version + " " + i.Commit) }},
		{Name: "API", Text: func(i identified) string { return i.API }},
		{Name: "STORE", Text: func(i identified) string {
			return fmt.Sprintf("%s %s, schema %d", i.Store.Kind, i.Store.Version, i.Store.Schema)
		}},
		{Name: "FEATURES", Text: func(i identified) string {
			var on []string
			for _, name := range slices.Sorted(maps.Keys(i.Features)) {
				if i.Features[name] {
					on = append(on, name)
				}
			}
			return strings.Join(on, ", ")
		}},
		{Name: "CALLER", Text: func(i identified) string {
			return fmt.Sprintf("%s, roles %s, namespaces %s", i.Caller.Principal, strings.Join(i.Caller.Roles, ","), strings.Join(i.Caller.Namespaces, ","))
		}},
	},
}
