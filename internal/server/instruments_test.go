package server

import (
	"testing"

	measures "github.com/flowfabric/flowfabric/internal/metrics"
)

func TestU199_the_server_shows_the_metrics_of_the_table_and_no_others(t *testing.T) {
	t.Parallel()
	if err := measures.Compare(measures.Server, newMetrics(&Server{}).registry); err != nil {
		t.Error(err)
	}
}
