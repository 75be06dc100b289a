package server

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// Types that hold time.Time and time.Duration are described as those that hold wire.Time and milliseconds.
func TestU6_the_document_describes_instants_and_spans_of_time_by_their_form(t *testing.T) {
	t.Parallel()
	describe := func(typ reflect.Type) string {
		text, err := json.Marshal(newSchemas().Schema(typ, false, ""))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	plain := describe(reflect.TypeFor[struct {
		At     wire.Time `json:"at,omitzero" doc:"When."`
		WaitMS int64     `json:"wait_ms,omitempty" minimum:"0" doc:"How long."`
		TTLMS  *int64    `json:"ttl_ms,omitempty" doc:"How long."`
	}]())
	timed := describe(reflect.TypeFor[struct {
		At   time.Time      `json:"at,omitzero" doc:"When."`
		Wait time.Duration  `json:"wait_ms,omitempty" minimum:"0" doc:"How long."`
		TTL  *time.Duration `json:"ttl_ms,omitempty" doc:"How long."`
	}]())
	if timed != plain {
		t.Errorf("%s\nwant %s", timed, plain)
	}
}
