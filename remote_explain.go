package flowfabric

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/wire"
)

func (r remoteExecutions) Explain(ctx context.Context, id ID, o ...ExplainOptions) (*Explanation, error) {
	options, path, err := target(id, o)
	if err != nil {
		return nil, err
	}
	wait := millis(options.Wait)
	request := &wire.ExplainRequest{ByID: path, WaitFields: wire.WaitFields{WaitMS: &wait}}
	answer, err := call(ctx, r.client, wire.ExplainExecution, request, sending{wait: options.Wait})
	if err != nil {
		return nil, err
	}
	shown := explanationFrom(answer)
	return &shown, nil
}
