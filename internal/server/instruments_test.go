package server

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/flowfabric/flowfabric/embedded"
	measures "github.com/flowfabric/flowfabric/internal/metrics"
	"github.com/flowfabric/flowfabric/internal/transport"
)

func TestU199_the_server_shows_the_metrics_of_the_table_and_no_others(t *testing.T) {
	t.Parallel()
	client, err := embedded.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "app.db"), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	engineless := struct{ transport.Transport }{client.Connection().Transport} // the metrics of the engine have a test of their own
	if err := measures.Compare(measures.Server, newMetrics(&Server{client: client, via: engineless}).registry); err != nil {
		t.Error(err)
	}
}
