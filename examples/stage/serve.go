package stage

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/flowfabrichttp"
)

// readHeader bounds how long a client may take to send the head of a request.
const readHeader = 10 * time.Second

// Serve serves a handler on a free port of this machine until stop is called. When ctx ends, the contexts of requests do.
func Serve(ctx context.Context, handler http.Handler) (address string, stop func() error, err error) {
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: readHeader, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() error {
		if err := server.Shutdown(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		<-ended
		return nil
	}, nil
}

// Served is the address of a server for the client of the story: the given one, or one that is started here, until stop is called.
func (s *Stage) Served(ctx context.Context, c *flowfabric.Client, cfg flowfabrichttp.Config) (address string, stop func() error, err error) {
	if s.Server != "" {
		return s.Server, func() error { return nil }, nil
	}
	cfg.Logger = s.Log
	handler, err := flowfabrichttp.New(c, cfg)
	if err != nil {
		return "", nil, err
	}
	return Serve(ctx, handler)
}
