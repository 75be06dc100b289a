package server

import (
	"context"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// explain says why an execution is not running, or waits until that changes (U44).
func (s *Server) explain(ctx context.Context, x *exchange, r *wire.ExplainRequest) (answer, error) {
	wait, err := waitOf(r.WaitFields, s.cfg.MaxWait)
	if err != nil {
		return answer{}, err
	}
	now := &wire.ExplainRequest{ByID: r.ByID}
	if wait.atMost <= 0 {
		shown, err := ask(ctx, s, x.by, wire.ExplainExecution, now)
		if err != nil {
			return answer{}, err
		}
		return wait.told(shows(shown)), nil
	}
	var shown *api.Explanation
	ended, err := s.until(ctx, x, s.readers, wait.atMost, func(ctx context.Context) (err error) {
		atMost := wait.atMost.Milliseconds()
		shown, err = ask(ctx, s, x.by, wire.ExplainExecution, &wire.ExplainRequest{ByID: r.ByID, WaitFields: wire.WaitFields{WaitMS: &atMost}})
		return err
	})
	if ended {
		shown, err = ask(ctx, s, x.by, wire.ExplainExecution, now)
	}
	if err != nil {
		return answer{}, err
	}
	return wait.told(shows(shown)), nil
}
