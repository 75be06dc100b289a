package server

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveSigningKeys() {
	passUnstored(s, wire.ListSigningKeys)
	passUnstored(s, wire.SeedSigningKey)
	passUnstored(s, wire.RotateSigningKey)
	passUnstored(s, wire.RevokeSigningKey)
}

// passUnstored serves an operation about secrets (U105): its answer contains none, but must not be cached on the way.
func passUnstored[Req, Ans any](s *Server, call wire.Call[Req, Ans]) {
	handle(s, call, func(ctx context.Context, x *exchange, r *Req) (answer, error) {
		a, err := ask(ctx, s, x.by, call, r)
		return unstored(a), err
	})
}

// unstored returns an answer that must not be cached on the way.
func unstored(body any) answer { return shows(body).with("Cache-Control", "no-store") }
