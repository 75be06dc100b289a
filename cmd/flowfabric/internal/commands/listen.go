package commands

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/host"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/internal/server"
)

// onLoopback reports whether the server can be reached only from this host.
func (i *instance) onLoopback() bool {
	return host.IsLoopback(settings.Get[string](i.values, "listen"))
}

// inPlaintext returns the addresses that other hosts reach without TLS.
func (i *instance) inPlaintext() (problems []settings.Problem) {
	for _, name := range []string{"listen", "metrics-listen"} {
		if address := settings.Get[string](i.values, name); address != "" && !host.IsLoopback(address) {
			problems = append(problems, i.values.Problem(name,
				"reachable from other hosts without TLS. Give --tls-cert and --tls-key; or pass --allow-plaintext if a proxy terminates TLS"))
		}
	}
	return problems
}

// listeners are the listening sockets of a server.
type listeners struct {
	api     net.Listener
	metrics net.Listener // nil: on the same address
}

func (l listeners) close() error {
	err := l.api.Close()
	if l.metrics != nil {
		err = errors.Join(err, l.metrics.Close())
	}
	return err
}

// listening returns the listeners, opened now unless they were opened before.
func (i *instance) listening(ctx context.Context) (listeners, error) {
	if i.bound != nil {
		return *i.bound, nil
	}
	return i.listen(ctx)
}

// listen opens the addresses. An address that cannot be opened is a problem of its setting.
func (i *instance) listen(ctx context.Context) (l listeners, err error) {
	if l.api, err = i.listenOn(ctx, "listen"); err != nil || settings.Get[string](i.values, "metrics-listen") == "" {
		return l, err
	}
	if l.metrics, err = i.listenOn(ctx, "metrics-listen"); err != nil {
		return l, errors.Join(err, l.api.Close())
	}
	return l, nil
}

func (i *instance) listenOn(ctx context.Context, name string) (net.Listener, error) {
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", settings.Get[string](i.values, name))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, i.session.problems([]settings.Problem{i.values.Problem(name, "another program listens there. Stop it, or use a free port with --"+name+" 127.0.0.1:0")})
	case err != nil:
		return nil, i.session.problems([]settings.Problem{i.values.Problem(name, err.Error())})
	}
	return listener, nil
}

// metricsBeside serves /metrics on its own address, if configured (U196).
func (i *instance) metricsBeside(srv *server.Server, listener net.Listener) []host.Served {
	if listener == nil {
		return nil
	}
	scheme := "http://"
	if i.certs != nil {
		scheme = "https://"
	}
	i.log.Info("metrics", "address", scheme+listener.Addr().String()+"/metrics")
	return []host.Served{{Listener: srv.Listener(listener), HTTP: srv.MetricsServer(settings.Get[bool](i.values, "metrics-open"))}}
}
