package inprocess

import (
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Schema shows how far the tables of a store are. One that is newer than this module is refused, with what is known of it.
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

// Told is what a store calls with each step that is done.
func Told(cfg api.MigrateConfig) func(store.SchemaStep) {
	return func(s store.SchemaStep) {
		if cfg.Told != nil {
			cfg.Told(api.SchemaStep(s))
		}
	}
}
