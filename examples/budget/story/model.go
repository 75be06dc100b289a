package story

import (
	"context"
	"os"

	"github.com/flowfabric/flowfabric/examples/chat"
)

// Model answers prompts.
type Model func(ctx context.Context, p Prompt) (chat.Reply, error)

// modelOf is the model that is set for this program, or the fake.
func modelOf() Model {
	if url := os.Getenv(chat.URLVariable); url != "" {
		return ChatAt(url)
	}
	return fake
}

// fake answers the same at every telling.
func fake(_ context.Context, p Prompt) (chat.Reply, error) {
	if p.MaxTokens == 0 {
		return chat.Reply{Text: "It is a long story: " + p.Question, Tokens: 600}, nil
	}
	return chat.Reply{Text: "In short: " + p.Question, Tokens: min(p.MaxTokens, 350)}, nil
}

// ChatAt asks a chat endpoint.
func ChatAt(url string) Model {
	return func(ctx context.Context, p Prompt) (chat.Reply, error) {
		return chat.Ask(ctx, url, p.Question, p.MaxTokens)
	}
}
