package server

import (
	"context"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Unserved lists the operations of the table that have no handler.
func (s *Server) Unserved() []string {
	var missing []string
	for _, o := range wire.Operations() {
		if s.routes[o.ID] == nil {
			missing = append(missing, o.ID)
		}
	}
	return missing
}

// BodyLimit is how much an operation reads.
func (s *Server) BodyLimit(id string) int64 { return s.routes[id].body }

// Document is the OpenAPI document of a server without a public URL.
func Document() []byte { return openAPI(Config{}) }

// BreakHealth makes a route panic, with half an answer on its way or none.
func (s *Server) BreakHealth(halfway bool) {
	s.routes[wire.GetHealth.ID].serve = func(_ context.Context, x *exchange) (answer, error) {
		if halfway {
			_, _ = x.w.Write([]byte("{"))
		}
		panic("secret of the handler")
	}
}

// FailHealth makes a route fail with an error.
func (s *Server) FailHealth(err error) {
	s.routes[wire.GetHealth.ID].serve = func(context.Context, *exchange) (answer, error) { return answer{}, err }
}

// Waiting tells how many calls wait.
func (s *Server) Waiting() (readers, claims int) { return len(s.readers.free), len(s.claims.free) }

// Limited tells how many limits are kept.
func (s *Server) Limited() int {
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	return len(s.keys.rates) + len(s.keys.places)
}

// Active tells of how many namespaces it is remembered that they send requests.
func (s *Server) Active() int {
	s.keys.active.mu.Lock()
	defer s.keys.active.mu.Unlock()
	return len(s.keys.active.by)
}

// BoundRequests sets how many requests a second a namespace has by default, by which clock.
func (s *Server) BoundRequests(perSecond int, by clock.Clock) {
	s.keys.active.perSecond, s.keys.active.clock = perSecond, by
}

// RunningShare is how many times more calls a namespace has for work that runs.
const RunningShare = runningShare

// KeepsWork reports whether an operation keeps or ends work that runs.
func KeepsWork(id string) bool { return keepsWork[id] }

// Explained reports whether the class of a code is explained to people.
func Explained(info api.CodeInfo) bool { return classTexts[info.Class].meaning != "" }

// Reserved is a route that is kept for a feature that is not built.
type Reserved struct{ Feature, Method, Path string }

// Unbuilt lists the reserved routes that the table of operations does not have.
func Unbuilt() []Reserved {
	var all []Reserved
	for _, reserved := range unbuilt {
		for _, pattern := range reserved.routes {
			method, path, _ := strings.Cut(pattern, " ")
			all = append(all, Reserved{reserved.feature, method, path})
		}
	}
	return all
}

// Stalled ends what blocks for longer than that.
func Stalled(after time.Duration, setDeadline func(time.Time) error) (moved func()) {
	return stalled(after, setDeadline)
}

// SetStallLimit bounds how long a client may take and send nothing.
func (s *Server) SetStallLimit(d time.Duration) { s.stallLimit, s.writeLimit = d, d }

// SetStreamStallLimit bounds how long a stream of HTTP/2 may stand still; its connection keeps its own bound.
func (s *Server) SetStreamStallLimit(d time.Duration) { s.stallLimit = d }

// SetLineTimeout bounds how long a line of a body of lines may take.
func (s *Server) SetLineTimeout(d time.Duration) { s.lineTimeout = d }
