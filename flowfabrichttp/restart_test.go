package flowfabrichttp_test

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/flowfabrichttp"
	"github.com/flowfabric/flowfabric/flowfabrictest"
)

func TestU144_a_server_on_a_test_environment_survives_its_restart(t *testing.T) {
	t.Parallel()
	env := flowfabrictest.New(t)
	handler, err := flowfabrichttp.New(env.Client, flowfabrichttp.Config{Open: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	submit := func() int {
		r, err := listener.Client().Post(listener.URL+"/v1/executions", "application/json", strings.NewReader(`{"kind":"k"}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		return r.StatusCode
	}
	if before := submit(); before != 201 {
		t.Errorf("before the restart: %d", before)
	}
	env.Restart()
	if after := submit(); after != 201 {
		t.Errorf("after the restart: %d", after)
	}
}
