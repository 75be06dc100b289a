package bench

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/flowfabrichttp"
)

// way is how a store is reached.
type way struct {
	// open makes a client of the store, and says how to close it.
	open func(ctx context.Context, address string) (*flowfabric.Client, func(ctx context.Context) error, error)
}

// inProcess is the engine in this process.
var inProcess = way{open: func(ctx context.Context, address string) (*flowfabric.Client, func(context.Context) error, error) {
	client, err := embedded.Open(ctx, address)
	if err != nil {
		return nil, nil, err
	}
	return client, client.Close, nil
}}

// overHTTP is a client of a server on loopback, which is in this process too: both sides share the processors either way.
var overHTTP = way{open: func(ctx context.Context, address string) (*flowfabric.Client, func(context.Context) error, error) {
	engine, err := embedded.Open(ctx, address)
	if err != nil {
		return nil, nil, err
	}
	stop, url, err := serve(ctx, engine)
	if err != nil {
		return nil, nil, errors.Join(err, engine.Close(ctx))
	}
	client, err := flowfabric.Connect(url)
	if err != nil {
		return nil, nil, errors.Join(err, stop(ctx), engine.Close(ctx))
	}
	return client, func(ctx context.Context) error { return errors.Join(client.Close(ctx), stop(ctx), engine.Close(ctx)) }, nil
}}

// serve listens on loopback for everybody.
func serve(ctx context.Context, engine *flowfabric.Client) (stop func(context.Context) error, url string, err error) {
	handler, err := flowfabrichttp.New(engine, flowfabrichttp.Config{Open: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, "", err
	}
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	stop = func(ctx context.Context) error {
		err := server.Shutdown(ctx)
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return err
	}
	return stop, "http://" + listener.Addr().String(), nil
}
