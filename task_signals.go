package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/ops"
)

// fetchOmitted fetches the payloads that were left out of the resume for their size, of the signals that looksAt selects.
func (t *Task) fetchOmitted(ctx context.Context, r *Resume, looksAt func(*SignalRecord) bool) error {
	missing := map[string]*SignalRecord{}
	for i := range r.Signals {
		if s := &r.Signals[i]; s.Payload.Omitted() && looksAt(s) {
			missing[s.ID] = s
		}
	}
	if len(missing) == 0 {
		return nil
	}
	for found, err := range t.runner.client.Executions().Signals(ctx, t.claimed.ID, ops.SignalQuery{SuspensionID: r.SuspensionID}) {
		if err != nil {
			return err
		}
		if s := missing[found.ID]; s != nil {
			s.Payload = found.Payload
			if delete(missing, found.ID); len(missing) == 0 {
				return nil
			}
		}
	}
	return nil
}
