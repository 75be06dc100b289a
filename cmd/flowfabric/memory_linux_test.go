package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/gctune"
	"github.com/flowfabric/flowfabric/internal/wire"
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

// fills are bodies with one list or map that is as long as the body may be, for every list and map of every request.
func fills() map[string]string {
	bodies := map[string]string{}
	for _, o := range wire.Operations() {
		body, found := o.Request.FieldByName("Body")
		if !found || o.ID == wire.DrainServer.ID {
			continue
		}
		size := 60 << 10 // more is refused unread
		switch o.ID {
		case wire.SubmitExecutions.ID, wire.SendWork.ID, wire.SubmitFlow.ID, wire.ExtendFlow.ID, wire.SpawnChildren.ID:
			size = 8 << 20
		case wire.StartBulk.ID, wire.HeartbeatWorker.ID:
			size = 3 << 20
		}
		path := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(o.Path, "0198f0a0-0000-7000-8000-000000000000")
		fill(body.Type, nil, func(where, before, element, after string) {
			n := size/(len(element)+1) + 1
			text := strings.Repeat(element+",", n) + element
			if strings.HasPrefix(element, `"#":`) { // of a map, whose keys differ
				var b strings.Builder
				for i := range size / (len(element) + 7) {
					fmt.Fprintf(&b, `"k%d":%s,`, i, element[len(`"#":`):])
				}
				text = b.String() + `"k":` + element[len(`"#":`):]
			}
			bodies[o.Method+" "+path+" "+where] = before + text + after
		})
	}
	return bodies
}

// fill calls found for each list and map of a type, with what of a value stands before and after its elements.
func fill(of reflect.Type, above []reflect.Type, found func(where, before, element, after string)) {
	if slices.Contains(above, of) {
		return // it holds itself: the first level shows what any does
	}
	above = append(above, of)
	switch of.Kind() {
	case reflect.Pointer:
		fill(of.Elem(), above, found)
	case reflect.Slice, reflect.Map:
		opening, closing, name := "[", "]", ""
		if of.Kind() == reflect.Map {
			opening, closing, name = "{", "}", `"#":`
		}
		if of.Elem().Kind() != reflect.Uint8 {
			found("", opening, name+plainValue(of.Elem()), closing)
		}
		fill(of.Elem(), above, func(where, before, element, after string) {
			found("/0"+where, opening+strings.Replace(name, "#", "k", 1)+before, element, after+closing)
		})
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(of) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || name == "-" || f.Tag.Get("spread") != "" {
				continue
			}
			fill(f.Type, above, func(where, before, element, after string) {
				found("/"+name+where, `{"`+name+`":`+before, element, after+"}")
			})
		}
	}
}

// plainValue is a short value of a type in JSON.
func plainValue(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Pointer:
		return plainValue(of.Elem())
	case reflect.String:
		return `""`
	case reflect.Slice:
		return "[]"
	case reflect.Struct, reflect.Map:
		return "{}"
	default:
		return "0"
	}
}

func TestU20_no_list_of_a_request_takes_the_memory_of_a_small_container(t *testing.T) {
	t.Parallel()
	stays(t, 2, lists(), true)
}

func TestU20_no_list_of_any_route_takes_the_memory_of_a_small_container(t *testing.T) {
	t.Parallel()
	all := fills()
	if len(all) < 100 {
		t.Errorf("only %d lists and maps are found", len(all))
	}
	stays(t, 1, all, false)
}

// stays sends requests, each so many times, to a server in a container of 256 MiB, which must live on within it. Refused must be those that are far
// beyond what a list may have.
func stays(t *testing.T, times int, bodies map[string]string, refused bool) {
	t.Helper()
	const limit = 256 << 20
	p := &process{ended: make(chan error, 1), cmd: exec.Command("flowfabric", "dev", "--listen", "127.0.0.1:0", "--store", "sqlite:"+t.TempDir()+"/a.db")}
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), fmt.Sprintf("GOMEMLIMIT=%d", gctune.Within(limit))}
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
	turns := make(chan struct{}, 8)
	for name, body := range bodies {
		for range times {
			turns <- struct{}{}
			sent.Go(func() {
				defer func() { <-turns }()
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
				why, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
				if refused && answer.StatusCode < 400 || answer.StatusCode >= 500 && answer.StatusCode != http.StatusServiceUnavailable {
					t.Errorf("%s: %s %s", name, answer.Status, why)
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
	if peak<<10 > limit && !raceDetector {
		t.Errorf("the server took %d MiB", peak>>10)
	}
	healthy, err := http.Get(url + "/healthz")
	if err != nil || healthy.StatusCode != http.StatusOK {
		t.Errorf("%v %v", healthy, err)
	}
	_ = healthy.Body.Close()
}
