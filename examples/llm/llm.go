// Package llm asks language models, for the examples: a chat endpoint, or a fake that needs no network. It knows no story.
package llm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// URLVariable may name a chat endpoint that answers in place of a fake model.
const URLVariable = "FF_MODEL_URL"

// Reply is what a model says, and what that took.
type Reply struct {
	Text   string
	Tokens int64
}

// Recite is a fake model: it writes the words of a text to out, each of them after a pause.
func Recite(ctx context.Context, text string, pause time.Duration, out io.Writer) (Reply, error) {
	words := strings.SplitAfter(text, " ")
	for _, word := range words {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return Reply{}, context.Cause(ctx)
		}
		if _, err := io.WriteString(out, word); err != nil {
			return Reply{}, err
		}
	}
	return Reply{text, int64(len(words))}, nil
}

// Ask sends one question to a chat endpoint, which counts the tokens, and writes the answer to out as it comes. No maxTokens: as
// many as it takes.
func Ask(ctx context.Context, url, question string, maxTokens int64, out io.Writer) (Reply, error) {
	body, err := json.Marshal(request{
		Messages: []message{{Role: "user", Content: question}}, MaxTokens: maxTokens, Stream: true, Options: options{IncludeUsage: true},
	})
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
	if answer.StatusCode != http.StatusOK {
		return Reply{}, fmt.Errorf("the model at %s answers %s", url, answer.Status)
	}
	var reply Reply
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		err = reply.readEvents(answer.Body, out)
	} else { // it does not stream
		err = reply.readPart(json.NewDecoder(answer.Body), out)
	}
	if err == nil && reply.Text == "" {
		err = errors.New("it says nothing")
	}
	if err != nil {
		return Reply{}, fmt.Errorf("the answer of the model at %s: %w", url, err)
	}
	return reply, nil
}

// readEvents reads an answer that comes in parts, as server-sent events.
func (r *Reply) readEvents(body io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		part, ok := strings.CutPrefix(lines.Text(), "data:")
		switch {
		case !ok:
		case strings.TrimSpace(part) == "[DONE]":
			return nil
		default:
			if err := r.readPart(json.NewDecoder(strings.NewReader(part)), out); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

// readPart reads a part of an answer, or all of it.
func (r *Reply) readPart(from *json.Decoder, out io.Writer) error {
	var said completion
	if err := from.Decode(&said); err != nil {
		return err
	}
	r.Tokens += said.Usage.TotalTokens
	for _, choice := range said.Choices {
		text := choice.Delta.Content + choice.Message.Content
		r.Text += text
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
	}
	return nil
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
		Stream    bool      `json:"stream"`
		Options   options   `json:"stream_options"`
	}
	options struct {
		IncludeUsage bool `json:"include_usage"`
	}
	completion struct {
		Choices []struct {
			Delta   message `json:"delta"`   // of a part
			Message message `json:"message"` // of a whole answer
		} `json:"choices"`
		Usage struct {
			TotalTokens int64 `json:"total_tokens"` // in the last part
		} `json:"usage"`
	}
)
