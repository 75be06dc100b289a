package flowfabric

import (
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/metrics"
	httptransport "github.com/flowfabric/flowfabric/internal/transport/http"
)

// WorkerCollector is what a worker measures.
func WorkerCollector(w *Worker) metrics.Collector { return w.meter }

// EffectKey is the key of an effect of a task.
func EffectKey(c *api.Claimed, effect string) string { return c.EffectKeyOf(effect) }

// QueuedCommands tells how many groups of commands wait in the batcher of a client of a server.
func QueuedCommands(c *Client) func() int {
	return func() int {
		n, _ := c.conn.Transport.(*httptransport.Transport).Queued()
		return n
	}
}

// QueuedSubmits tells how many submits wait in the batcher of a client of a server.
func QueuedSubmits(c *Client) func() int {
	return func() int {
		_, n := c.conn.Transport.(*httptransport.Transport).Queued()
		return n
	}
}
