package server

import (
	"cmp"
	"context"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// route is an operation with the handler that does it.
type route struct {
	*wire.Operation
	serve    func(ctx context.Context, x *exchange) (answer, error)
	body     int64    // bytes that a request may have
	tag      bool     // its answers carry an ETag (U17)
	unheeded []string // headers with conditions that it does not check
}

// handle registers the handler of a call. It gets a request that was read strictly, from a caller that may make it. This much is
// compiled for each call.
func handle[Req, Ans any](s *Server, call wire.Call[Req, Ans], do func(ctx context.Context, x *exchange, r *Req) (answer, error)) {
	s.handle(call.Operation, func(ctx context.Context, x *exchange, r any) (answer, error) { return do(ctx, x, r.(*Req)) })
}

// serveRest serves the operations of the table that need nothing of the server but what their rows say.
func (s *Server) serveRest() {
	for _, o := range wire.Operations() {
		if !o.Reserved && s.routes[o.ID] == nil {
			s.pass(o)
		}
	}
}

// pass serves an operation as the service performs it.
func (s *Server) pass(o *wire.Operation) {
	none := o.Answer == reflect.TypeFor[wire.None]()
	s.handle(o, func(ctx context.Context, x *exchange, r any) (answer, error) {
		a := reflect.New(o.Answer).Interface()
		switch err := s.on.Do(ctx, x.by, o, r, a); {
		case err != nil:
			return answer{}, err
		case none:
			return nothing(), nil
		default:
			return shows(a), nil
		}
	})
}

// ask performs an operation for a caller.
func ask[Req, Ans any](ctx context.Context, s *Server, by service.Caller, call wire.Call[Req, Ans], r *Req) (*Ans, error) {
	return service.Call(ctx, s.on, by, call, r)
}

// handle registers a handler for requests of the operation's type.
func (s *Server) handle(o *wire.Operation, do func(ctx context.Context, x *exchange, r any) (answer, error)) {
	s.add(o, func(ctx context.Context, x *exchange) (answer, error) {
		r := reflect.New(o.Request).Interface()
		if _, err := x.decode(r); err != nil {
			return answer{}, err
		}
		if err := s.checkConditions(ctx, x, r); err != nil {
			return answer{}, err
		}
		return do(ctx, x, r)
	})
}

// add serves an operation.
func (s *Server) add(o *wire.Operation, serve func(context.Context, *exchange) (answer, error)) {
	r := &route{Operation: o, serve: serve, body: s.bodyLimit(o), tag: showsOneObject(o), unheeded: unheeded(o)}
	s.routes[o.ID] = r
	s.put(r)
}

// unheeded are the headers with conditions that an operation does not check: what it does must not depend on one that is ignored.
func unheeded(o *wire.Operation) []string {
	var all []string
	checked := func(f reflect.StructField) bool { return f.Tag.Get("header") == "If-Match" }
	if !slices.ContainsFunc(reflect.VisibleFields(o.Request), checked) {
		all = append(all, "If-Match")
	}
	if o.Method != http.MethodGet { // there it is about what the client has
		all = append(all, "If-None-Match")
	}
	return all
}

// checkConditional refuses a condition that the route does not check.
func (x *exchange) checkConditional() error {
	for _, name := range x.route.unheeded {
		if len(x.r.Header.Values(name)) > 0 {
			return refuse("unknown_field", "this route does not check the condition").at("header." + name).hint("leave the header out")
		}
	}
	return nil
}

// put puts a route on the mux.
func (s *Server) put(r *route) {
	s.methods[r.Path] = append(s.methods[r.Path], r.Method)
	s.mux.HandleFunc(r.Method+" "+r.Path, func(_ http.ResponseWriter, req *http.Request) { s.serveRoute(req, r) })
}

// closeLiterals keeps requests for a path from a route whose parameters match it too: DELETE /v1/executions/count does not delete
// an execution called count, and GET /v1/workers/drain does not return a worker called drain. ServeMux selects the path only
// among the routes that have the method; here a name in the table is never the value of a parameter, for any method.
func (s *Server) closeLiterals() {
	for literal, own := range s.methods {
		closed := slices.Clone(own)
		for pattern, methods := range s.methods {
			if !matches(pattern, literal) || matches(literal, pattern) {
				continue
			}
			for _, method := range methods {
				if !slices.Contains(closed, method) {
					closed = append(closed, method)
					s.mux.HandleFunc(method+" "+literal, s.noRoute)
				}
			}
		}
	}
}

// matches reports whether the parameters of a pattern can be such that it is the path, which may have parameters too.
func matches(pattern, path string) bool {
	for {
		p, patternRest, patternGoesOn := strings.Cut(pattern, "/")
		segment, rest, goesOn := strings.Cut(path, "/")
		if p != segment && !strings.HasPrefix(p, "{") || patternGoesOn != goesOn {
			return false
		}
		if !goesOn {
			return true
		}
		pattern, path = patternRest, rest
	}
}

// serveRoute answers a request that a route was found for.
func (s *Server) serveRoute(req *http.Request, r *route) {
	x := exchangeOf(req.Context())
	x.r, x.route = req, r
	s.serve(x)
}

// showsOneObject reports whether the operation reads one named object. Objects that a token opens, or that contain one, are never
// cached.
func showsOneObject(o *wire.Operation) bool {
	one := o.Method == http.MethodGet && strings.Contains(o.Path, "{") && !strings.HasPrefix(o.Answer.Name(), "Page[")
	return one && o.Roles&wire.Token == 0 && !o.Secret && !o.Raw && !o.Streams
}

// noRoute answers what the table does not have: 405 when the path takes other methods, else 404 (U23).
func (s *Server) noRoute(_ http.ResponseWriter, r *http.Request) {
	x := exchangeOf(r.Context())
	allowed := s.methodsOf(r)
	if isBrowserAtRoot(r) {
		x.w.Header().Set("Location", x.mount+"/docs")
		x.w.WriteHeader(http.StatusFound)
		return
	}
	if len(allowed) == 0 {
		s.writeProblem(x, refuse("route_not_found", "there is no such route").hint(s.nearest(r.URL.Path)))
		return
	}
	x.w.Header().Set("Allow", strings.Join(allowed, ", "))
	s.writeProblem(x, refuse("method_not_allowed", "the route does not take this method").hint("use "+strings.Join(allowed, ", ")))
}

// isBrowserAtRoot reports whether a person opened the address of the server in a browser; programs accept HTML only as one of all types.
func isBrowserAtRoot(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && (r.URL.Path == "/" || r.URL.Path == "") && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// methodsOf lists the methods that the path of a request takes.
func (s *Server) methodsOf(r *http.Request) []string {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		asked := r.Clone(r.Context())
		asked.Method = method
		_, pattern := s.mux.Handler(asked)
		served, path, _ := strings.Cut(pattern, " ") // GET for HEAD
		if slices.Contains(s.methods[path], served) {
			allowed = append(allowed, method)
		}
	}
	return allowed
}

// nearest says which route was meant.
func (s *Server) nearest(asked string) string {
	var paths []string
	for _, r := range s.routes {
		paths = append(paths, r.Path)
	}
	slices.Sort(paths)
	best := slices.MinFunc(paths, func(a, b string) int { return cmp.Compare(distance(asked, a), distance(asked, b)) })
	return "the nearest route is " + best
}

// distance returns how far a path is from a route: segments that differ cost more the earlier they are, parameters match
// anything.
func distance(asked, route string) int {
	a, b := strings.Split(asked, "/"), strings.Split(route, "/")
	const segment = 8
	far := segment * max(len(a)-len(b), len(b)-len(a))
	for i := range min(len(a), len(b)) {
		switch same := commonPrefix(a[i], b[i]); {
		case a[i] == b[i]:
		case strings.HasPrefix(b[i], "{"):
			far++
		default:
			far += segment - (segment-2)*same/max(len(a[i]), len(b[i]))
		}
	}
	return far
}

// commonPrefix is the length of what two texts begin with.
func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// tidy removes a trailing slash, which has no meaning, and reports whether the path is one that a route could have (U23).
func tidy(r *http.Request) bool {
	escaped := r.URL.EscapedPath()
	if len(escaped) > 1 && strings.HasSuffix(escaped, "/") {
		u := *r.URL
		u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(u.RawPath, "/")
		r.URL, escaped = &u, u.EscapedPath()
	}
	return strings.HasPrefix(escaped, "/") && path.Clean(escaped) == escaped
}
