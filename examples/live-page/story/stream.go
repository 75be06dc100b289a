package story

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/flowfabric/flowfabric"
)

// screen is what the page shows of a run.
type screen struct {
	reader *http.Client
	run    string // address of the run

	events    []string // kinds
	lastEvent string   // its id
	said      string   // what the newest attempt has said
	lastFrame string   // its id
}

// all is more than any attempt says.
const all = math.MaxInt

// follow reads events until one of a kind, and what the newest attempt says until there is enough. A screen that has something already
// continues after that.
func (s *screen) follow(ctx context.Context, kind string, enough int) error {
	err := listen(ctx, s.reader, s.run+"/events?after=start", s.lastEvent, func(e event) bool {
		s.lastEvent = e.id
		s.events = append(s.events, e.kind)
		return e.kind == kind
	})
	if err != nil {
		return err
	}
	return listen(ctx, s.reader, s.run+"/stream", s.lastFrame, func(e event) bool {
		s.lastFrame = e.id
		switch e.kind {
		case flowfabric.AttemptStarted:
			s.said = "" // it is superseded
		case "frame":
			var frame flowfabric.Frame
			if err := json.Unmarshal([]byte(e.data), &frame); err == nil {
				s.said += string(frame.Payload.Data)
			}
		}
		return e.kind == flowfabric.StreamClosed || len(s.said) >= enough
	})
}

// event is a server-sent event.
type event struct{ id, kind, data string }

// listen reads events until heard says that it has enough. It is what EventSource does in a browser: after a break it sends the id of
// the last event it has, and hears what came since.
func listen(ctx context.Context, client *http.Client, address, lastID string, heard func(event) (enough bool)) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "text/event-stream")
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", address, answer.Status)
	}
	var next event
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			next.id = value
		case "event":
			next.kind = value
		case "data":
			next.data = value
		case "": // an empty line ends an event
			if next.kind != "" && heard(next) {
				return nil
			}
			next = event{id: next.id}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return fmt.Errorf("the stream of %s ended", address)
}
