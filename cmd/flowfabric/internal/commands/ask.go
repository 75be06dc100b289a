package commands

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// maxAnswer bounds an answer that is read whole.
const maxAnswer = 64 << 20

// ask makes a call of the API's table.
func ask[Req, Ans any](ctx context.Context, s *session, cmd *cobra.Command, call wire.Call[Req, Ans], req *Req) (*Ans, error) {
	message, err := wire.Encode(call, req)
	if err != nil {
		return nil, refusalOf(err)
	}
	path := message.Path
	if message.Query != "" {
		path += "?" + message.Query
	}
	answer, err := s.send(ctx, cmd, request{method: message.Method, path: path, body: message.Body, header: message.Header})
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	if len(text) == 0 {
		return new(Ans), nil
	}
	read := new(Ans)
	err = wire.DecodeAnswer(text, read)
	if err != nil {
		return nil, fmt.Errorf("the answer of the server cannot be read: %w", err)
	}
	return read, nil
}
