package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/tools/crash/history"
)

func TestA_seed_draws_the_same_faults_again_and_ten_minutes_have_enough_of_them(t *testing.T) {
	t.Parallel()
	for store, want := range map[string]map[string]int{
		"postgres": {killServer: 100, killWorker: 30, killPostgres: 30, freezeServer: 5, freezeWorker: 5, freezePostgres: 1, fullDisk: 1, network: 100},
		"sqlite":   {killServer: 100, killWorker: 30, powerCut: 30, failedSync: 1, fullDisk: 1, network: 100},
	} {
		for seed := range uint64(20) {
			counts := map[string]int{}
			for i, s := range streams(store) {
				faults := s.plan(seed, i, 10*time.Minute)
				if !reflect.DeepEqual(faults, s.plan(seed, i, 10*time.Minute)) {
					t.Fatal("the same seed draws other faults")
				}
				if reflect.DeepEqual(faults, s.plan(seed+1, i, 10*time.Minute)) {
					t.Fatal("another seed draws the same faults")
				}
				for _, f := range faults {
					counts[f.kind]++
				}
			}
			for kind, least := range want {
				if counts[kind] < least {
					t.Errorf("%s, seed %d: %d times %q, at least %d are needed", store, seed, counts[kind], kind, least)
				}
			}
		}
	}
}

func TestFaults_hit_only_processes_of_the_run(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := start(dir, "nonce", "sleeper", "/bin/sleep", []string{"600"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	stranger := *p
	stranger.nonce = "another nonce"
	if err := stranger.signal(syscall.SIGKILL); err == nil {
		t.Error("a process without the nonce of the run was killed")
	}
	if err := p.kill(); err != nil || !p.over() {
		t.Error(err)
	}
	if err := p.signal(syscall.SIGSTOP); err == nil {
		t.Error("a process that had ended was frozen")
	}
}

func TestAn_error_that_may_have_taken_effect_is_unknown(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		err  error
		want history.Outcome
	}{
		{nil, history.Done},
		{context.DeadlineExceeded, history.Unknown},
		{errors.New("anything"), history.Unknown},
		{api.Errorf("timeout", "x"), history.Unknown},
		{api.Errorf("store_unavailable", "x"), history.Unknown},
		{api.Errorf("internal", "x"), history.Unknown},
		{api.Errorf("stale_lease", "x"), history.Refused},
		{api.Errorf("execution_not_active", "x"), history.Refused},
	} {
		if got, code := outcomeOf(one.err); got != one.want {
			t.Errorf("%v is %s (%s), want %s", one.err, got, code, one.want)
		}
	}
}

func TestThe_transport_counts_lost_answers_and_sends_commands_twice(t *testing.T) {
	t.Parallel()
	var received atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if string(body) != "hello" && r.Method == http.MethodPost {
			t.Errorf("the server got %q", body)
		}
		received.Add(1)
	}))
	defer server.Close()
	r := newRoad([]string{strings.TrimPrefix(server.URL, "http://")}, 0, 1)
	defer r.close()
	send := func(method string) (lost int64) {
		for range 1000 {
			request, err := http.NewRequestWithContext(t.Context(), method, "http://server/", strings.NewReader("hello"))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set(keyHeader, "k")
			response, err := r.RoundTrip(request)
			if err != nil {
				lost++
				continue
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		r.seconds.Wait()
		return lost
	}
	if lost := send(http.MethodPost); lost == 0 || lost != r.unknown.Load() || received.Load() != 1000+r.duplicated.Load() || r.duplicated.Load() == 0 {
		t.Errorf("%d answers were lost, %d counted; %d requests arrived, %d were doubled", lost, r.unknown.Load(), received.Load(), r.duplicated.Load())
	}
	was := received.Load()
	if lost := send(http.MethodGet); lost != 0 || received.Load() != was+1000 {
		t.Errorf("%d answers to reads were lost, %d arrived", lost, received.Load()-was)
	}
}

func TestA_request_that_was_never_sent_is_not_of_unknown_outcome(t *testing.T) {
	t.Parallel()
	r := newRoad([]string{"127.0.0.1:1"}, 0, 1) // nothing listens there
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://server/", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set(keyHeader, "k")
	if _, err := r.RoundTrip(request); err == nil || r.unknown.Load() != 0 {
		t.Errorf("%v, %d unknown", err, r.unknown.Load())
	}
	r.close()
}

func TestTokens_are_read_once_and_only_whole_lines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "w.tokens")
	offsets := map[string]int64{}
	for _, step := range []struct {
		add  string
		want int
	}{{`{"execution":"a"}` + "\n" + `{"execut`, 1}, {`ion":"b"}` + "\n", 1}, {"", 0}} {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(step.add); err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		if fresh, err := readTokens(path, offsets); err != nil || len(fresh) != step.want {
			t.Errorf("after %q: %v, %v", step.add, fresh, err)
		}
	}
}

func TestA_report_is_written_as_a_page_and_as_JSON(t *testing.T) {
	t.Parallel()
	p := &report{
		Store: "sqlite", Seed: 7, Found: 1, Killed: map[string]int64{"servers": 3}, Findings: []history.Finding{{Rule: "I1", Execution: "<x>", Text: "gone", Story: []string{"a & b"}}},
	}
	dir := t.TempDir()
	if err := p.write(dir); err != nil {
		t.Fatal(err)
	}
	for ending, wants := range map[string][]string{"html": {"&lt;x&gt;", "a &amp; b", "seed 7", "<td>3</td>"}, "json": {`"seed": 7`, `"rule": "I1"`}} {
		text, err := os.ReadFile(filepath.Join(dir, "crash-sqlite."+ending))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s does not contain %q", ending, want)
			}
		}
	}
	var out strings.Builder
	p.summary(&out)
	if !strings.Contains(out.String(), "FINDING I1: <x>: gone") {
		t.Error(out.String())
	}
}
