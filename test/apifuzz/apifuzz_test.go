package apifuzz

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/testseed"
	"github.com/flowfabric/flowfabric/internal/wire"
)

var requests = flag.Int("requests", 5000, "requests of a run, over all servers")

func TestU4_U5_U11_U16_U20_U116_whatever_is_sent_is_answered_in_time_and_by_the_document(t *testing.T) {
	t.Parallel()
	from := testseed.Seed(t)
	// One server after the other: goroutines and heap are those of one alone.
	for i, run := range []struct {
		name  string
		store func(testing.TB) string
		open  bool
		part  int // of the requests, in percent
	}{
		{"sqlite, open", onSQLite, true, 50},
		{"sqlite, keys of each role", onSQLite, false, 35},
		{"postgres, open", onPostgres, true, 8},
		{"postgres, keys of each role", onPostgres, false, 7},
	} {
		t.Run(run.name, func(t *testing.T) {
			f := newFuzzer(t, newWorld(t, run.store(t), run.open), from, uint64(i))
			f.fuzz(*requests * run.part / 100)
		})
	}
}

// fuzzer sends requests to one server and judges the answers.
type fuzzer struct {
	*drawer
	t       *testing.T
	w       *world
	seed    uint64
	sent    int
	started time.Time
	called  map[string]int  // operations by id
	reached map[string]bool // operations that did something, or were refused as expected
	answers map[string]int  // by status and code

	complaints int
	last       bool // the server may be drained
}

func newFuzzer(t *testing.T, w *world, seed, stream uint64) *fuzzer {
	t.Helper()
	f := &fuzzer{t: t, w: w, seed: seed, started: time.Now(), called: map[string]int{}, reached: map[string]bool{}, answers: map[string]int{}}
	f.drawer = &drawer{Rand: rand.New(rand.NewPCG(seed, stream)), mem: newMemory(), now: f.started, host: strings.TrimPrefix(w.url, "http://")}
	response, err := w.http.Get(w.url + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	served, err := read(response)
	if err != nil || served.status != http.StatusOK {
		t.Fatalf("%d, %v", served.status, err)
	}
	f.doc = readDocument(t, served.body)
	f.admitCallers()
	t.Cleanup(func() {
		t.Logf("seed %d: %d requests in %v, answered %v", seed, f.sent, time.Since(f.started).Round(time.Millisecond), f.answers)
	})
	return f
}

// admitCallers makes a key for each role, and one for everything.
func (f *fuzzer) admitCallers() {
	info, err := f.w.http.Get(f.w.url + "/v1/whoami")
	if err != nil {
		f.t.Fatal(err)
	}
	info.Body.Close()
	if info.StatusCode == http.StatusOK {
		return // no key is asked for
	}
	f.w.callers = nil
	for _, role := range []string{"admin", "read", "submit", "work", "operate", "admin"} {
		who := caller{name: role, everywhere: len(f.w.callers) == 0}
		namespace := "default"
		if who.everywhere {
			namespace = "*"
		}
		key, err := f.w.Admin().APIKeys().Create(f.t.Context(), api.APIKeySettings{Name: role + "@" + namespace, Roles: []string{role}, Namespaces: []string{namespace}})
		if err != nil {
			f.t.Fatal(err)
		}
		who.key = key.Secret
		f.mem.own[key.ID] = true
		f.w.callers = append(f.w.callers, who)
	}
	f.w.callers = append(f.w.callers, caller{name: "missing"})
}

// fuzz sends so many requests after it has reached every operation, and then looks what they left behind.
func (f *fuzzer) fuzz(n int) {
	leave := f.w.linger(f.t)
	defer leave()
	f.reachAll()
	before := f.measure()
	for i := range n {
		if i%tendEvery == 0 {
			f.tend()
		}
		f.once(pick(f.Rand, f.doc.operations))
	}
	f.stillServes()
	f.settles(before)
	f.holdsTogether()
	f.drains()
}

// tendEvery is after how many requests things are made anew that requests can act on.
const tendEvery = 80

// once sends a request of some sort for an operation.
func (f *fuzzer) once(o *operation) {
	who := pick(f.Rand, f.w.callers)
	if f.IntN(3) > 0 {
		who = f.w.callers[0]
	}
	switch kind := f.IntN(20); {
	case kind == 0:
		f.call(f.bad(o, who), who)
	case kind < 6:
		f.call(f.valid(o), who)
	default:
		r := f.valid(o)
		f.spoil(r)
		f.call(r, who)
	}
}

// reachAll calls every operation until it did what it is for.
func (f *fuzzer) reachAll() {
	f.tend()
	for _, o := range f.doc.operations {
		for try := 0; !f.reached[o.id] && o.id != wire.DrainServer.ID; try++ {
			if try == 600 {
				f.t.Errorf("seed %d: %s was never reached in %d calls", f.seed, o.id, f.called[o.id])
				break
			}
			if try%5 == 4 {
				f.tend()
			}
			f.call(f.valid(o), f.w.callers[0])
		}
	}
	for _, o := range wire.Operations() {
		if f.called[o.ID] == 0 && o.ID != wire.DrainServer.ID && !o.Reserved {
			f.t.Errorf("%s is in the table and not in the document", o.ID)
		}
	}
}

// expected are refusals with which an operation has done what it can, here.
var expected = map[string][]string{
	wire.ReclaimExecution.ID: {"execution_not_reclaimable"}, // the engine mostly is faster
	wire.MakeBackup.ID:       {"not_implemented"},           // on Postgres
}

// locks reports whether a request may make an admin key, with which open mode ends (U123).
func (f *fuzzer) locks(r *request) bool {
	return f.w.open && strings.HasPrefix(r.o.path, wire.CreateAPIKey.Path) && strings.Contains(fmt.Sprint(r.body, r.text, string(r.raw)), "admin")
}

// call sends a request and judges the answer.
func (f *fuzzer) call(r *request, who caller) answer {
	if (f.drawer.ends(r) || f.locks(r)) && !f.last {
		return answer{}
	}
	if who.everywhere && r.header.Get(wire.HeaderNamespace) == "" && (len(r.wants) > 0 || f.IntN(10) > 0) {
		r.header.Set(wire.HeaderNamespace, "default")
	}
	f.sent++
	f.called[r.o.id]++
	a, err := f.w.send(f.t.Context(), r, who)
	switch {
	case errors.Is(err, errGaveUp), errors.Is(err, errUnsendable), errors.Is(err, errNoAnswer):
		return answer{}
	case err != nil:
		f.complain(r, who, a, fmt.Sprintf("no answer: %v", err))
		return a
	}
	f.answers[strings.TrimSpace(fmt.Sprint(a.status, " ", codeOf(a)))]++
	if wrong := f.judge(r, who, a); wrong != "" {
		f.complain(r, who, a, wrong)
	}
	if a.status < 300 && r.raw == nil {
		f.mem.learn(a.body)
		f.learnCursor(r.o, a.body)
	}
	return a
}

// learnCursor keeps cursors by operation: elsewhere they mean nothing.
func (f *fuzzer) learnCursor(o *operation, body []byte) {
	var page struct {
		Next string `json:"next_cursor"`
	}
	if json.Unmarshal(body, &page) == nil && page.Next != "" {
		f.mem.remember("next_cursor "+o.id, page.Next)
	}
}

// judge tells what is wrong with an answer.
func (f *fuzzer) judge(r *request, who caller, a answer) string {
	code := codeOf(a)
	o := r.o
	if r.method != o.method || r.raw != nil || r.spoilt == "other path" || r.spoilt == "odd path" {
		o = nil // it may be another operation's answer
	}
	if a.status < 300 && o != nil || slices.Contains(expected[r.o.id], code) || r.o.reserved && code == "not_implemented" {
		f.reached[r.o.id] = true
	}
	if a.cut {
		return ""
	}
	if a.status >= 500 && (a.status != http.StatusNotImplemented || !r.o.reserved && r.o.id != wire.MakeBackup.ID) {
		return "a failure of the server"
	}
	if wrong := f.doc.conforms(o, r.method, a); wrong != "" {
		return wrong
	}
	if len(r.wants) == 0 || who != f.w.callers[0] || r.o.reserved || byToken(r.o) || r.method == http.MethodHead {
		return ""
	}
	for _, want := range r.wants {
		if strings.Contains(string(a.body), `"`+want+`"`) {
			return ""
		}
	}
	if faultsOf(a) >= allFaults {
		return "" // a large body has others, and the answer lists the first ones
	}
	return fmt.Sprintf("%s, want one of %v", code, r.wants)
}

// allFaults is how many faults of a body an answer lists.
const allFaults = 100

func faultsOf(a answer) int {
	var p wire.Problem
	if json.Unmarshal(a.body, &p) != nil {
		return 0
	}
	return len(p.Errors)
}

func codeOf(a answer) string {
	var p wire.Problem
	if a.status < 400 || json.Unmarshal(a.body, &p) != nil {
		return ""
	}
	return p.Code
}

// complain reports a request with what is wrong about its answer.
func (f *fuzzer) complain(r *request, who caller, a answer, wrong string) {
	f.t.Helper()
	text := r.text
	if r.body != nil {
		text = textOf(r.body)
	}
	if r.raw != nil {
		text = string(r.raw)
	}
	f.t.Errorf("seed %d, request %d (%s, %s, as %s): %s\n%s %s\n%v\n%s\nanswer %d: %s", f.seed, f.sent, r.o.id, r.spoilt, who.name, wrong,
		r.method, short(r.url("")), short(fmt.Sprint(r.header)), short(text), a.status, short(string(a.body)))
	if f.complaints++; f.complaints >= 10 {
		f.t.FailNow()
	}
}

// short is a text of which only the beginning matters.
func short(text string) string {
	if len(text) > 700 {
		text = text[:700] + "..."
	}
	return fmt.Sprintf("%q", text)
}

// use is what a server has under way.
type use struct {
	goroutines int
	heap       uint64
}

func (f *fuzzer) measure() use {
	f.w.http.CloseIdleConnections()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return use{runtime.NumGoroutine(), m.HeapAlloc}
}

// The growth that is no growth: what pools and caches keep.
const (
	moreGoroutines = 20
	moreHeap       = 48 << 20
)

// settles waits until goroutines and heap are as they were.
func (f *fuzzer) settles(before use) {
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		now := f.measure()
		if now.goroutines <= before.goroutines+moreGoroutines && now.heap <= before.heap+moreHeap {
			f.t.Logf("goroutines %d and %d, heap %d and %d KiB", before.goroutines, now.goroutines, before.heap>>10, now.heap>>10)
			return
		}
		select {
		case <-deadline:
			stacks := make([]byte, 1<<16)
			f.t.Errorf("seed %d: it grew from %+v to %+v\n%s", f.seed, before, now, stacks[:runtime.Stack(stacks, true)])
			return
		case <-tick.C:
		}
	}
}

// holdsTogether looks at the store, at the log of the server, and at the audit log.
func (f *fuzzer) holdsTogether() {
	report, err := f.w.Admin().Integrity(f.t.Context())
	if err != nil || !report.OK {
		f.t.Errorf("seed %d: the store does not agree with itself: %+v, %v", f.seed, report, err)
	}
	check, err := f.w.Admin().VerifyAudit(f.t.Context(), "default")
	if err != nil || !check.OK {
		f.t.Errorf("seed %d: the audit log is broken: %+v, %v", f.seed, check, err)
	}
	if text := f.w.log.String(); text != "" {
		f.t.Errorf("seed %d: the server logged errors:\n%s", f.seed, text)
	}
}
