package flowfabric_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// oneEvent is a page of the log as a server shows it.
const oneEvent = `{"items":[{"id":"e","cursor":"c","kind":"execution.submitted","v":1,"actor":{"type":"client"},"attempt_index":0}],"next":"c","at_end":true}`

// followed follows the log until it ends by itself, and says when the first event came.
func followed(t *testing.T, c *flowfabric.Client) (came <-chan flowfabric.Event, ended <-chan error) {
	t.Helper()
	first, end := make(chan flowfabric.Event, 1), make(chan error, 1)
	go func() {
		for event, err := range c.Events().Follow(context.WithoutCancel(t.Context()), ops.ReadOptions{After: api.FromStart}) {
			if err != nil {
				end <- err
				continue // it must be the last
			}
			select {
			case first <- event:
			default:
			}
		}
		close(end)
	}()
	return first, end
}

func TestU132_closing_ends_what_follows_the_log(t *testing.T) {
	t.Parallel()
	clients := map[string]func(t *testing.T) *flowfabric.Client{
		"of a server": func(t *testing.T) *flowfabric.Client {
			_, client := serve(t, says(http.StatusOK, oneEvent), func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			return client
		},
	}
	for name, address := range everyStore() {
		clients[name] = func(t *testing.T) *flowfabric.Client {
			w := openWorld(t, address(t), engine.Hooks{})
			must[flowfabric.SubmitResult](t)(w.Submit(inTime(t), flowfabric.Submission{Kind: "k"}))
			return w.Client
		}
	}
	for name, open := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := open(t)
			came, ended := followed(t, client)
			receive(t, came)
			if err := client.Close(inTime(t)); err != nil {
				t.Fatal(err)
			}
			if err := receive(t, ended); flowfabric.CodeOf(err) != "shutting_down" {
				t.Errorf("it ended with %v, want shutting_down", err)
			}
			if err, more := <-ended; more {
				t.Errorf("it went on, with %v", err)
			}
		})
	}
}

func TestU106_a_server_that_shuts_down_does_not_end_what_follows_the_log(t *testing.T) {
	t.Parallel()
	leaves := problem(http.StatusServiceUnavailable, &flowfabric.Error{Code: "shutting_down", Class: "unavailable", Message: "the server stops", Retryable: true})
	const tries = 6 // that one call makes
	in, client := serve(t, append(slices.Repeat([]http.HandlerFunc{leaves}, tries+1), says(http.StatusOK, oneEvent))...)
	for event, err := range client.Events().Follow(inTime(t), ops.ReadOptions{After: api.FromStart}) {
		if err != nil {
			t.Fatalf("it ended with %v", err)
		}
		if event.AttemptIndex == nil || *event.AttemptIndex != 0 || event.Actor.Type != "client" {
			t.Errorf("%+v", event)
		}
		break
	}
	if n := len(in.all()); n != tries+2 {
		t.Errorf("%d requests, want %d", n, tries+2)
	}
}
