package flowfabricprom_test

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/flowfabricprom"
	"github.com/flowfabric/flowfabric/sqlite"
)

// A program that serves its own metrics shows those of its engine and of its worker beside them.
func Example() {
	client, err := sqlite.Open(context.Background(), "app.db")
	if err != nil {
		panic(err)
	}
	worker := flowfabric.NewWorker(client, flowfabric.WorkerConfig{})
	prometheus.MustRegister(flowfabricprom.New(client), flowfabricprom.NewWorker(worker))
	http.Handle("/metrics", promhttp.Handler())
}
