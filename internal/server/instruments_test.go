package server

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/inprocess"
	measures "github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/service"
)

func TestU199_the_server_shows_the_metrics_of_the_table_and_no_others(t *testing.T) {
	t.Parallel()
	client, err := embedded.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "app.db"), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	on, _ := inprocess.BackendOf(client)
	if err := measures.Compare(measures.Server, newMetrics(&Server{on: engineless{on}}).registry); err != nil {
		t.Error(err)
	}
}

// engineless has no metrics: those of the engine have a test of their own.
type engineless struct{ service.Backend }

func (engineless) Collector() measures.Collector { return measures.Registry{} }
