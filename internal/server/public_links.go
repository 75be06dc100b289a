package server

import (
	"context"
	"errors"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// openLink serves the page of a link, and changes nothing (W70). The request of a browser may have parameters that a mail program
// has added.
func (s *Server) openLink(ctx context.Context, x *exchange) (answer, error) {
	page, err := s.linkPage(ctx, x)
	if !prefersJSON(x.r) {
		return s.htmlPage(x, page, err, typed{})
	}
	if err != nil {
		return answer{}, err
	}
	if _, err := readWhat(x, wire.OpenLink); err != nil {
		return answer{}, err
	}
	if page.Refused != nil {
		return answer{}, withLink(page)
	}
	return shows(page), nil
}

// linkPage opens the link of the path with the token of the path.
func (s *Server) linkPage(ctx context.Context, x *exchange) (page *api.LinkPage, err error) {
	request := &wire.OpenLinkRequest{Link: x.r.PathValue("link"), Token: x.r.PathValue("token")}
	err = s.tryToken(ctx, x, func() (err error) {
		page, err = ask(ctx, s, x.by, wire.OpenLink, request)
		return err
	})
	return page, err
}

// decideLink accepts a decision (W71). The token is verified before the decision is validated: a decision that cannot be decoded
// is passed on as empty, which the engine refuses after it has checked the token and an earlier decision.
func (s *Server) decideLink(ctx context.Context, x *exchange) (answer, error) {
	d, fault := s.readDecision(x)
	comment := d.Comment
	if fault == nil {
		x.caller.RequestKey, fault = requestKey(x.r)
	}
	if fault != nil {
		d = api.LinkDecision{}
	}
	outcome, err := s.decide(ctx, x, d)
	if fault != nil && api.CodeOf(err) == "invalid_decision" {
		err = fault
	}
	switch {
	case prefersJSON(x.r) && err != nil:
		return answer{}, err
	case prefersJSON(x.r):
		return shows(outcome), nil
	case err == nil:
		return backToPage(x), nil
	}
	return s.undecidedPage(ctx, x, err, comment)
}

func (s *Server) decide(ctx context.Context, x *exchange, d api.LinkDecision) (outcome *api.LinkOutcome, err error) {
	request := &wire.DecideLinkRequest{Link: x.r.PathValue("link"), Token: x.r.PathValue("token")}
	request.Body.LinkDecision = d
	err = s.tryToken(ctx, x, func() (err error) {
		outcome, err = ask(ctx, s, x.acting(), wire.DecideLink, request)
		return err
	})
	return outcome, err
}

// formContent is how browsers send a form.
const formContent = "application/x-www-form-urlencoded"

// readDecision reads a form or JSON. Of a form other fields are ignored: extensions of browsers add some.
func (s *Server) readDecision(x *exchange) (api.LinkDecision, error) {
	if media, _, _ := mime.ParseMediaType(x.r.Header.Get("Content-Type")); media != formContent {
		r, fault := readWhat(x, wire.DecideLink)
		return r.Body.LinkDecision, fault
	}
	body, err := wholeBody(x)
	if err != nil {
		return api.LinkDecision{}, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return api.LinkDecision{}, refuse("invalid_argument", "the form is not percent-encoded")
	}
	comment := strings.ReplaceAll(form.Get("comment"), "\r\n", "\n") // as browsers send new lines
	return api.LinkDecision{Decision: form.Get("decision"), Comment: strings.TrimSpace(comment)}, nil
}

// backToPage redirects a browser to the page, which shows the outcome (U86). The address is relative: a proxy may serve the page
// below a path that is unknown to the server.
func backToPage(x *exchange) answer {
	path := x.r.URL.EscapedPath()
	return answer{status: http.StatusSeeOther}.with("Location", "."+path[strings.LastIndex(path, "/"):])
}

// undecidedPage is the page again, with why nothing was decided and with what was typed.
func (s *Server) undecidedPage(ctx context.Context, x *exchange, refused error, comment string) (answer, error) {
	code := api.CodeOf(refused)
	if code == "link_not_found" || code == "rate_limited" {
		return s.htmlPage(x, nil, refused, typed{})
	}
	page, err := s.linkPage(ctx, x)
	if err == nil && page.State == linkDecided { // meanwhile, by another click
		return backToPage(x), nil
	}
	return s.htmlPage(x, page, err, typed{comment: comment, refusal: s.problemOf(x, refused)})
}

// htmlPage is the page of a link, or of why there is none. The cause of a failure goes to the log and nowhere else.
func (s *Server) htmlPage(x *exchange, p *api.LinkPage, err error, t typed) (answer, error) {
	if x.leftBy(err) {
		return answer{}, err
	}
	var page approvePage
	var status int
	if err != nil {
		problem := s.problemOf(x, err)
		page, status, x.code = brokenPage(problem), problem.Status, problem.Code
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			x.w.Header().Set("Retry-After", strconv.FormatInt(max(1, int64((problem.RetryAfter+time.Second-1)/time.Second)), 10))
		}
	} else {
		page, status = pageOfLink(p, t)
		switch {
		case p.State == linkDecided:
		case p.Refused != nil:
			x.code = api.CodeOf(p.Refused)
		case t.refusal != nil:
			x.code = t.refusal.Code
		}
	}
	text, err := page.render()
	if err != nil {
		return answer{}, err
	}
	return answer{status: status, raw: &wire.Raw{Data: text, ContentType: htmlContent}}, nil
}

// withLink is why a link cannot be decided, with what the link was about.
func withLink(p *api.LinkPage) error {
	var cause *api.Error
	if !errors.As(p.Refused, &cause) {
		return p.Refused
	}
	e := *cause
	if e.Current = maps.Clone(e.Current); e.Current == nil {
		e.Current = map[string]any{}
	}
	e.Current[wire.FactLink] = p
	return &refusal{e}
}

// prefersJSON reports whether the caller is a program: it sends JSON, or would rather have JSON than a page.
func prefersJSON(r *http.Request) bool {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return media == wire.ContentJSON || wanted(r, wire.ContentJSON) > wanted(r, "text/html")
}

// wanted returns the caller's quality value for a content type, 0 to 1: by the most specific range that it accepts. Without
// ranges everything is accepted.
func wanted(r *http.Request, contentType string) float64 {
	lines := r.Header.Values("Accept")
	if len(lines) == 0 {
		return 1
	}
	kind, _, _ := strings.Cut(contentType, "/")
	exact, quality := 0, 0.0
	for given := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		media, params, err := mime.ParseMediaType(given)
		rank := map[string]int{"*/*": 1, kind + "/*": 2, contentType: 3}[media]
		if err != nil || rank < exact || rank == 0 {
			continue
		}
		exact, quality = rank, 1
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
			quality = q
		}
	}
	return quality
}
