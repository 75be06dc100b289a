package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/bench/measure"
	"github.com/flowfabric/flowfabric/embedded"
)

// place is where a sample is taken: a fresh store with a client of it, or a fresh namespace of somebody's server.
type place struct {
	address   string // of the store; "" on somebody's server
	namespace string // "" in a store of our own
	client    *observed
	server    *server // nil unless it is ours
	undo      []func(ctx context.Context) error
}

// closing bounds the end of a sample, also after an interrupt.
const closing = time.Minute

// openPlace makes a place.
func openPlace(ctx context.Context, cfg Config) (_ *place, err error) {
	p := &place{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close(ctx))
		}
	}()
	if cfg.Server != "" {
		return p, p.moveIn(ctx, cfg)
	}
	address, remove, err := measure.FreshStore(ctx, cfg.Store)
	if err != nil {
		return nil, fmt.Errorf("a fresh store: %w", err)
	}
	p.address = address
	p.undo = append(p.undo, func(context.Context) error { return remove() })
	if cfg.Via == viaHTTP {
		if p.server, err = startServer(ctx, cfg, address, "127.0.0.1:0"); err != nil {
			return nil, err
		}
		p.undo = append(p.undo, func(context.Context) error { return p.server.stop() })
		return p, p.connect(p.server.url, flowfabric.ConnectConfig{})
	}
	client, err := embedded.Open(ctx, address, embedded.Config{EngineConfig: flowfabric.EngineConfig{Logger: cfg.Log, Webhooks: api.WebhookTargets{AllowLoopback: true}}})
	if err != nil {
		return nil, err
	}
	p.use(client)
	return p, nil
}

// moveIn takes a fresh namespace of somebody's server. It begins to exist when it is used, and what was done there stays.
func (p *place) moveIn(ctx context.Context, cfg Config) error {
	p.namespace = strings.ReplaceAll(measure.FreshName(), "_", "-")
	if err := p.connect(cfg.Server, flowfabric.ConnectConfig{APIKey: cfg.Key, Namespace: p.namespace}); err != nil {
		return err
	}
	_, err := p.client.Admin().Whoami(ctx)
	var refusal *flowfabric.Error
	if errors.As(err, &refusal) && refusal.Code == "namespace_forbidden" {
		refusal.Hint = "a fresh namespace is used: give a key for all namespaces (flowfabric api-keys create --role admin --for-namespace '*')"
	}
	return err
}

func (p *place) connect(url string, cfg flowfabric.ConnectConfig) error {
	client, err := flowfabric.Connect(url, cfg)
	if err == nil {
		p.use(client)
	}
	return err
}

func (p *place) use(client *flowfabric.Client) {
	p.client = observe(client)
	p.undo = append(p.undo, client.Close)
}

// close lets go of everything and removes the store.
func (p *place) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	var all []error
	for _, undo := range slices.Backward(p.undo) {
		all = append(all, undo(ctx))
	}
	return errors.Join(all...)
}

// describe names the store.
func (p *place) describe(ctx context.Context) (Store, error) {
	info, err := p.client.Admin().Info(ctx)
	if err != nil {
		return Store{}, err
	}
	store := Store{Kind: info.Store.Kind, Version: info.Store.Version, Settings: map[string]string{}}
	if p.address != "" {
		store.Settings, err = measure.StoreSettings(ctx, p.address)
	}
	return store, err
}

// restart kills our server and starts it again under the same address.
func (p *place) restart(ctx context.Context, cfg Config) error {
	url := p.server.url
	if err := p.server.kill(); err != nil {
		return err
	}
	next, err := startServer(ctx, cfg, p.address, strings.TrimPrefix(url, "http://"))
	if err != nil {
		return err
	}
	p.server = next
	return nil
}
