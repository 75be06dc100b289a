package engine

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Collector gives everything that the engine and its store measure. It may be asked after Close: gauges are missing then.
func (e *Engine) Collector() prometheus.Collector { return collector{e} }

// collector is the sum of the engine's instruments.
type collector struct{ e *Engine }

// parts are the instruments.
func (c collector) parts() []prometheus.Collector {
	parts := slices.Concat(c.e.meter.all, []prometheus.Collector{c.e.gauges})
	if measured, able := c.e.store.(interface{ Collector() prometheus.Collector }); able {
		parts = append(parts, measured.Collector())
	}
	return parts
}

// Describe tells the names.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, part := range c.parts() {
		part.Describe(to)
	}
	for _, part := range c.e.meter.plain() {
		to <- part.Desc()
	}
}

// Collect tells the values.
func (c collector) Collect(to chan<- prometheus.Metric) {
	for _, part := range c.parts() {
		part.Collect(to)
	}
	for _, sample := range c.e.meter.samples() {
		to <- sample
	}
}

// plain are the instruments in plain memory.
func (m *meter) plain() []plainInstrument {
	return []plainInstrument{
		m.commands, m.commandSeconds, m.submitted, m.started, m.ended, m.startLatency, m.runSeconds, m.totalSeconds, m.events,
	}
}

// plainInstrument is what the two kinds of them have in common.
type plainInstrument interface {
	Desc() *prometheus.Desc
	Samples() []prometheus.Metric
}

// samples reads the instruments in plain memory. Nobody is told while the lock is held: who listens may be slow.
func (m *meter) samples() (all []prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, part := range m.plain() {
		all = append(all, part.Samples()...)
	}
	return all
}
