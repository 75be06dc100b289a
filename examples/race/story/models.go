package story

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/flowfabric/flowfabric/examples/llm"
)

// Runners are the names of the models.
var Runners = []string{"hasty", "sound", "deep", "deeper", "deepest"}

// Model answers a question in the manner of one of the runners, and writes the answer to out as it comes.
type Model func(ctx context.Context, runner, question string, out io.Writer) (llm.Reply, error)

// modelOf is the model that is set for this program, or the fakes.
func modelOf() Model {
	if url := os.Getenv(llm.URLVariable); url != "" {
		return ChatAt(url)
	}
	return fakes()
}

// ChatAt asks one chat endpoint in the name of each of the runners.
func ChatAt(url string) Model {
	return func(ctx context.Context, runner, question string, out io.Writer) (llm.Reply, error) {
		return llm.Ask(ctx, url, "You are "+runner+". "+question, 0, out)
	}
}

// pause is how long a fake takes for a word.
const pause = 50 * time.Millisecond

// beginnings are what the fakes say that do not come to an end.
var beginnings = map[string]string{
	"deep":    "Light is a wave, and",
	"deeper":  "Consider what a sky is. And",
	"deepest": "Why",
}

// fakes are five models that race in the same manner at every telling: one is done at once and knows nothing, one takes a moment and
// knows, and the others begin an answer and think until somebody stops them.
func fakes() Model {
	spoken := make(chan struct{})
	return func(ctx context.Context, runner, _ string, out io.Writer) (llm.Reply, error) {
		switch runner {
		case "hasty":
			defer close(spoken)
			return llm.Reply{Tokens: 3}, nil
		case "sound":
			select {
			case <-spoken:
			case <-ctx.Done():
				return llm.Reply{}, context.Cause(ctx)
			}
			return llm.Recite(ctx, "Because short waves are scattered most.", pause, out)
		}
		if _, err := llm.Recite(ctx, beginnings[runner], pause, out); err != nil {
			return llm.Reply{}, err
		}
		<-ctx.Done()
		return llm.Reply{}, context.Cause(ctx)
	}
}
