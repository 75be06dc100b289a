package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/server/apitest"
)

// patience bounds what a test waits for.
const patience = 5 * time.Minute

// world is a server as one namespace sees it.
type world struct {
	*serving
	namespace string
	leases    string // the field of a claim that says how long its leases last; "": as long as they do by default
}

// forADay is the field of a claim whose leases outlast the test: those of half a minute do not when the machine is busy.
const forADay = `,"lease_ttl_ms":86400000`

// onEveryStore runs a test against the server of each store, in a namespace of its own.
func onEveryStore(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for name, at := range sites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := at.of(t)
			test(t, &world{up, fmt.Sprintf("n%d", up.last.Add(1)), forADay})
		})
	}
}

// atOwnTime runs a test against servers whose clock it turns itself.
func atOwnTime(t *testing.T, test func(t *testing.T, w *world, hand *clock.Manual)) {
	t.Helper()
	for name, at := range sites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hand := clock.NewManual(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
			test(t, &world{serve(t, at.address(t), engine.Hooks{Clock: hand}), "default", ""}, hand)
		})
	}
}

// reply is a whole answer.
type reply struct {
	asked  string // the request
	status int
	header http.Header
	body   []byte
	value  any // of the body; nil: it is no JSON
}

func (w *world) get(t testing.TB, path string) reply { t.Helper(); return w.send(t, "GET", path, "") }

func (w *world) post(t testing.TB, path, body string) reply {
	t.Helper()
	return w.send(t, "POST", path, body)
}

// send sends a request and reads the whole answer, which must be as the OpenAPI document says.
func (w *world) send(t testing.TB, method, path, body string) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("FlowFabric-Namespace", w.namespace)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := w.http.Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	got := reply{asked: method + " " + path + " " + body, status: response.StatusCode, header: response.Header, body: text}
	_ = json.Unmarshal(text, &got.value) // somebody's bytes may be anything
	if err := w.routes.Conforms(apitest.Answer{Method: method, Path: path, Status: got.status, Header: got.header, Body: text}); err != nil {
		t.Errorf("%s: %v\n%s", got.asked, err, text)
	}
	return got
}

// wants checks the status.
func (r reply) wants(t testing.TB, status int) reply {
	t.Helper()
	if r.status != status {
		t.Fatalf("%s: status %d, want %d: %s", r.asked, r.status, status, r.body)
	}
	return r
}

// refuses checks the status and the code of a problem.
func (r reply) refuses(t testing.TB, status int, code string) reply {
	t.Helper()
	r.wants(t, status)
	return r.shows(t, fields{"code": code})
}

// fields are values of an answer by their paths: names and indexes with dots between. Numbers may be written as int; nil is a field
// that is absent.
type fields map[string]any

// shows checks fields of the answer.
func (r reply) shows(t testing.TB, want fields) reply {
	t.Helper()
	for path, value := range want {
		if n, ok := value.(int); ok {
			value = float64(n)
		}
		if got := r.field(t, path); !reflect.DeepEqual(got, value) {
			t.Errorf("%s: %s is %v, want %v: %s", r.asked, path, got, value, r.body)
		}
	}
	return r
}

// field is a value of the answer, nil when there is none.
func (r reply) field(t testing.TB, path string) any {
	t.Helper()
	value := r.value
	if value == nil {
		t.Fatalf("%s: no JSON: %s", r.asked, r.body)
	}
	for part := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

func (r reply) text(t testing.TB, path string) string {
	t.Helper()
	text, _ := r.field(t, path).(string)
	return text
}

// items are the elements of a list of the answer.
func (r reply) items(t testing.TB, path string) []any {
	t.Helper()
	all, ok := r.field(t, path).([]any)
	if !ok && r.field(t, path) != nil {
		t.Fatalf("%s: %s is no list: %s", r.asked, path, r.body)
	}
	return all
}
