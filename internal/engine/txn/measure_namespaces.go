package txn

import (
	"slices"
	"strings"
	"sync"

	"github.com/flowfabric/flowfabric/internal/metrics"
)

// mostReadings bounds the sets of namespaces of which readings are kept.
const mostReadings = 1000

// namespaceReadings are the readings for callers that see only some namespaces. Each has labels of its own: a shared bound of labels would reveal
// something of the others.
type namespaceReadings struct {
	mu  sync.Mutex
	all map[string]*StoreReading
}

func newGauges(e *Engine) *gauges {
	return &gauges{e: e, all: StoreReading{lanes: &e.Meter.lanes}}
}

// NamespaceCollector returns what callers that see only these namespaces may see: the work in them, and what rooms keep there (OnPart). Everything else counts other
// namespaces as well.
func (e *Engine) NamespaceCollector(namespaces []string) metrics.Collector {
	return namespaceCollector{e.Gauges, e.Gauges.some.of(namespaces)}
}

// of is the reading of these namespaces.
func (n *namespaceReadings) of(namespaces []string) *StoreReading {
	sorted := slices.Sorted(slices.Values(namespaces))
	key := strings.Join(sorted, "\x00")
	n.mu.Lock()
	defer n.mu.Unlock()
	if known := n.all[key]; known != nil {
		return known
	}
	if len(n.all) >= mostReadings {
		clear(n.all)
	}
	r := &StoreReading{Namespaces: slices.Compact(sorted), lanes: &metrics.Bounded{}}
	SetIn(&n.all, key, r)
	return r
}

type namespaceCollector struct {
	*gauges
	of *StoreReading
}

// Collect returns the current values; none if the engine is stopping.
func (c namespaceCollector) Collect() []metrics.Family {
	if c.e.Stopping() {
		return nil
	}
	return c.stored(c.of)
}
