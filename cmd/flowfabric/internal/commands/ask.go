package commands

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// maxAnswer is the largest response that is read into memory.
const maxAnswer = 64 << 20

// ask calls an operation of the API's table.
func ask[Req, Ans any](ctx context.Context, s *session, cmd *cobra.Command, call wire.Call[Req, Ans], req *Req) (*Ans, error) {
	message, err := wire.Encode(call, req)
	if err != nil {
		return nil, refusalOf(err)
	}
	answer := new(Ans)
	if err := s.exchange(ctx, cmd, message, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// exchange sends a message and reads the response into answer, which stays unchanged if there is no body.
func (s *session) exchange(ctx context.Context, cmd *cobra.Command, message wire.Message, into any) error {
	path := message.Path
	if message.Query != "" {
		path += "?" + message.Query
	}
	answer, err := s.send(ctx, cmd, request{method: message.Method, path: path, body: message.Body, header: message.Header})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil || len(text) == 0 {
		return err
	}
	if err := wire.DecodeAnswer(text, into); err != nil {
		return fmt.Errorf("the response of the server cannot be read: %w", err)
	}
	return nil
}
