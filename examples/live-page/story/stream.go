package story

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
)

// event is what a reader of server-sent events sees of one.
type event struct{ id, kind string }

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
		case "": // an empty line ends an event
			if next.kind != "" && heard(next) {
				return nil
			}
			next = event{}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return fmt.Errorf("the stream of %s ended", address)
}
