package secrets

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

func TestWI6_W27_no_token_and_no_secret_is_left_behind_by_anything_that_issues_or_uses_one(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, w *world) {
		webhook := w.receiver()
		w.overHTTP()
		w.grantsOverHTTP()
		w.grantsInGo()
		w.budgetsOverHTTP()
		w.inGo()
		w.overHTTP() // under the second key
		w.grantsOverHTTP()
		w.byProgram()
		w.webhooksOverHTTP(webhook)
		for _, path := range []string{"/metrics", "/v1/events?after=start&limit=1000", "/v1/audit?limit=1000", "/v1/keys?include_retired=true", "/v1/waitpoints?state=all&limit=1000", "/v1/admin/settings", "/v1/admin/doctor", "/v1/budgets", "/v1/quotas"} {
			if status, text := w.ask(&w.said, "GET", path, ""); status != 200 {
				t.Errorf("%s: %d %s", path, status, text)
			}
		}
		places := map[string]string{"the store": w.dump(), "the log": w.logs.String(), "what any caller gets": w.said.String(), "what a webhook gets": w.received.String()}
		for _, witness := range [][2]string{
			{"the store", "a public key of a waitpoint"},
			{"the log", "/v1/callbacks/"},
			{"what any caller gets", "a public key of a waitpoint"},
			{"what any caller gets", "suspension: <nil>\n"}, // as the program is written down
			{"what any caller gets", "a-path-of-a-webhook"},
			{"what a webhook gets", "grant.issued"},
			{"what a webhook gets", "signal.accepted"},
		} {
			if !strings.Contains(places[witness[0]], witness[1]) {
				t.Errorf("%s does not even hold %q: the search proves nothing", witness[0], witness[1])
			}
		}
		tokens := tokenText.FindAllStringSubmatch(w.shown.String(), -1)
		if len(tokens) < 20 {
			t.Errorf("only %d tokens were issued", len(tokens))
		}
		if !strings.Contains(w.shown.String(), "pg:{fp:") || !strings.Contains(w.said.String(), "grant.issued") {
			t.Error("no grant was issued")
		}
		hidden := map[string]string{"the master key": masterKey, "a secret": firstSecret, "the next secret": nextSecret, "an API key": w.key}
		for _, token := range tokens {
			hidden["the digest of a token of "+token[1]+" that begins with "+token[2][:16]] = token[2][17:] // the first 16 are its fingerprint
		}
		for place, text := range places {
			for _, form := range w.secretsOfWebhooks() {
				if at := strings.Index(text, form); at >= 0 {
					t.Errorf("%s holds a secret of a webhook: …%q…", place, text[max(0, at-200):at])
				}
			}
			for what, secret := range hidden {
				for _, form := range forms(secret) {
					if at := strings.Index(text, form); at >= 0 {
						t.Errorf("%s holds %s: …%q…", place, what, text[max(0, at-200):at])
					}
				}
			}
		}
	})
}

var tokenText = regexp.MustCompile(`(first|next)(?::|%3A)([0-9a-f]{64})`)

// forms are the ways in which a text of hexadecimal digits may be kept.
func forms(digits string) []string {
	all := []string{digits, strings.ToUpper(digits), hex.EncodeToString([]byte(digits))}
	if raw, err := hex.DecodeString(digits); err == nil {
		all = append(all, string(raw))
	}
	return all
}

// overHTTP issues and uses tokens by every route that does.
func (w *world) overHTTP() {
	w.t.Helper()
	execution, lease := w.claimed()
	made := w.issue("POST", execution+"/waitpoints", `{"lease":`+lease+`,"waitpoint_key":"a public key of a waitpoint"}`, "Idempotency-Key", "once"+execution[len(execution)-12:])
	pending, early := field(w.t, made, "waitpoint_id"), field(w.t, made, "token")
	w.issue("POST", execution+"/waitpoints", `{"lease":`+lease+`,"waitpoint_key":"a public key of a waitpoint"}`, "Idempotency-Key", "once"+execution[len(execution)-12:])
	w.ask(&w.said, "POST", "/v1/waitpoints/"+pending+"/signals", `{"name":"early","token":"`+early+`"}`)
	suspend := `{"lease":` + lease + `,"idempotency_key":"s","waitpoints":[{"fresh":{"waitpoint_key":"a"}},{"use_pending":{"waitpoint_id":"` + pending + `"}}],` +
		`"reason_code":"waiting_for_approval","resume_condition":{"type":"all_of","members":[{"type":"single","waitpoint_key":"a","name":"approved"},{"type":"single","waitpoint_key":"a public key of a waitpoint","name":"approved"}]}}`
	answer := w.issue("POST", execution+"/suspend", suspend)
	w.issue("POST", execution+"/suspend", suspend) // the same answer once more
	waitpoint := field(w.t, answer, "waitpoint_id")
	callback := pathOf(w.t, field(w.t, answer, "callback_url"))
	w.useLink(waitpoint)
	w.misuse(waitpoint, callback)
	w.issue("GET", execution+"/waitpoints/"+waitpoint+"/token", "")
	anew := w.issue("POST", "/v1/waitpoints/"+waitpoint+"/reissue", `{}`)
	w.useLink(waitpoint)
	w.ask(&w.said, "POST", "/v1/waitpoints/"+waitpoint+"/signals", `{"name":"approved","token":"`+field(w.t, anew, "token")+`"}`)
	status, text := w.ask(&w.said, "POST", pathOf(w.t, field(w.t, made, "callback_url"))+"?name=approved", `{"fine":true}`)
	if status >= 300 {
		w.t.Fatalf("the callback answers %d %s", status, text)
	}
	for _, path := range []string{execution, execution + "/waitpoints?include_closed=true", execution + "/signals", execution + "/suspensions"} {
		w.ask(&w.said, "GET", path, "")
	}
	w.ask(&w.said, "POST", execution+"/cancel", `{"reason":"it is over"}`)
}

// useLink makes a link, shows it, and lets it be looked at; the last is decided.
func (w *world) useLink(waitpoint string) {
	w.t.Helper()
	link := w.issue("POST", "/v1/waitpoints/"+waitpoint+"/links", `{"approver":"ann@example.com","title":"fine?"}`)
	w.issue("GET", "/v1/links/"+field(w.t, link, "link_id")+"/url", "")
	path := pathOf(w.t, field(w.t, link, "url"))
	w.ask(&w.shown, "GET", path, "", "Accept", "text/html") // the form points at the link itself
	w.ask(&w.said, "HEAD", path, "")
	w.ask(&w.said, "GET", path+"0", "", "Accept", "text/html")
	w.ask(&w.said, "POST", path, `{"decision":"perhaps"}`)
	w.ask(&w.said, "GET", "/v1/waitpoints/"+waitpoint+"/links", "")
}

// misuse sends tokens to where they do not belong, and what is almost one.
func (w *world) misuse(waitpoint, callback string) {
	w.t.Helper()
	at := strings.LastIndex(callback, "/") + 1
	token, err := url.PathUnescape(callback[at:])
	if err != nil {
		w.t.Fatal("not a token")
	}
	for _, r := range []struct{ method, path, body string }{
		{"GET", callback, ""},
		{"PUT", callback, "x"},
		{"POST", callback + "0", "x"},
		{"POST", callback + "/more", "x"},
		{"POST", callback + "?name=__x", "x"},
		{"POST", "/v1/callbacks/" + waitpoint + "/" + callback[at:len(callback)-1] + "?name=go", "x"},
		{"POST", "/v1/callbacks/0190f0c2-2222-7aaa-8bbb-0123456789ab/" + callback[at:], "x"},
		{"POST", "/v1/waitpoints/" + waitpoint + "/signals", `{"name":"","token":"` + token + `"}`},
		{"POST", "/v1/waitpoints/" + waitpoint + "/signals", `{"name":"go","tokem":"` + token + `"}`},
		{"POST", "/v1/waitpoints/" + waitpoint + "/signals", `{"token":"` + token + `",`},
		{"GET", "/approve/0190f0c2-2222-7aaa-8bbb-0123456789ab/" + callback[at:], ""},
		{"POST", "/v1/keys/rotate", `{"kid":"` + token + `"}`},
		{"POST", "/v1/waitpoints/" + callback[at:] + "/signals", `{"name":"go","token":"x"}`},
		{"POST", "/v1/executions/0190f0c2-2222-7aaa-8bbb-0123456789ab/approve", `{"name":"go","waitpoint_id":"` + token + `"}`},
		{"GET", "/v1/waitpoints/" + callback[at:], ""},
		{"POST", "/v1/keys/rotate", `{"kid":"first","secret_hex":"` + nextSecret + `"}`},
		{"POST", "/v1/keys/seed", `{"kid":"` + firstSecret + `0","secret_hex":"` + nextSecret + `"}`},
	} {
		if status, text := w.ask(&w.said, r.method, r.path, r.body); status < 400 {
			w.t.Errorf("%s is answered %d %s", r.method, status, text)
		}
	}
}

// inGo issues and uses tokens by the client of a program, prints what it was given, and takes the next key into use.
func (w *world) inGo() {
	w.t.Helper()
	const ask flowfabric.Kind[string, string] = "asked-in-go"
	told := make(chan []string, 4)
	worker := flowfabric.NewWorker(w.client, flowfabric.WorkerConfig{Lanes: []string{"go"}, Logger: slog.New(slog.NewTextHandler(&w.logs, nil))})
	flowfabric.Handle(worker, ask, func(ctx context.Context, task *flowfabric.Task, _ string) (string, error) {
		_, err := flowfabric.AwaitSignal[string](ctx, task, "a", flowfabric.WaitOptions{Notify: func(_ context.Context, p flowfabric.Waitpoint) error {
			w.prints(p, &p, p.Token)
			fmt.Fprintln(&w.shown, p.Token.Reveal(), p.CallbackURL)
			told <- []string{p.ID, p.Token.Reveal()}
			return nil
		}})
		if err != nil {
			w.prints(err)
			return "", err
		}
		answer, err := task.Ask(ctx, flowfabric.Approval{Key: "fine", Approvers: []string{"ann"}, Notify: func(_ context.Context, links []flowfabric.ApprovalLink) error {
			w.prints(links, links[0], &links[0])
			fmt.Fprintln(&w.shown, links[0].URL)
			told <- []string{links[0].ID, links[0].URL[strings.LastIndex(links[0].URL, "/")+1:]}
			return nil
		}})
		return fmt.Sprint(answer.Approved), err
	})
	ctx, stop := context.WithCancel(w.ctx())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	run, err := ask.Submit(w.ctx(), w.client, "in", flowfabric.SubmitOptions{Lane: "go"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.decideInGo(<-told, told)
	if got, err := run.Result(w.ctx()); err != nil || got != "true" {
		w.t.Errorf("%q, %v", got, err)
	}
	stop()
	if err := <-ended; err != nil {
		w.t.Error(err)
	}
	secret := nextSecret
	if _, err := w.client.Admin().SigningKeys().Rotate(w.ctx(), "next", ops.RotateKeyOptions{SecretHex: &secret}); err != nil {
		w.t.Fatal(err)
	}
}

// decideInGo signals and decides, first with tokens that are not good.
func (w *world) decideInGo(signal []string, told chan []string) {
	w.t.Helper()
	for _, token := range []string{signal[1][:len(signal[1])-1], signal[1] + "0", signal[1]} {
		_, err := w.client.Signal(w.ctx(), flowfabric.Signal{WaitpointID: signal[0], Token: flowfabric.TokenOf(token), Name: "go", Payload: flowfabric.Text("x")})
		w.prints(err)
	}
	link := <-told
	raw, err := url.PathUnescape(link[1])
	if err != nil {
		w.t.Fatal("not a token")
	}
	for _, token := range []string{raw[:len(raw)-1], signal[1], raw} {
		_, err := w.client.Waitpoints().Decide(w.ctx(), link[0], flowfabric.TokenOf(token), api.LinkDecision{Decision: "approve"})
		w.prints(err)
	}
}

// prints writes values as programs do by accident.
func (w *world) prints(values ...any) {
	for _, v := range values {
		fmt.Fprintf(&w.said, "%v %+v %#v %s %q\n", v, v, v, v, v)
		slog.New(slog.NewJSONHandler(&w.said, nil)).Info("it", "value", v)
		if err, ok := v.(error); ok {
			for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
				fmt.Fprintf(&w.said, "%+v %#v\n", inner, inner)
			}
		}
	}
}
