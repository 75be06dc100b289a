package txn

import "github.com/flowfabric/flowfabric/internal/metrics"

// Collector gives everything that the engine and its store measure. It may be asked after Close: gauges are missing then.
func (e *Engine) Collector() metrics.Collector { return collector{e} }

// collector is the sum of the engine's instruments.
type collector struct{ e *Engine }

// Collect returns the values.
func (c collector) Collect() []metrics.Family {
	parts := metrics.Registry{c.e.Meter.all, c.e.Gauges}
	if measured, able := c.e.Store.(metrics.Source); able {
		parts = append(parts, measured.Collector())
	}
	return append(parts.Collect(), c.e.Meter.plain()...)
}

// plain reads the instruments in plain memory.
func (m *meter) plain() []metrics.Family {
	m.mu.Lock()
	defer m.mu.Unlock()
	return metrics.Registry{
		m.commands, m.commandSeconds, m.submitted, m.started, m.ended, m.startLatency, m.runSeconds, m.totalSeconds, m.events,
	}.Collect()
}
