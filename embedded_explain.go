package flowfabric

import (
	"context"
	"time"
)

// longestExplain is how long an explanation is waited for at most (U18).
const longestExplain = time.Minute

func (e embeddedExecutions) Explain(ctx context.Context, id ID, o ...ExplainOptions) (*Explanation, error) {
	options, err := single(o)
	if err != nil {
		return nil, err
	}
	given, err := parseID(id)
	if err != nil {
		return nil, err
	}
	shown, err := e.client.engine.Explain(ctx, e.client.asClient(ctx), given, min(options.Wait, longestExplain))
	if err != nil {
		return nil, publicError(err)
	}
	return explanationOf(shown), nil
}
