package story

import (
	"context"
	"os"
	"time"

	"github.com/flowfabric/flowfabric/examples/chat"
)

// Runners are the names of the models.
var Runners = []string{"hasty", "sound", "deep", "deeper", "deepest"}

// Model answers a question in the manner of one of the runners.
type Model func(ctx context.Context, runner, question string) (chat.Reply, error)

// modelOf is the model that is set for this program, or the fakes.
func modelOf() Model {
	if url := os.Getenv(chat.URLVariable); url != "" {
		return ChatAt(url)
	}
	return fakes()
}

// ChatAt asks one chat endpoint in the name of each of the runners.
func ChatAt(url string) Model {
	return func(ctx context.Context, runner, question string) (chat.Reply, error) {
		return chat.Ask(ctx, url, "You are "+runner+". "+question, 0)
	}
}

// soundThinks is how long the sound model thinks after the hasty one has spoken.
const soundThinks = 300 * time.Millisecond

// fakes are five models that race in the same manner at every telling: one speaks at once and knows nothing, one takes a moment and knows,
// and the others think until somebody stops them.
func fakes() Model {
	spoken := make(chan struct{})
	return func(ctx context.Context, runner, _ string) (chat.Reply, error) {
		switch runner {
		case "hasty":
			defer close(spoken)
			return chat.Reply{Tokens: 3}, nil
		case "sound":
			select {
			case <-spoken:
			case <-ctx.Done():
				return chat.Reply{}, context.Cause(ctx)
			}
			select {
			case <-time.After(soundThinks):
				return chat.Reply{Text: "Because short waves are scattered most.", Tokens: 40}, nil
			case <-ctx.Done():
			}
		default:
			<-ctx.Done()
		}
		return chat.Reply{}, context.Cause(ctx)
	}
}
