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
	to, force := 0, false
	up := s.schemaCommand("up", "Migrate the schema of a store to this version, one transaction per step, under a lock", func(ctx context.Context, v *settings.Values) error {
		return s.migrateUp(ctx, v, to, force)
	})
	up.Flags().IntVar(&to, "to", 0, "last step to apply, forward only; 0: all")
	up.Flags().BoolVar(&force, "force", false, "also do what running programs of an older version do not survive: they fail until they are replaced")
	return group("migrate", "Schema migrations of a store",
		s.schemaCommand("plan", "Show the migrations of a store, which programs use it, and which may", s.migratePlan),
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
		MigrateConfig: api.MigrateConfig{UnsafeDurability: settings.Get[bool](v, "unsafe-durability")},
		Schema:        settings.Get[string](v, "store-schema"), DirectURL: settings.Get[string](v, "store-direct-url"),
	}
}

// schemaStep is a migration in JSON.
type schemaStep struct {
	Step   int    `json:"step"`
	Name   string `json:"name"`
	State  string `json:"state"`
	Needs  int    `json:"needs"`             // the schema that a program must know to run beside it; 0: the step only adds
	TookMS *int64 `json:"took_ms,omitempty"` // of a step that was just applied
}

func stepOf(step api.SchemaStep) schemaStep {
	shown := schemaStep{Step: step.Number, Name: step.Name, State: "missing", Needs: step.Needs}
	if step.Applied {
		shown.State = "applied"
	}
	return shown
}

var stepView = show.View[schemaStep]{
	ID: func(s schemaStep) string { return strconv.Itoa(s.Step) },
	Columns: []show.Column[schemaStep]{
		{Name: "STEP", Text: func(s schemaStep) string { return strconv.Itoa(s.Step) }},
		{Name: "NAME", Text: func(s schemaStep) string { return s.Name }},
		{Name: "STATE", Text: func(s schemaStep) string { return s.State }},
		{Name: "KIND", Text: func(s schemaStep) string {
			if s.Needs == 0 {
				return "adds"
			}
			return "needs programs that know schema " + strconv.Itoa(s.Needs)
		}},
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
	if err := show.All(s.printer, stepView, steps); err != nil {
		return err
	}
	s.noteBeside(schema)
	return nil
}

// noteBeside prints what may use the store, and what does.
func (s *session) noteBeside(schema embedded.Schema) {
	if schema.Oldest > 0 {
		s.printer.Note("programs that know schema %d or a later one may use this store", schema.Oldest)
	}
	for _, p := range schema.Programs {
		s.printer.Note("in use by %s, which knows schema %d", p.Version, p.Known)
	}
	if schema.Moves != "" {
		s.printer.Note("the tables are in schema %s; migrate up moves them to schema %s when no program uses the store", schema.Tables, schema.Moves)
	}
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
func (s *session) migrateUp(ctx context.Context, v *settings.Values, to int, force bool) error {
	var schema embedded.Schema
	err := show.List(s.printer, stepView, iter.Seq2[schemaStep, error](func(yield func(schemaStep, error) bool) {
		cfg, wanted := migrateConfig(v), true
		cfg.To, cfg.Force = to, force
		cfg.OnStep = func(step api.SchemaStep) {
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
