package flowfabric_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/server"
)

// losing is a server that breaks the connection instead of answering calls with frames: at first before it does them, then after.
func losing(t testing.TB, client *flowfabric.Client, lost *atomic.Int64) string {
	t.Helper()
	s, err := server.New(backend(client), server.Config{Open: true, Logger: silent()})
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int64
	handler := s.Handler()
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte(`"op":"frames"`)) {
			handler.ServeHTTP(w, r)
			return
		}
		switch calls.Add(1) % 3 {
		case 1:
			lost.Add(1)
			panic(http.ErrAbortHandler)
		case 2:
			handler.ServeHTTP(httptest.NewRecorder(), r)
			lost.Add(1)
			panic(http.ErrAbortHandler)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		s.Drain()
		listener.Close()
	})
	return listener.URL
}

func TestE3_text_is_stored_once_however_many_answers_are_lost(t *testing.T) {
	t.Parallel()
	onEveryStoreEmbedded(t, func(t *testing.T, w *world) {
		var lost atomic.Int64
		address := losing(t, w.Client, &lost)
		remote := &world{Client: w.Client, workers: func(t testing.TB) *flowfabric.Client { return connect(t, address, flowfabric.ConnectConfig{}) }}
		var want strings.Builder
		for n := range 20 {
			fmt.Fprintf(&want, "%d\n", n)
		}
		remote.telling(t, func(_ context.Context, _ *flowfabric.Task, out *flowfabric.StreamWriter) (string, error) {
			for n := range 20 {
				fmt.Fprintf(out, "%d\n", n)
				if n%5 == 0 {
					if err := out.Flush(); err != nil {
						return "", err
					}
				}
			}
			return "", nil
		})
		run := remote.told(t)
		must[string](t)(run.Result(inTime(t)))
		if got := said(w.framesOf(t, run.ID(), 0)); got != want.String() {
			t.Errorf("stored is %q", got)
		}
		if lost.Load() < 4 {
			t.Errorf("only %d answers were lost", lost.Load())
		}
	})
}
