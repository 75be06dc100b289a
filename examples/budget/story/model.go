package story

import (
	"context"
	"io"
	"os"

	"github.com/flowfabric/flowfabric/examples/llm"
)

// Model answers prompts.
type Model func(ctx context.Context, p Prompt) (llm.Reply, error)

// modelOf is the model that is set for this program, or the fake.
func modelOf() Model {
	if url := os.Getenv(llm.URLVariable); url != "" {
		return ChatAt(url)
	}
	return fake
}

// fake answers the same at every telling.
func fake(_ context.Context, p Prompt) (llm.Reply, error) {
	if p.MaxTokens == 0 {
		return llm.Reply{Text: "It is a long story: " + p.Question, Tokens: 600}, nil
	}
	return llm.Reply{Text: "In short: " + p.Question, Tokens: min(p.MaxTokens, 350)}, nil
}

// ChatAt asks a chat endpoint.
func ChatAt(url string) Model {
	return func(ctx context.Context, p Prompt) (llm.Reply, error) {
		return llm.Ask(ctx, url, p.Question, p.MaxTokens, io.Discard)
	}
}
