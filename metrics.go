package flowfabric

import (
	"net/http"

	"github.com/flowfabric/flowfabric/internal/metrics"
)

// Metrics serves, as Prometheus text, what the engine of a client measures that Open has made. They are always on; what they mean is
// told in docs/metrics.md. The engine of a Connect client runs elsewhere: its metrics are those of the server, and the handler answers
// 404.
func Metrics(c Client) http.Handler {
	source, here := c.(metrics.Source)
	if !here {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the engine does not run in this process: ask its server for /metrics", http.StatusNotFound)
		})
	}
	return metrics.Compressed(metrics.Registry{source.Collector()})
}

// NamespaceCollector gives what those may know who see these namespaces alone.
func (e *embedded) NamespaceCollector(namespaces []string) metrics.Collector {
	return e.engine.NamespaceCollector(namespaces)
}

// Collector gives what the engine measures.
func (e *embedded) Collector() metrics.Collector { return e.engine.Collector() }
