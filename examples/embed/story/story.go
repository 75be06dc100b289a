// Package story is the embed example: an ordinary net/http program has the engine, a worker and the whole server inside it, and lets
// its own login decide who may do what.
package story

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/flowfabric/flowfabric/examples/stage"
)

// Embed is the story.
var Embed = stage.Story{Name: "embed", Tell: tell}

func tell(ctx context.Context, s *stage.Stage) error {
	if s.Server != "" {
		return &stage.Misuse{Text: "here the program itself is the server: give -store, or nothing"}
	}
	client, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	b := &bakery{lane: s.Name, client: client}
	routes, err := b.routes(s)
	if err != nil {
		return err
	}
	address, stopServing, err := stage.Serve(ctx, routes)
	if err != nil {
		return err
	}
	stopWorking := stage.Start(ctx, b.worker(s))
	s.Say("A bakery's program serves its own routes at %s, and FlowFabric at %s%s.", address, address, mount)
	v := visitor{s, address, &http.Client{Transport: &http.Transport{}}}
	err = v.visit(ctx)
	v.http.CloseIdleConnections()
	return errors.Join(err, stopWorking(), stopServing())
}

// visitor makes the requests of the story.
type visitor struct {
	*stage.Stage
	address string
	http    *http.Client
}

func (v visitor) visit(ctx context.Context) error {
	v.Say("A customer orders a cake from the bakery. The program hands the work to the engine inside it.")
	if _, err := v.send(ctx, http.MethodPost, "/cakes/sacher", ""); err != nil {
		return err
	}
	text, err := v.send(ctx, http.MethodGet, "/cakes/sacher", "")
	if err != nil {
		return err
	}
	var ordered cake
	if err := json.Unmarshal(text, &ordered); err != nil {
		return err
	}
	v.Show("%s %s: %s", ordered.Execution, ordered.Status, ordered.Result)

	v.Say("The operators of the bakery look into FlowFabric with the bakery's own login.")
	lane := mount + "/v1/lanes/" + v.Name
	for _, request := range []struct{ user, method, path string }{
		{"", http.MethodGet, lane}, {"bob", http.MethodGet, lane}, {"bob", http.MethodPost, lane + "/pause"}, {"ann", http.MethodPost, lane + "/pause"},
	} {
		if _, err := v.send(ctx, request.method, request.path, request.user); err != nil {
			return err
		}
	}
	return nil
}

// send makes a request as a user, tells how it went and answers the body.
func (v visitor) send(ctx context.Context, method, path, user string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, v.address+path, nil)
	if err != nil {
		return nil, err
	}
	who := "somebody"
	if user != "" {
		who = user
		r.SetBasicAuth(user, staff[user])
	}
	answer, err := v.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	v.Show("%s: %s %s: %s", who, method, path, answer.Status)
	return io.ReadAll(answer.Body)
}
