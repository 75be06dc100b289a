package inprocess

import (
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Schema returns the version of the tables of a store. A version newer than this module is refused, with the details that are
// known.
func Schema(found store.Schema, err error) (api.Schema, error) {
	schema := api.Schema{Kind: found.Kind, Level: found.Level, Known: found.Known}
	for _, step := range found.Steps {
		schema.Steps = append(schema.Steps, api.SchemaStep(step))
	}
	if err == nil {
		err = found.Newer()
	}
	if err != nil {
		return schema, openError(err)
	}
	return schema, nil
}

// Told is the function that a store calls after each step.
func Told(cfg api.MigrateConfig) func(store.SchemaStep) {
	return func(s store.SchemaStep) {
		if cfg.Told != nil {
			cfg.Told(api.SchemaStep(s))
		}
	}
}
