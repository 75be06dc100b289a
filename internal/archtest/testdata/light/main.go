// Command light is a program that only connects to a server and works for it.
package main

import (
	"context"
	"log"
	"os"
	"strings"

	"github.com/flowfabric/flowfabric"
)

func main() {
	client, err := flowfabric.Connect(os.Getenv("FF_SERVER"))
	if err != nil {
		log.Fatal(err)
	}
	worker := flowfabric.NewWorker(client, flowfabric.WorkerConfig{Lanes: []string{"default"}})
	flowfabric.Handle(worker, flowfabric.Kind[string, string]("upper"), func(_ context.Context, _ *flowfabric.Task, in string) (string, error) {
		return strings.ToUpper(in), nil
	})
	if err := worker.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
