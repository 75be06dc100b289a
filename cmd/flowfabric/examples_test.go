package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/commands"
)

// exampleFlow is the graph that examples submit.
const exampleFlow = `{"kind":"release","defaults":{"kind":"quick","lane":"quick"},"nodes":[{"name":"build"},{"name":"deploy","after":["build"]}]}`

// What examples name and every server gives another name. Before an example runs, such a thing is made and put in place of the name.
const (
	exampleID     = "0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50" // an execution; after bulk a job, after flow a flow
	exampleWait   = "0190b5a2-8d10-7c55-8f31-2b7e9d604c11" // a waitpoint
	exampleLink   = "0190b5a2-9e27-7b06-a4d8-51c3f0e8d7b2"
	exampleKey    = "abcdefghijkl"
	exampleHook   = "0190c4d1-2b6e-7f10-8c3a-5d4e6f708192"
	exampleSent   = "0190c4d1-3c7f-7a21-9d4b-6e5f708192a3" // a delivery
	exampleWorker = "host-17-a1b2"
	exampleServer = "http://127.0.0.1:7433"
	exampleStore  = "postgres://flowfabric@db/flowfabric"
)

// TestU160_every_example_does_what_it_is_given_for runs all examples of the help pages, each in a directory of its own with the files
// that examples name, against a server started with dev.
func TestU160_every_example_does_what_it_is_given_for(t *testing.T) {
	t.Parallel()
	e := newExamples(t)
	lines := exampleLines(t)
	if len(lines) < 200 {
		t.Errorf("only %d examples were found", len(lines))
	}
	for _, line := range lines {
		e.run(t, line)
	}
}

// exampleLines are the examples of the page of commands, which is made from the commands.
func exampleLines(t *testing.T) []string {
	t.Helper()
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```text\n.*?```").FindAllString(commands.Page(), -1) {
		_, shown, _ := strings.Cut(block, "\n\n") // after the usage
		for line := range strings.Lines(shown) {
			if strings.HasPrefix(line, "flowfabric ") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines
}

// examples is what all examples share.
type examples struct {
	client   *flowfabric.Client
	server   string
	database string
	files    string // directory of what is copied into the directory of each example
}

// newServer is a server without more.
func newServer(t *testing.T) *examples {
	t.Helper()
	e := &examples{}
	server := e.launch(t, "flowfabric dev --listen 127.0.0.1:0", t.TempDir())
	client, err := flowfabric.Connect(server.url)
	check(t, err)
	e.server, e.client = server.url, client
	t.Cleanup(func() {
		if err := client.Close(context.Background()); err != nil {
			t.Error(err)
		}
		server.stop(t)
	})
	return e
}

func newExamples(t *testing.T) *examples {
	t.Helper()
	e := newServer(t)
	e.database, e.files = cluster.AdminURL(t, cluster.Database(t)), t.TempDir()
	worker := flowfabric.NewWorker(e.client, flowfabric.WorkerConfig{Lanes: []string{"quick"}, Logger: slog.New(slog.DiscardHandler)})
	flowfabric.Handle(worker, flowfabric.Kind[flowfabric.Payload, flowfabric.Payload]("quick"), func(context.Context, *flowfabric.Task, flowfabric.Payload) (flowfabric.Payload, error) {
		return flowfabric.Payload{ContentType: "application/json", Data: []byte(`{"ok":true}`)}, nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for name, text := range map[string]string{
		"letter.txt": "Dear Ana", "release.json": exampleFlow, "more.json": `{"nodes":[{"name":"notify","kind":"mail","after":["deploy"]}]}`, "work.ndjson": `{"kind":"mail"}` + "\n", "resize.sh": "#!/bin/sh\n", "python3": "#!/bin/sh\n", "mail.py": "", "new.hex": randomHex(), "old.key": randomHex(), "new.key": randomHex(), "hook.secret": "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n", "flowfabric.env": "FF_STORE=" + e.database + "\n",
	} {
		check(t, os.WriteFile(filepath.Join(e.files, name), []byte(text), 0o755))
	}
	writeCertificate(t, e.files)
	for _, line := range []string{
		"flowfabric migrate up --store sqlite:ff.db", "flowfabric migrate up --config flowfabric.env",
		"flowfabric api-keys create --store sqlite:ff.db --role admin --name me --for-namespace '*'",
		"flowfabric api-keys create --config flowfabric.env --role admin --name me --for-namespace '*'", "flowfabric backup monday.db --store sqlite:ff.db",
		"flowfabric backup monday.dump --config flowfabric.env",
		"flowfabric bench cycle --quick --json old.json", "cp old.json new.json",
	} {
		if out, err := e.shell(line, e.files).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	return e
}

// shell is a line as a user would type it, in a directory.
func (e *examples) shell(line, dir string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "FF_SERVER=" + e.server}
	return cmd
}

// launched is a server that runs.
type launched struct {
	*process
	url string
}

// launch starts a server and waits until it says where it is.
func (e *examples) launch(t *testing.T, line, dir string) *launched {
	t.Helper()
	p := &process{ended: make(chan error, 1), cmd: e.shell("exec "+line, dir)}
	address, err := p.begin()
	check(t, err)
	select {
	case url := <-address:
		return &launched{p, url}
	case err := <-p.ended:
		t.Fatalf("%s: %v\n%s", line, err, p.text())
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		t.Fatalf("%s: no address\n%s", line, p.text())
	}
	return nil
}

// stop sends SIGTERM and wants a good end.
func (l *launched) stop(t *testing.T) {
	t.Helper()
	_ = l.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-l.ended:
		if err != nil {
			t.Errorf("the server ended badly: %v\n%s", err, l.text())
		}
	case <-time.After(patience):
		_ = l.cmd.Process.Kill()
		t.Errorf("the server does not end\n%s", l.text())
	}
}

// endless are examples that go on until they are interrupted; the test gives them a time, after which they exit with 6.
var endless = regexp.MustCompile(`--watch|--follow|^flowfabric work `)

// run runs an example and wants it to succeed.
func (e *examples) run(t *testing.T, line string) {
	t.Helper()
	words := strings.Fields(line)
	dir := t.TempDir()
	check(t, os.CopyFS(dir, os.DirFS(e.files)))
	actual := e.prepare(t, words, dir, line)
	switch words[1] {
	case "dev", "serve":
		e.launch(t, actual+" --listen 127.0.0.1:0", dir).stop(t)
		return
	}
	var out bytes.Buffer
	cmd := e.shell(actual, dir)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if words[1] == "lanes" { // which may have closed it
		_, err := e.client.Lanes().Resume(t.Context(), "default")
		check(t, err)
	}
	timedOut := endless.MatchString(line) && cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 6
	if err != nil && !timedOut {
		t.Errorf("%s: %v\n%s", actual, err, out.String())
	}
}

// prepare makes what an example speaks of, and gives the line with the names of these things.
func (e *examples) prepare(t *testing.T, words []string, dir, line string) string {
	t.Helper()
	ctx, command := t.Context(), words[1]
	names := []string{exampleServer, e.server, exampleStore, e.database, "/var/lib/flowfabric", dir, "/etc", dir, "/backups", dir}
	if strings.Contains(line, exampleWait) || strings.Contains(line, exampleLink) || waits.MatchString(line) {
		names = append(names, e.waiting(t, dir, words)...)
	}
	if strings.Contains(line, exampleID) { // the execution of a waitpoint stands before
		names = append(names, exampleID, e.subject(t, command, line))
	}
	if strings.Contains(line, exampleKey) {
		key, err := e.client.Admin().APIKeys().Create(ctx, api.APIKeySettings{Name: "me", Roles: []string{"read"}, Namespaces: []string{"default"}})
		check(t, err)
		names = append(names, exampleKey, key.ID)
	}
	switch command {
	case "workers":
		_, err := e.client.Work().Register(ctx, api.Registration{WorkerID: "mailer", InstanceID: exampleWorker, Lanes: []string{"mail"}, MaxConcurrent: 1})
		check(t, err)
	case "lanes":
		_, err := e.client.Lanes().Put(ctx, "default", api.LaneSettings{})
		check(t, err)
	case "budgets":
		_, err := e.client.Budgets().Create(ctx, api.Budget{Name: "team-red", Dimensions: map[string]api.BudgetLimits{"tokens": {Soft: 800, Hard: 1200}}})
		if flowfabric.CodeOf(err) != "budget_already_exists" { // an example has changed it
			check(t, err)
		}
		_, err = e.client.Budgets().Reopen(ctx, "team-red")
		check(t, err)
	case "quotas":
		_, err := e.client.Admin().Namespaces().Put(ctx, "acme", api.NamespaceSettings{}) // an example may have given it the quota
		check(t, err)
		_, err = e.client.Quotas().Put(ctx, "mail", api.QuotaSettings{RateLimit: 10})
		check(t, err)
	case "namespaces":
		_, err := e.client.Quotas().Put(ctx, "mail", api.QuotaSettings{RateLimit: 10, PerKey: true})
		check(t, err)
		for _, name := range []string{"acme", "default"} {
			_, err := e.client.Admin().Namespaces().Put(ctx, name, api.NamespaceSettings{})
			check(t, err)
		}
	case "webhooks":
		names = append(names, e.webhook(t)...)
	case "keys":
		names = append(names, e.signingKeys(t, words[2])...)
	case "work":
		e.submit(t, "upper", "")
		names = append(names, " -- ", " --timeout 1s -- ")
	case "bench":
		names = append(names, "--duration 5m", "--duration 1s", "bench cycle routing", "bench cycle routing --quick", "bench steady", "bench steady --quick")
	case "backup", "restore":
		if words[2] != "verify" {
			for _, gone := range map[string][]string{"backup": {"monday.db", "monday.dump"}, "restore": {"ff.db"}}[command] {
				check(t, os.Remove(filepath.Join(dir, gone)))
			}
		}
		if command == "restore" && strings.Contains(line, exampleStore) {
			names[3] = cluster.AdminURL(t, cluster.Database(t)) // one without a store
		}
	case "list", "approvals":
		names = append(names, "--watch", "--watch --timeout 1s")
	}
	return strings.NewReplacer(names...).Replace(line)
}

// nowhere is an address of this host at which nothing listens.
const nowhere = "http://127.0.0.1:9"

// webhook makes a webhook with a delivery. No example sends anything to other hosts.
func (e *examples) webhook(t *testing.T) (names []string) {
	t.Helper()
	hooks := e.client.Admin().Webhooks()
	made, err := hooks.Create(t.Context(), api.NewWebhook{URL: nowhere, Filter: &api.WebhookFilter{Kinds: []string{"webhook.test"}}})
	check(t, err)
	delivery, err := hooks.Test(t.Context(), made.ID)
	check(t, err)
	return []string{exampleHook, made.ID, exampleSent, delivery.ID, "https://example.com", nowhere}
}

// waits are examples about an execution that waits.
var waits = regexp.MustCompile(`^flowfabric (approve|reject|resume|suspension|suspensions|signals|waitpoints) `)

// waiting makes an execution that waits at a waitpoint, a link for somebody who is to decide, and the file of its token. The waitpoint
// of an example that closes it is one at which nothing waits yet.
func (e *examples) waiting(t *testing.T, dir string, words []string) (names []string) {
	t.Helper()
	id := e.submit(t, "deploy", "")
	task, err := e.client.Operate().Claim(t.Context(), id)
	check(t, err)
	item := suspend(task)
	if words[1] == "waitpoints" && words[2] == "close" {
		item = api.WorkItem{Op: api.OpWaitpoint, ID: id, Lease: task.Lease, Waitpoint: &api.NewWaitpoint{Key: "payment"}}
	}
	waitpoint := e.do(t, item).Waitpoints[0]
	link, err := e.client.Waitpoints().NewLink(t.Context(), waitpoint.ID, ops.LinkOptions{Approver: "ana@example.com"})
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, "token.txt"), []byte(waitpoint.Token.Reveal()+"\n"), 0o600))
	return []string{exampleID, string(id), exampleWait, waitpoint.ID, exampleLink, link.ID}
}

// suspend gives a task back until it is approved, or rejected, or paid for.
func suspend(task *api.Claimed) api.WorkItem {
	return api.WorkItem{Op: api.OpSuspend, ID: task.ID, Lease: task.Lease, Suspension: &flowfabric.Suspension{
		Waitpoints: []flowfabric.Binding{flowfabric.NewWaitpoint("payment")}, ReasonCode: flowfabric.WaitingForApproval,
		Until: flowfabric.Condition{Type: "single", Key: "payment"},
	}}
}

// do sends a worker's command.
func (e *examples) do(t *testing.T, item api.WorkItem) api.WorkAnswer {
	t.Helper()
	answers, err := e.client.Work().Do(t.Context(), item)
	check(t, err)
	check(t, answers[0].Err)
	return answers[0]
}

// signingKeys makes the signing keys that an example speaks of, and gives them names of their own: no kid is used twice.
func (e *examples) signingKeys(t *testing.T, verb string) (names []string) {
	t.Helper()
	keys := e.client.Admin().SigningKeys()
	for _, kid := range []string{"main", "spring", "autumn"} {
		names = append(names, kid, kid+"-"+randomHex()[:8])
	}
	switch verb {
	case "revoke":
		for _, kid := range []string{names[3], names[5]} {
			_, err := keys.Rotate(t.Context(), kid)
			check(t, err)
		}
	case "seed":
		list, err := keys.List(t.Context())
		check(t, err)
		_, err = keys.Revoke(t.Context(), list.CurrentKid, ops.RevokeKeyOptions{Force: true})
		check(t, err)
	}
	return names
}

func randomHex() string {
	drawn := make([]byte, 32)
	rand.Read(drawn)
	return hex.EncodeToString(drawn)
}

// subject is the id of an execution, or of a job, with which a command can do something.
func (e *examples) subject(t *testing.T, command, line string) string {
	t.Helper()
	ctx := t.Context()
	switch command {
	case "bulk":
		job, err := e.client.Operate().Bulk(ctx, ops.BulkRequest{Action: api.BulkHold, Filter: ops.Filter{Kind: []string{"mail"}}})
		check(t, err)
		return job.ID
	case "flow":
		return e.flow(t, line)
	case "result", "wait", "delete", "replay", "attempts", "leases", "retain", "tail":
		id := e.submit(t, "quick", "quick")
		_, err := e.client.Wait(ctx, id)
		check(t, err)
		return string(id)
	}
	id := e.submit(t, "mail", "")
	switch command {
	case "revoke":
		_, err := e.client.Operate().Claim(ctx, id)
		check(t, err)
	case "release-hold":
		_, err := e.client.Operate().Hold(ctx, id)
		check(t, err)
	}
	return string(id)
}

// flow is the id of a flow with which a command can do something: one that has completed, or one that is not sealed and waits.
func (e *examples) flow(t *testing.T, line string) string {
	t.Helper()
	var f flowfabric.Flow
	check(t, f.UnmarshalJSON([]byte(exampleFlow)))
	deletes := strings.Contains(line, "flow delete")
	if !deletes && !strings.Contains(line, "flow wait") {
		f.Unsealed, f.Defaults = true, flowfabric.Node{Kind: "mail"}
	}
	run, err := e.client.Flows().Submit(t.Context(), f)
	check(t, err)
	if deletes {
		_, err = e.client.Flows().Wait(t.Context(), run.ID)
		check(t, err)
	}
	return string(run.ID)
}

func (e *examples) submit(t *testing.T, kind, lane string) flowfabric.ID {
	t.Helper()
	result, err := e.client.Submit(t.Context(), flowfabric.Submission{
		Kind: kind, Input: flowfabric.Payload{ContentType: "text/plain", Data: []byte("text")}, SubmitOptions: flowfabric.SubmitOptions{Lane: lane},
	})
	check(t, err)
	return result.ID
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// writeCertificate writes the files that serve is given for TLS.
func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, "cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}
