package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/heap"
)

// lists are requests that name far more than a list may have, as a client might send them to a server in a container of 256 MiB.
func lists() map[string]string {
	return map[string]string{
		"POST /v1/executions/bulk":       `{"items":[` + strings.Repeat(`{"kind":"k"},`, 1_000_000) + `{}]}`,
		"POST /v1/executions/bulk many":  `{"items":[` + strings.Repeat(`{"kind":"k"},`, 4_000_000) + `{}]}`,
		"POST /v1/work/batch":            `{"items":[` + strings.Repeat(`{},`, 1_000_000) + `{}]}`,
		"POST /v1/flows":                 `{"nodes":[` + strings.Repeat(`{},`, 2_000_000) + `{}]}`,
		"POST /v1/flows edges":           `{"nodes":[],"edges":[` + strings.Repeat(`{},`, 10_000_000) + `{}]}`,
		"POST /v1/flows flows":           `{"nodes":[` + strings.Repeat(`{"flow":{"nodes":[{},{},{},{},{},{},{},{},{},{}]}},`, 9_999) + `{}]}`,
		"POST /v1/bulk":                  `{"action":"cancel","ids":[` + strings.Repeat(`"",`, 1_000_000) + `""]}`,
		"POST /v1/work/claim":            `{"lanes":[` + strings.Repeat(`"",`, 20_000) + `""]}`,
		"POST /v1/workers/w-1/heartbeat": `{"leases":[` + strings.Repeat(`{},`, 1_000_000) + `{}]}`,
		"POST /v1/executions deep":       `{"kind":"k","input":` + strings.Repeat(`[`, 500_000) + strings.Repeat(`]`, 500_000) + `}`,
		"POST /v1/executions many tags":  `{"kind":"k","tags":{` + strings.Repeat(`"a":"b",`, 100_000) + `"b":"c"}}`,
	}
}

var peakMemory = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

func TestU20_no_list_of_a_request_takes_the_memory_of_a_small_container(t *testing.T) {
	t.Parallel()
	const limit = 256 << 20
	p := &process{ended: make(chan error, 1), cmd: exec.Command("flowfabric", "dev", "--listen", "127.0.0.1:0", "--store", "sqlite:"+t.TempDir()+"/a.db")}
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), fmt.Sprintf("GOMEMLIMIT=%d", heap.Within(limit))}
	address, err := p.begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	}()
	var url string
	select {
	case url = <-address:
	case <-time.After(patience):
		t.Fatalf("the server is not ready\n%s", p.text())
	}
	var sent sync.WaitGroup
	for name, body := range lists() {
		for range 2 {
			sent.Go(func() {
				route := strings.Fields(name)
				request, err := http.NewRequestWithContext(t.Context(), route[0], url+route[1], strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				request.Header.Set("Content-Type", "application/json")
				answer, err := http.DefaultClient.Do(request)
				if err != nil {
					if !strings.Contains(err.Error(), "reset") && !strings.Contains(err.Error(), "broken pipe") { // refused before all of it was sent
						t.Errorf("%s: %v", name, err)
					}
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
				if answer.StatusCode < 400 || answer.StatusCode >= 500 && answer.StatusCode != http.StatusServiceUnavailable {
					t.Errorf("%s: %s", name, answer.Status)
				}
			})
		}
	}
	sent.Wait()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatalf("the server has died: %v\n%s", err, p.text())
	}
	peak, err := strconv.Atoi(string(peakMemory.FindSubmatch(bytes.TrimSpace(status))[1]))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d MiB at most", peak>>10)
	if peak<<10 > limit {
		t.Errorf("the server took %d MiB", peak>>10)
	}
	healthy, err := http.Get(url + "/healthz")
	if err != nil || healthy.StatusCode != http.StatusOK {
		t.Errorf("%v %v", healthy, err)
	}
	_ = healthy.Body.Close()
}
