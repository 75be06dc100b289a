// Package story is the live-page example: a web page of sixty lines follows one run as it happens, by server-sent events: what the engine
// does with it, and what its worker says. The page survives a reload and the death of the worker.
package story

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/flowfabric/flowfabric/examples/stage"
	"github.com/flowfabric/flowfabric/flowfabrichttp"
)

// Tell tells the story. With keep it goes on serving the page until the context ends.
func Tell(ctx context.Context, s *stage.Stage, keep bool) error {
	client, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	if s.Part { // a process that may be killed
		return newWorker(s, client, slow, lease).Run(ctx)
	}
	server, stopServer, err := s.Served(ctx, client, flowfabrichttp.Config{Open: true})
	if err != nil {
		return err
	}
	b := &bakery{Stage: s, client: client, server: server}
	defer b.kill()
	return errors.Join(b.open(ctx, keep), stopServer())
}

// open serves the page while the story is told, or longer.
func (b *bakery) open(ctx context.Context, keep bool) error {
	routes, err := b.routes(ctx)
	if err != nil {
		return err
	}
	address, stopServing, err := stage.Serve(ctx, routes)
	if err != nil {
		return err
	}
	reader := &http.Client{Transport: &http.Transport{}}
	err = b.follow(ctx, reader, address)
	if keep && err == nil {
		if err = b.start(ctx); err == nil {
			b.Say("The page stays at %s until Ctrl-C. Bake a cake there, and kill the worker.", address)
			<-ctx.Done()
		}
	}
	reader.CloseIdleConnections()
	return errors.Join(err, stopServing())
}

// enough is how many bytes of the stream the page has when the worker is killed.
const enough = 40

// follow does what the page does, as far as that goes without a browser.
func (b *bakery) follow(ctx context.Context, reader *http.Client, address string) error {
	run, err := b.bake(ctx)
	if err != nil {
		return err
	}
	if err := b.start(ctx); err != nil {
		return err
	}
	b.Say("A worker process bakes a cake. The page %s/?run=%s follows it.", address, run.ID())
	seen := &screen{reader: reader, run: address + "/flowfabric/v1/executions/" + string(run.ID())}
	if err := seen.follow(ctx, "lease.acquired", enough); err != nil {
		return err
	}
	b.Show("%q %s", seen.events, seen.said)
	b.kill()
	b.Say("The worker is killed, and the connections break. The next ones say what they had last. Another worker takes over when the lease lapses (%s).", lease)
	stopWorking := stage.Start(ctx, newWorker(b.Stage, b.client, quick, 0))
	err = seen.follow(ctx, "execution.completed", all)
	if err := errors.Join(err, stopWorking()); err != nil {
		return err
	}
	b.Show("%q %s", seen.events, seen.said)
	b.Say("The page is reloaded: it has everything once more, from the beginning.")
	again := &screen{reader: reader, run: seen.run}
	if err := again.follow(ctx, "execution.completed", all); err != nil {
		return err
	}
	if !slices.Equal(again.events, seen.events) || again.said != seen.said {
		return fmt.Errorf("after the reload there are %q and %q, before there were %q and %q", again.events, again.said, seen.events, seen.said)
	}
	result, err := run.Result(ctx)
	b.Show("%d events and %d bytes of text, as before; the result is: %s", len(again.events), len(again.said), result)
	return err
}
