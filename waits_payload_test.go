package flowfabric_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// bits are payloads that anything but bytes would spoil.
func bits() map[string]flowfabric.Payload {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	return map[string]flowfabric.Payload{
		"every byte":   {Data: every, ContentType: "application/x-every; charset=none"},
		"json as text": {Data: []byte("{ \"a\" : 1.50,\n\"a\":2 }\n"), ContentType: "application/json"},
		"no type":      {Data: []byte("\xff\x00")},
		"nothing":      {ContentType: "text/plain"},
	}
}

// samePayload fails the test unless a payload came back as it was sent.
func samePayload(t *testing.T, where string, got, want flowfabric.Payload) {
	t.Helper()
	if want.ContentType == "" {
		want.ContentType = "application/octet-stream"
	}
	if !bytes.Equal(got.Data, want.Data) || got.ContentType != want.ContentType {
		t.Errorf("%s: %q of %s, want %q of %s", where, got.Data, got.ContentType, want.Data, want.ContentType)
	}
}

func TestW9_payloads_of_signals_and_continuations_come_back_bit_for_bit(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		for name, p := range bits() {
			for by, send := range map[string]func(*flowfabric.Waitpoint) error{
				"signal": func(at *flowfabric.Waitpoint) error {
					_, err := w.Signal(inTime(t), flowfabric.Signal{WaitpointID: at.ID, Token: at.Token, Name: "go", Payload: p})
					return err
				},
				"approve": func(at *flowfabric.Waitpoint) error {
					_, err := w.Operate().Approve(inTime(t), at.ExecutionID, ops.Approve{Payload: p})
					return err
				},
				"callback": func(at *flowfabric.Waitpoint) error { return w.callsBack(t, at, p) },
			} {
				h := hand{w, t}
				id := h.submits()
				first := h.claims(time.Minute)
				wait := api.WorkItem{Op: api.OpSuspend, ID: id, Lease: first.Lease, Suspension: &flowfabric.Suspension{
					Key: "wait", Waitpoints: []flowfabric.Binding{flowfabric.NewWaitpoint("at")}, Continuation: p,
				}}
				at := h.does(wait).Waitpoints[0]
				if err := send(&at); err != nil {
					t.Fatalf("%s by %s: %v", name, by, err)
				}
				where := name + " by " + by
				second := h.claims(time.Minute)
				samePayload(t, where+", claim", second.Resume.Signals[0].Payload, p)
				samePayload(t, where+", continuation of the claim", second.Resume.Continuation, p)
				wait.Lease = second.Lease
				samePayload(t, where+", suspend again", h.does(wait).Resume.Signals[0].Payload, p)
				seen := must[*api.SuspensionRecord](t)(w.Executions().Suspension(inTime(t), id))
				samePayload(t, where+", observe", seen.Signals[0].Payload, p)
				samePayload(t, where+", continuation of observe", seen.Continuation, p)
				listed := must[[]flowfabric.SignalRecord](t)(all(w.Executions().Signals(inTime(t), id)))
				samePayload(t, where+", list", listed[0].Payload, p)
				h.does(api.WorkItem{Op: api.OpComplete, ID: id, Lease: second.Lease})
			}
		}
	})
}

// callsBack posts to the address of a waitpoint. A client without a server has none that could be posted to: it signals.
func (w *world) callsBack(t *testing.T, at *flowfabric.Waitpoint, p flowfabric.Payload) error {
	t.Helper()
	if !strings.HasPrefix(at.CallbackURL, "http") {
		_, err := w.Signal(inTime(t), flowfabric.Signal{WaitpointID: at.ID, Token: at.Token, Name: "callback", Payload: p})
		return err
	}
	request, err := http.NewRequestWithContext(inTime(t), http.MethodPost, at.CallbackURL, bytes.NewReader(p.Data))
	if err != nil {
		return err
	}
	if p.ContentType != "" {
		request.Header.Set("Content-Type", p.ContentType)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}
