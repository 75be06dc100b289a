package flowfabric

import "github.com/flowfabric/flowfabric/internal/metrics"

// QueuedCommands tells how many groups of commands wait in the batcher of a client of a server.
func QueuedCommands(c Client) func() int {
	b := c.(*remote).batch
	return func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.queue)
	}
}

// QueuedSubmits tells how many submits wait in the batcher of a client of a server.
func QueuedSubmits(c Client) func() int {
	b := c.(*remote).submit
	return func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.queue)
	}
}

// WorkerCollector is what a worker measures.
func WorkerCollector(w *Worker) metrics.Collector { return w.meter }

// EffectKey is the key of an effect of a task.
func EffectKey(c *Claimed, effect string) string { return c.EffectKeyOf(effect) }
