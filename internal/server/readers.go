package server

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"html/template"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/hint"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveReaders() {
	handle(s, wire.GetOpenAPI, s.getOpenAPI)
	handle(s, wire.GetDocs, s.getDocs)
	handle(s, wire.GetProblem, s.getProblem)
}

// getOpenAPI delivers the document (U116).
func (s *Server) getOpenAPI(context.Context, *exchange, *wire.None) (answer, error) {
	return answer{raw: &wire.Raw{Data: s.document(), ContentType: jsonContent}}, nil
}

// pageText is the text of the pages for readers. They load nothing and run nothing.
//
//go:embed pages.html
var pageText string

// pages are the pages for readers.
var pages = template.Must(template.New("pages").Parse(pageText))

// page answers with a page.
func page(name string, data any) (answer, error) {
	var text bytes.Buffer
	if err := pages.ExecuteTemplate(&text, name, data); err != nil {
		return answer{}, err
	}
	a := answer{raw: &wire.Raw{Data: text.Bytes(), ContentType: htmlContent}}
	return a.with("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"), nil
}

// getDocs serves the API documentation as a page (U116).
func (s *Server) getDocs(ctx context.Context, x *exchange, _ *wire.None) (answer, error) {
	return page("docs", struct {
		Version    string
		Sections   []docSection
		Codes      []api.CodeInfo
		ServerRoot string
		Mount      string
	}{s.cfg.Version, docSections(), api.Codes(), s.cfg.PublicURL, x.mount})
}

// getProblem serves the page of a code (U116).
func (s *Server) getProblem(ctx context.Context, x *exchange, r *wire.GetProblemRequest) (answer, error) {
	info, ok := codes()[r.Code]
	if !ok {
		return answer{}, refuse("route_not_found", "there is no such code").at("path.code").hint("/docs lists the codes")
	}
	return page("problem", struct {
		api.CodeInfo
		Title, Meaning, Advice, Mount string
	}{
		info, titleOf(info.Code), cmp.Or(info.Meaning, classTexts[info.Class].meaning), hint.Plain(cmp.Or(info.Advice, classTexts[info.Class].advice)),
		x.mount,
	})
}

// classTexts say what the classes of codes mean to people.
var classTexts = map[string]struct{ meaning, advice string }{
	"invalid":         {"The request cannot be understood, or asks for something that is never possible.", "Read the field and the hint of the problem, change the request and send it again. The same request will be refused again."},
	"unauthenticated": {"The server does not know who calls.", "Send a valid API key as Authorization: Bearer. Ask the administrator of the server for one."},
	"forbidden":       {"The server knows who calls, and the caller may not do this.", "Use a key with one of the roles that the hint names, or ask for one."},
	"not_found":       {"What the request is about does not exist, or the caller may not see it.", "Check the id, and the namespace of the key. What was removed after its retention does not come back."},
	"conflict":        {"The request contradicts something that is already there.", "Look at the fields under current, read the object again and decide anew."},
	"state":           {"What the request is about is in a state in which this cannot be done.", "Look at its status, under current or by reading it. Some states pass by themselves."},
	"fenced":          {"The lease of the worker is no longer the current one.", "Stop working on the execution and send nothing more for it. Another worker may have it."},
	"grant":           {"The grant cannot be used, or cannot be used any more.", "Ask for a new grant."},
	"gone":            {"What the request is about was there and is no longer.", "Begin again: with a new cursor, a new link or a new waitpoint."},
	"admission":       {"The work may not start now: a budget or a quota is used up.", "Try again later, or raise the limit."},
	"limited":         {"There is more of something than is allowed.", "Wait as long as Retry-After says and send the same request again; where retryable is false, use less."},
	"internal":        {"The server failed. Nothing is wrong with the request.", "Look at the server's log under the request_id of the problem."},
	"not_implemented": {"The server does not have this, or not on this store.", "Read the hint of the problem. /v1/info lists what the server can do."},
	"unavailable":     {"The server or its store cannot answer at the moment.", "Send the same request again after Retry-After, with the same Idempotency-Key: it does nothing twice."},
}
