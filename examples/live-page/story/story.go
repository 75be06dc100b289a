// Package story is the live-page example: a web page of sixty lines follows one run as it happens, by server-sent events, and
// survives a reload.
package story

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/flowfabric/flowfabric/examples/stage"
)

// The pace of the work: for the story, and for people who look.
const (
	quick = 200 * time.Millisecond
	slow  = 1500 * time.Millisecond
)

// Tell tells the story. With keep it goes on serving the page until the context ends.
func Tell(ctx context.Context, s *stage.Stage, keep bool) error {
	client, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close(context.WithoutCancel(ctx))
	b := &bakery{Stage: s, client: client, pace: quick}
	if keep {
		b.pace = slow
	}
	routes, err := b.routes()
	if err != nil {
		return err
	}
	address, stopServing, err := stage.Serve(ctx, routes)
	if err != nil {
		return err
	}
	stopWorking := stage.Start(ctx, b.worker())
	reader := &http.Client{Transport: &http.Transport{}}
	err = b.follow(ctx, reader, address)
	if keep && err == nil {
		s.Say("The page stays at %s until Ctrl-C.", address)
		<-ctx.Done()
	}
	reader.CloseIdleConnections()
	return errors.Join(err, stopWorking(), stopServing())
}

// follow does what the page does, as far as that goes without a browser.
func (b *bakery) follow(ctx context.Context, reader *http.Client, address string) error {
	run, err := b.bake(ctx)
	if err != nil {
		return err
	}
	b.Say("A cake is being baked. The page %s/?run=%s follows it.", address, run.ID())
	stream := address + "/flowfabric/v1/executions/" + string(run.ID()) + "/events?after=start"
	var heard []event
	until := func(last string) func(event) bool {
		return func(e event) bool {
			heard = append(heard, e)
			b.Show("%s", e.kind)
			return e.kind == last
		}
	}
	if err := listen(ctx, reader, stream, "", until("lease.acquired")); err != nil {
		return err
	}
	b.Say("The connection breaks. The next one says which event was the last, and hears what came since.")
	if err := listen(ctx, reader, stream, heard[len(heard)-1].id, until("execution.completed")); err != nil {
		return err
	}
	b.Say("The page is reloaded: it hears everything once more, from the beginning.")
	again := 0
	if err := listen(ctx, reader, stream, "", func(e event) bool { again++; return e.kind == "execution.completed" }); err != nil {
		return err
	}
	if again != len(heard) {
		return fmt.Errorf("after the reload there are %d events, before there were %d", again, len(heard))
	}
	b.Show("%d events, as before", again)
	result, err := run.Result(ctx)
	b.Show("%s: %s", run.ID(), result)
	return err
}
