package server

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func (s *Server) serveLanes() {
	handle(s, wire.GetLane, s.getLane)
}

// getLane returns a lane (U100).
func (s *Server) getLane(ctx context.Context, x *exchange, r *wire.ByLane) (answer, error) {
	lane, err := ask(ctx, s, x.by, wire.GetLane, r)
	if err != nil {
		return answer{}, err
	}
	still := *lane
	still.Rates = api.LaneRates{} // they change with time alone: what a reader has is not old for that (U17)
	return answer{body: lane, tagged: still}, nil
}
