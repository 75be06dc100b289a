// Package chat asks a chat endpoint, for examples whose model is a fake unless somebody names a real one. It knows no story.
package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// URLVariable may name a chat endpoint that answers in place of a fake model.
const URLVariable = "FF_MODEL_URL"

// Reply is what a model says, and what that took.
type Reply struct {
	Text   string
	Tokens int64
}

// Ask sends one question to a chat endpoint, which counts the tokens. No maxTokens: as many as it takes.
func Ask(ctx context.Context, url, question string, maxTokens int64) (Reply, error) {
	body, err := json.Marshal(request{MaxTokens: maxTokens, Messages: []message{{Role: "user", Content: question}}})
	if err != nil {
		return Reply{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
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

// What is said to a chat endpoint, and what it says.
type (
	message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	request struct {
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
