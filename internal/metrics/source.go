package metrics

import "github.com/prometheus/client_golang/prometheus"

// Source is the ability of a client to show what its engine measures: it runs in this process. A server finds it by assertion, so that
// the public Client knows nothing of how metrics are gathered.
type Source interface {
	Collector() prometheus.Collector
}
