package server

import (
	"context"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// explain says why an execution is not running, or waits until that changes (U44).
func (s *Server) explain(ctx context.Context, r *wire.ExplainRequest) (answer, error) {
	wait, err := waitOf(r.WaitFields, s.cfg.MaxWait)
	if err != nil {
		return answer{}, err
	}
	id := flowfabric.ID(r.ID)
	if wait.atMost <= 0 {
		shown, err := s.client.Executions().Explain(ctx, id)
		if err != nil {
			return answer{}, err
		}
		return wait.told(shows(shown)), nil
	}
	var shown *flowfabric.Explanation
	ended, err := s.until(ctx, s.readers, wait.atMost, func(ctx context.Context) (err error) {
		shown, err = s.client.Executions().Explain(ctx, id, flowfabric.ExplainOptions{Wait: wait.atMost})
		return err
	})
	if ended {
		shown, err = s.client.Executions().Explain(ctx, id)
	}
	if err != nil {
		return answer{}, err
	}
	return wait.told(shows(shown)), nil
}
