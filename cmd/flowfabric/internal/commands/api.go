package commands

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
	"github.com/flowfabric/flowfabric/embedded"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// request is an HTTP request for which the client has no method.
type request struct {
	method, path string
	body         []byte // nil: none
	header       http.Header
}

// send makes a request with the credentials from the settings. The caller closes the body of the response; a redirect and a
// status of 400 and above are returned as errors.
func (s *session) send(ctx context.Context, cmd *cobra.Command, r request) (*http.Response, error) {
	values, err := s.clientSettings(cmd)
	if err != nil {
		return nil, err
	}
	client := &http.Client{CheckRedirect: stay}
	if roots := settings.Get[*x509.CertPool](values, "ca"); roots != nil {
		client.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
		defer client.CloseIdleConnections()
	}
	server := firstAlive(ctx, client, settings.Get[string](values, "server"))
	req, err := http.NewRequestWithContext(ctx, r.method, server+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, show.Invalid("PATH", "", "%s", err)
	}
	for name, all := range r.header {
		req.Header[name] = all
	}
	if key := settings.Get[string](values, "key"); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if namespace := settings.Get[string](values, "namespace"); namespace != "" {
		req.Header.Set(wire.HeaderNamespace, namespace)
	}
	if r.method != http.MethodGet && r.method != http.MethodHead && req.Header.Get(wire.HeaderIdempotencyKey) == "" {
		req.Header.Set(wire.HeaderIdempotencyKey, rand.Text())
	}
	answer, err := client.Do(req)
	if err != nil {
		return nil, unreachable(ctx, server, err)
	}
	if answer.StatusCode >= http.StatusMultipleChoices && answer.StatusCode != http.StatusNotModified {
		defer answer.Body.Close()
		return nil, problemIn(answer)
	}
	return answer, nil
}

// stay follows no redirect: it would carry the key's namespace, other headers and the body to another server.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// unreachable is the error for a server that does not answer.
func unreachable(ctx context.Context, server string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &flowfabric.Error{
		Code: codeUnavailable, Class: "unavailable", Message: fmt.Sprintf("the server does not answer: %s", err), Hint: whenUnanswered(err, server), Retryable: true,
	}
}

// aliveLimit is how long a server may take to say that it lives, if there are others.
const aliveLimit = 2 * time.Second

// firstAlive returns the first of several servers that lives; the last one if none does. The request is sent to that one only.
func firstAlive(ctx context.Context, client *http.Client, servers string) string {
	all := strings.Split(servers, ",")
	for _, server := range all[:len(all)-1] {
		if lives(ctx, client, server) {
			return server
		}
	}
	return all[len(all)-1]
}

func lives(ctx context.Context, client *http.Client, server string) bool {
	ctx, cancel := context.WithTimeout(ctx, aliveLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+wire.GetHealth.Path, nil)
	if err != nil {
		return false
	}
	answer, err := client.Do(req)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// oneServer returns the address of the server for commands that can use only one.
func oneServer(values *settings.Values) (string, error) {
	server := settings.Get[string](values, "server")
	if strings.Contains(server, ",") {
		return "", show.Invalid("--server", "name one server", "this command uses a single server")
	}
	return server, nil
}

// codeUnavailable is the code for a server that cannot be reached.
const codeUnavailable = "store_unavailable"

// unanswered adds the address and a hint to an error if no server answered. Errors with a request id came from a server and are
// left as they are.
func unanswered(err error, server string) error {
	var refusal *flowfabric.Error
	if !errors.As(err, &refusal) || refusal.RequestID != "" || refusal.Hint != "" || refusal.Code != codeUnavailable && !notHTTP(err) {
		return err
	}
	hinted := *refusal
	hinted.Hint = whenUnanswered(err, server)
	return &hinted
}

// notHTTP reports whether something answered that does not speak HTTP; package net/http has no type for it.
func notHTTP(err error) bool { return strings.Contains(err.Error(), "malformed HTTP response") }

// whenUnanswered is the hint for a server from which no answer came.
func whenUnanswered(err error, server string) string {
	if untrusted := new(tls.CertificateVerificationError); errors.As(err, &untrusted) {
		return "if a private authority signed the certificate of the server, name the file of the authority with --ca or FF_CA; tried: " + server
	}
	if notHTTP(err) {
		return "another program answers there: name the server with --server or FF_SERVER; tried: " + server
	}
	return "start one with flowfabric dev, or name another with --server; tried: " + server
}

// problemIn reads the problem in a response.
func problemIn(answer *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return err
	}
	var refusal flowfabric.Error
	if err := json.Unmarshal(text, &refusal); err != nil || refusal.Code == "" {
		return fmt.Errorf("%s answered %s, which is not a FlowFabric response", answer.Request.URL.Host, answer.Status)
	}
	return &refusal
}

func (s *session) api() *cobra.Command {
	var headers []string
	cmd := &cobra.Command{
		Use: "api METHOD PATH [BODY]", Short: "Send a request with your key and print the response", Args: counted(cobra.RangeArgs(2, 3)),
		Example: examples(`
flowfabric api GET /v1/info
flowfabric api POST /v1/executions '{"kind": "mail", "input": {"to": "ana"}}'
flowfabric api GET '/v1/executions?status=failed&limit=5'
`),
	}
	cmd.Flags().StringArrayVarP(&headers, "header", "H", nil, "header as 'Name: value'; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r := request{method: strings.ToUpper(args[0]), path: args[1], header: http.Header{}}
		if !strings.HasPrefix(r.path, "/") {
			r.path = "/" + r.path
		}
		if len(args) == 3 {
			body, err := s.content("BODY", args[2])
			if err != nil {
				return err
			}
			r.body = body
			r.header.Set("Content-Type", wire.ContentJSON)
		}
		for _, h := range headers {
			name, value, found := strings.Cut(h, ":")
			if !found {
				return show.Invalid("--header", "write 'Name: value'", "%q has no value", h)
			}
			r.header.Set(name, strings.TrimSpace(value))
		}
		return s.during(cmd, func(ctx context.Context) error { return s.stream(ctx, cmd, r) })
	}
	return cmd
}

// stream prints a response as it arrives.
func (s *session) stream(ctx context.Context, cmd *cobra.Command, r request) error {
	answer, err := s.send(ctx, cmd, r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	last := &lastByte{w: s.Out}
	if _, err := io.Copy(last, answer.Body); err != nil {
		return err
	}
	if last.b != 0 && last.b != '\n' && strings.Contains(answer.Header.Get("Content-Type"), "json") {
		fmt.Fprintln(s.Out)
	}
	return nil
}

// lastByte remembers how an output ended.
type lastByte struct {
	w io.Writer
	b byte
}

func (l *lastByte) Write(data []byte) (int, error) {
	if len(data) > 0 {
		l.b = data[len(data)-1]
	}
	return l.w.Write(data)
}

func (s *session) openapi() *cobra.Command {
	return &cobra.Command{
		Use: "openapi", Short: "Print the OpenAPI document of the server", Args: counted(cobra.NoArgs),
		Example: examples("flowfabric openapi\nflowfabric openapi > openapi.json\nflowfabric openapi --server http://127.0.0.1:7433"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.during(cmd, func(ctx context.Context) error {
				return s.stream(ctx, cmd, request{method: http.MethodGet, path: wire.GetOpenAPI.Path})
			})
		},
	}
}

func (s *session) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: counted(cobra.NoArgs),
		Example: examples("flowfabric version\nflowfabric version --json\nflowfabric version --template '{{.commit}}'"),
		RunE: func(*cobra.Command, []string) error {
			type version struct {
				Version string `json:"version"`
				Commit  string `json:"commit,omitempty"`
				Date    string `json:"date,omitempty"` // of the commit

				Schemas map[string]int `json:"schemas"` // latest schema per kind of store
			}
			return show.One(s.printer, show.View[version]{
				ID: func(v version) string { return v.Version },
				Columns: []show.Column[version]{
					{Name: "VERSION", Text: func(v version) string { return v.Version }},
					{Name: "COMMIT", Text: func(v version) string { return v.Commit }},
					{Name: "DATE", Text: func(v version) string { return v.Date }},
					{Name: "SCHEMAS", Text: func(v version) string {
						return fmt.Sprintf("sqlite %d, postgres %d", v.Schemas["sqlite"], v.Schemas["postgres"])
					}},
				},
			}, version{s.Version, s.Commit, s.Date, embedded.KnownSchemas()})
		},
	}
}

// export reads the server's export endpoint page by page, so that an interrupted export can continue from its cursor.
func (s *session) export() *cobra.Command {
	var filter *filterFlags
	var include []string
	var cursor string
	cmd := &cobra.Command{
		Use: "export", Short: "Print executions with all their data as JSON, one per line", Args: counted(cobra.NoArgs),
		Example: examples(`
flowfabric export > executions.ndjson
flowfabric export --status failed --include input,attempts
flowfabric export --lane mail --created-from 24h --include input,result
`),
	}
	filter = newFilterFlags(cmd.Flags())
	cmd.Flags().StringSliceVar(&include, "include", nil, "what to include: input, result, attempts, signals, events, frames")
	cmd.Flags().StringVar(&cursor, "cursor", "", "continue from this cursor of an earlier export")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		query, err := filter.query()
		if err != nil {
			return err
		}
		if len(include) > 0 {
			query = append(query, "include="+url.QueryEscape(strings.Join(include, ",")))
		}
		return s.during(cmd, func(ctx context.Context) error { return s.exportAll(ctx, cmd, query, cursor) })
	}
	return cmd
}

func (s *session) exportAll(ctx context.Context, cmd *cobra.Command, query []string, cursor string) error {
	for {
		page := query
		if cursor != "" {
			page = append(page[:len(page):len(page)], "cursor="+url.QueryEscape(cursor))
		}
		answer, err := s.send(ctx, cmd, request{method: http.MethodGet, path: wire.ExportExecutions.Path + "?" + strings.Join(page, "&")})
		if err != nil {
			return err
		}
		next, err := s.exportPage(answer)
		if err != nil {
			if cursor != "" {
				s.printer.Note("continue with: --cursor %s", cursor)
			}
			return err
		}
		if next == "" {
			return nil
		}
		cursor = next
	}
}

// exportPage prints the lines of a page; the last line has the cursor of the next one.
func (s *session) exportPage(answer *http.Response) (next string, err error) {
	defer answer.Body.Close()
	lines := json.NewDecoder(answer.Body)
	for {
		var line json.RawMessage
		if err := lines.Decode(&line); err == io.EOF {
			return next, nil
		} else if err != nil {
			return "", err
		}
		var last struct {
			NextCursor  *string `json:"next_cursor"`
			ExecutionID string  `json:"execution_id"`
		}
		if err := json.Unmarshal(line, &last); err == nil && last.ExecutionID == "" {
			if last.NextCursor != nil {
				next = *last.NextCursor
			}
			continue
		}
		if _, err := fmt.Fprintf(s.Out, "%s\n", line); err != nil {
			return "", err
		}
	}
}

// maxAnswer is the largest response that is read into memory.
const maxAnswer = 64 << 20

// ask calls an operation of the API's table.
func ask[Req, Ans any](ctx context.Context, s *session, cmd *cobra.Command, call wire.Call[Req, Ans], req *Req) (*Ans, error) {
	message, err := wire.Encode(call, req)
	if err != nil {
		return nil, refusalOf(err)
	}
	answer := new(Ans)
	if err := s.exchange(ctx, cmd, message, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// exchange sends a message and reads the response into answer, which stays unchanged if there is no body.
func (s *session) exchange(ctx context.Context, cmd *cobra.Command, message wire.Message, into any) error {
	path := message.Path
	if message.Query != "" {
		path += "?" + message.Query
	}
	answer, err := s.send(ctx, cmd, request{method: message.Method, path: path, body: message.Body, header: message.Header})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil || len(text) == 0 {
		return err
	}
	if err := wire.DecodeAnswer(text, into); err != nil {
		return fmt.Errorf("the response of the server cannot be read: %w", err)
	}
	return nil
}
