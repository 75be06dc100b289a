package server

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// serveWaitpoints are waitpoints, links and what waits (section 2.4, without what a token opens).
func (s *Server) serveWaitpoints() {
	handle(s, wire.ReadWaitpointToken, s.readToken)
	handle(s, wire.ReissueToken, s.reissueToken)
	handle(s, wire.CreateLink, s.createLink)
	handle(s, wire.ListLinks, s.listLinks)
	handle(s, wire.ReadLinkURL, s.readLinkURL)
	handle(s, wire.ListSuspended, s.listSuspended)
	handle(s, wire.ListApprovals, s.listApprovals)
}

// readToken returns the token of a waitpoint (U80).
func (s *Server) readToken(ctx context.Context, x *exchange, r *wire.WaitpointTokenRequest) (answer, error) {
	return s.shownToken(x)(ask(ctx, s, x.by, wire.ReadWaitpointToken, r))
}

// reissueToken invalidates the tokens of a waitpoint and returns the new one (U80).
func (s *Server) reissueToken(ctx context.Context, x *exchange, r *wire.ReissueRequest) (answer, error) {
	return s.shownToken(x)(ask(ctx, s, x.by, wire.ReissueToken, r))
}

// shownToken answers with a waitpoint, its token and its address.
func (s *Server) shownToken(x *exchange) func(*api.IssuedWaitpoint, error) (answer, error) {
	return func(issued *api.IssuedWaitpoint, err error) (answer, error) {
		if err != nil {
			return answer{}, err
		}
		issued.CallbackURL = s.absolute(x, issued.CallbackURL)
		return shows(issued), nil
	}
}

// issued returns a waitpoint with its token and its address.
func (s *Server) issued(x *exchange, w *api.Waitpoint) api.IssuedWaitpoint {
	issued := w.Issued()
	issued.CallbackURL = s.absolute(x, issued.CallbackURL)
	return issued
}

// absolute makes an address of a path: by the public URL, else by the name under which the caller reached the server.
func (s *Server) absolute(x *exchange, address string) string {
	switch {
	case !strings.HasPrefix(address, "/"):
		return address
	case s.cfg.PublicURL != "":
		return strings.TrimSuffix(s.cfg.PublicURL, "/") + address
	case x.r.TLS != nil:
		return "https://" + x.r.Host + x.mount + address
	default:
		return "http://" + x.r.Host + x.mount + address
	}
}

// createLink makes a link (U84).
func (s *Server) createLink(ctx context.Context, x *exchange, r *wire.CreateLinkRequest) (answer, error) {
	return s.shownLink(x)(ask(ctx, s, x.by, wire.CreateLink, r))
}

// readLinkURL returns the address of a link (U84).
func (s *Server) readLinkURL(ctx context.Context, x *exchange, r *wire.ByLink) (answer, error) {
	return s.shownLink(x)(ask(ctx, s, x.by, wire.ReadLinkURL, r))
}

// shownLink answers with a link and its address.
func (s *Server) shownLink(x *exchange) func(*api.IssuedLink, error) (answer, error) {
	return func(issued *api.IssuedLink, err error) (answer, error) {
		if err != nil {
			return answer{}, err
		}
		issued.URL = s.absolute(x, issued.URL)
		return shows(issued), nil
	}
}

// listLinks lists the links of a waitpoint, without their addresses (U84).
func (s *Server) listLinks(ctx context.Context, x *exchange, r *wire.ListLinksRequest) (answer, error) {
	all, err := ask(ctx, s, x.by, wire.ListLinks, r)
	if err != nil {
		return answer{}, err
	}
	return pageOf(all.Items, r.PageFields, "links "+r.Waitpoint)
}

// holdsLease reports whether a worker has the lease of the execution that a waitpoint is of. It is for reads: commands carry the lease
// to the rules.
func (s *Server) holdsLease(ctx context.Context, x *exchange, lease wire.LeaseRef, waitpointID string) (bool, error) {
	if lease.IsZero() {
		return false, nil
	}
	waitpoint, err := ask(ctx, s, x.by, wire.GetWaitpoint, &wire.ByWaitpoint{Waitpoint: waitpointID})
	if err != nil {
		return false, err
	}
	execution, err := s.outline(ctx, x.by, waitpoint.ExecutionID)
	if err != nil {
		return false, err
	}
	if err := x.mayWorkOn(execution.Lane); err != nil {
		return false, err
	}
	held := execution.Lease
	return held != nil && held.ID == lease.LeaseID && held.Epoch == lease.Epoch && held.AttemptID == lease.AttemptID, nil
}

// listSuspended lists what waits (U85).
func (s *Server) listSuspended(ctx context.Context, x *exchange, r *wire.ListSuspendedRequest) (answer, error) {
	if err := checkTags(r.SuspendedFields); err != nil {
		return answer{}, err
	}
	return summaries(ask(ctx, s, x.by, wire.ListSuspended, r))
}

// listApprovals lists what waits for people (U85).
func (s *Server) listApprovals(ctx context.Context, x *exchange, r *wire.ListApprovalsRequest) (answer, error) {
	if err := checkTags(r.SuspendedFields); err != nil {
		return answer{}, err
	}
	return summaries(ask(ctx, s, x.by, wire.ListApprovals, r))
}

// checkTags refuses a tag without a value. Of several the same is reported each time.
func checkTags(f wire.SuspendedFields) error {
	for _, key := range slices.Sorted(maps.Keys(f.Tags)) {
		if f.Tags[key] == nil {
			return refuse("invalid_argument", "say which value the tag has").at("query.tag." + key).hint("write `tag.KEY=VALUE`")
		}
	}
	return nil
}

// summaries answers with a page of what waits, each execution in summary.
func summaries(page *api.Page[api.Suspended], err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	for i := range page.Items {
		page.Items[i].Execution = summaryOf(page.Items[i].Execution)
	}
	return shows(page), nil
}
