package inprocess

import (
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Schema returns the version of the tables of a store. A version newer than this module is refused, with the details that are
// known.
func Schema(found store.Schema, err error) (api.Schema, error) {
	schema := api.Schema{Kind: found.Kind, Level: found.Level, Known: found.Known, Oldest: found.Oldest, Tables: found.Tables, Moves: found.Moves}
	for _, step := range found.Steps {
		schema.Steps = append(schema.Steps, api.SchemaStep(step))
	}
	for _, p := range found.Programs {
		schema.Programs = append(schema.Programs, api.Program{Version: p.Version, Known: p.Known, StartedAt: timeOf(p.StartedAt), SeenAt: timeOf(p.SeenAt)})
	}
	if err == nil {
		err = found.Newer()
	}
	if err != nil {
		return schema, openError(err)
	}
	return schema, nil
}

// timeOf is the zero time for a moment that is not known.
func timeOf(t base.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.Std()
}

// OnStep is the function that a store calls after each step.
func OnStep(cfg api.MigrateConfig) func(store.SchemaStep) {
	return func(s store.SchemaStep) {
		if cfg.OnStep != nil {
			cfg.OnStep(api.SchemaStep(s))
		}
	}
}
