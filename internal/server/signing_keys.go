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

// passUnstored serves an operation whose answer tells of secrets (U105): it holds none, and still nobody on the way keeps it.
func passUnstored[Req, Ans any](s *Server, call wire.Call[Req, Ans]) {
	handle(s, call, func(ctx context.Context, r *Req) (answer, error) {
		a, err := ask(ctx, s, call, r)
		return unstored(a), err
	})
}

// unstored shows what nobody on the way may keep.
func unstored(body any) answer { return shows(body).with("Cache-Control", "no-store") }
