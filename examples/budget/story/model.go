package story

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
)

// ModelVariable may name a chat endpoint that answers in place of the fake.
const ModelVariable = "FF_MODEL_URL"

// Reply is what a model says, and what that took.
type Reply struct {
	Text   string
	Tokens int64
}

// Model answers prompts.
type Model func(ctx context.Context, p Prompt) (Reply, error)

// modelOf is the model that is set for this program, or the fake.
func modelOf() Model {
	if url := os.Getenv(ModelVariable); url != "" {
		return ChatAt(url)
	}
	return fake
}

// fake answers the same at every telling.
func fake(_ context.Context, p Prompt) (Reply, error) {
	if p.MaxTokens == 0 {
		return Reply{"It is a long story: " + p.Question, 600}, nil
	}
	return Reply{"In short: " + p.Question, min(p.MaxTokens, 350)}, nil
}

// ChatAt asks a chat endpoint, which counts the tokens.
func ChatAt(url string) Model {
	return func(ctx context.Context, p Prompt) (Reply, error) {
		question, err := json.Marshal(chat{MaxTokens: p.MaxTokens, Messages: []message{{Role: "user", Content: p.Question}}})
		if err != nil {
			return Reply{}, err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(question))
		if err != nil {
			return Reply{}, err
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return Reply{}, err
		}
		defer answer.Body.Close()
		var said completion
		if err := json.NewDecoder(answer.Body).Decode(&said); err != nil || len(said.Choices) == 0 {
			return Reply{}, fmt.Errorf("the model at %s answers %s with nothing to say: %w", url, answer.Status, err)
		}
		return Reply{said.Choices[0].Message.Content, said.Usage.TotalTokens}, nil
	}
}

// What is said to a chat endpoint, and what it says.
type (
	message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	chat struct {
		Messages  []message `json:"messages"`
		MaxTokens int64     `json:"max_tokens,omitempty"`
	}
	completion struct {
		Choices []struct {
			Message message `json:"message"`
		} `json:"choices"`
		Usage struct {
			TotalTokens int64 `json:"total_tokens"`
		} `json:"usage"`
	}
)
