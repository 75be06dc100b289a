package commands

import (
	"context"
	"iter"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	"github.com/flowfabric/flowfabric/embedded"
)

// migrate shows, checks and applies the schema migrations of a store (U163).
func (s *session) migrate() *cobra.Command {
	to := 0
	up := s.schemaCommand("up", "Migrate the schema of a store to this version, one transaction per step, under a lock", func(ctx context.Context, v *settings.Values) error {
		return s.migrateUp(ctx, v, to)
	})
	up.Flags().IntVar(&to, "to", 0, "last step to apply, forward only; 0: all")
	return group("migrate", "Schema migrations of a store",
		s.schemaCommand("plan", "Show the migrations that a store has and lacks", s.migratePlan),
		s.schemaCommand("status", "Check that the schema of a store matches this program; exit 1 if it is older", s.migrateStatus),
		up)
}

func (s *session) schemaCommand(use, short string, do func(ctx context.Context, v *settings.Values) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: counted(cobra.NoArgs),
		Example: examples("flowfabric migrate " + use + " --store sqlite:ff.db\nflowfabric migrate " + use + " --store postgres://flowfabric@db/flowfabric\n" +
			"flowfabric migrate " + use + " --config /etc/flowfabric.env"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			values, err := s.storeSettings(cmd)
			if err != nil {
				return err
			}
			return s.during(cmd, func(ctx context.Context) error { return do(ctx, values) })
		},
	}
	storeFlags(cmd)
	return cmd
}

// migrateConfig returns the settings for migrating.
func migrateConfig(v *settings.Values) embedded.MigrateConfig {
	return embedded.MigrateConfig{
		MigrateConfig: api.MigrateConfig{UnsafeDurability: settings.Get[bool](v, "unsafe-durability")}, DirectURL: settings.Get[string](v, "store-direct-url"),
	}
}

// schemaStep is a migration in JSON.
type schemaStep struct {
	Step   int    `json:"step"`
	Name   string `json:"name"`
	State  string `json:"state"`
	TookMS *int64 `json:"took_ms,omitempty"` // of a step that was just applied
}

func stepOf(step api.SchemaStep) schemaStep {
	if !step.Applied {
		return schemaStep{Step: step.Number, Name: step.Name, State: "missing"}
	}
	return schemaStep{Step: step.Number, Name: step.Name, State: "applied"}
}

var stepView = show.View[schemaStep]{
	ID: func(s schemaStep) string { return strconv.Itoa(s.Step) },
	Columns: []show.Column[schemaStep]{
		{Name: "STEP", Text: func(s schemaStep) string { return strconv.Itoa(s.Step) }},
		{Name: "NAME", Text: func(s schemaStep) string { return s.Name }},
		{Name: "STATE", Text: func(s schemaStep) string { return s.State }},
		{Name: "TOOK", Text: func(s schemaStep) string {
			if s.TookMS == nil {
				return ""
			}
			return (time.Duration(*s.TookMS) * time.Millisecond).String()
		}},
	},
}

func (s *session) migratePlan(ctx context.Context, v *settings.Values) error {
	schema, err := embedded.SchemaOf(ctx, settings.Get[string](v, "store"), migrateConfig(v))
	if err != nil {
		return err
	}
	var steps []schemaStep
	for _, step := range schema.Steps {
		steps = append(steps, stepOf(step))
	}
	return show.All(s.printer, stepView, steps)
}

// schemaState is the schema of a store in JSON.
type schemaState struct {
	Store  string `json:"store"`
	Schema int    `json:"schema"`
	Known  int    `json:"known"`
	State  string `json:"state"`
}

func stateOf(schema embedded.Schema) schemaState {
	state := schemaState{Store: schema.Kind, Schema: schema.Level, Known: schema.Known, State: "up to date"}
	if schema.Level < schema.Known {
		state.State = "older than this program"
	}
	return state
}

var schemaView = show.View[schemaState]{
	ID: func(s schemaState) string { return strconv.Itoa(s.Schema) },
	Columns: []show.Column[schemaState]{
		{Name: "STORE", Text: func(s schemaState) string { return s.Store }},
		{Name: "SCHEMA", Text: func(s schemaState) string { return strconv.Itoa(s.Schema) }},
		{Name: "KNOWN", Text: func(s schemaState) string { return strconv.Itoa(s.Known) }},
		{Name: "STATE", Text: func(s schemaState) string { return s.State }},
	},
}

func (s *session) migrateStatus(ctx context.Context, v *settings.Values) error {
	if err := thereMustBe(settings.Get[string](v, "store")); err != nil {
		return err
	}
	schema, err := embedded.SchemaOf(ctx, settings.Get[string](v, "store"), migrateConfig(v))
	if err != nil {
		return err
	}
	if err := show.One(s.printer, schemaView, stateOf(schema)); err != nil {
		return err
	}
	if schema.Level < schema.Known {
		s.printer.Note("migrate it: flowfabric migrate up")
		return show.Exit(show.ExitFailed)
	}
	return nil
}

// migrateUp prints each step as it is applied.
func (s *session) migrateUp(ctx context.Context, v *settings.Values, to int) error {
	var schema embedded.Schema
	err := show.List(s.printer, stepView, iter.Seq2[schemaStep, error](func(yield func(schemaStep, error) bool) {
		cfg, wanted := migrateConfig(v), true
		cfg.To = to
		cfg.Told = func(step api.SchemaStep) {
			took := step.Took.Milliseconds()
			line := stepOf(step)
			line.TookMS = &took
			wanted = wanted && yield(line, nil)
		}
		var err error
		if schema, err = embedded.Migrate(ctx, settings.Get[string](v, "store"), cfg); err != nil && wanted {
			yield(schemaStep{}, err)
		}
	}))
	if err != nil {
		return err
	}
	s.printer.Note("%s has schema %d of %d", schema.Kind, schema.Level, schema.Known)
	return nil
}
