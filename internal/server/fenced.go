package server

import (
	"context"
	"net/http"

	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveFenced() {
	handle(s, wire.PutStep, s.putStep)
}

// putStep remembers the result of a step; the first write wins (U76).
func (s *Server) putStep(ctx context.Context, x *exchange, r *wire.PutStepRequest) (answer, error) {
	a, err := ask(ctx, s, x.by, wire.PutStep, r)
	if err != nil {
		return answer{}, err
	}
	if r.Encoding == wire.EncodingBytes {
		a.Result = a.Result.AsBytes()
	}
	status := http.StatusCreated
	if a.Outcome == "exists" {
		status = http.StatusOK
	}
	return answer{status: status, body: a}, nil
}
