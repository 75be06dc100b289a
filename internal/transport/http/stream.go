package httptransport

import (
	"context"
	"encoding/binary"
	"io"
	"net/http"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// stream performs an operation whose answer is bytes, and passes them on as they arrive. It is not repeated: the sink has
// received part of them.
func (t *Transport) stream(ctx context.Context, op *wire.Operation, request any, into *wire.Sink) error {
	message, err := wire.EncodeRequest(op, request)
	if err != nil {
		return api.FaultsError(err)
	}
	ctx, done, err := t.begin(ctx, true, false)
	if err != nil {
		return err
	}
	defer done()
	t.putHead(op, message.Header, sending{})
	if err := t.meet(ctx); err != nil {
		return err
	}
	at := t.hosts.pick(t.clock.Now())
	ctx, life, leave := t.owe(ctx, at)
	defer leave()
	asked, err := t.request(ctx, at, message)
	if err != nil {
		return err
	}
	response, err := t.http.Do(asked)
	if err != nil {
		t.hosts.failed(at, life, t.clock.Now())
		return unanswered(err, false) // the outcome does not matter, because the operation changes nothing
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return problemFrom(response)
	}
	if _, err := io.Copy(&pageCounter{w: into.To, progress: into.Progress}, response.Body); err != nil {
		return refuse(base.CodeStoreUnavailable, "the copy did not come whole: %w", err)
	}
	return nil
}

// pageCounter passes a SQLite file on and reports how many of its pages have arrived. The size and number of the pages are in the
// header of the file.
type pageCounter struct {
	w        io.Writer
	progress func(pages, total int) // may be nil

	head  []byte
	bytes int64
}

// Offsets in the header of a SQLite file.
const (
	pageSizeAt  = 16 // two bytes; 1 stands for 65536
	pageCountAt = 28 // four bytes
	headBytes   = pageCountAt + 4
)

// Write passes a part on.
func (c *pageCounter) Write(part []byte) (int, error) {
	n, err := c.w.Write(part)
	c.bytes += int64(n)
	if missing := headBytes - len(c.head); missing > 0 {
		c.head = append(c.head, part[:min(missing, n)]...)
	}
	if c.progress != nil && len(c.head) == headBytes {
		size := int64(binary.BigEndian.Uint16(c.head[pageSizeAt:]))
		if size == 1 {
			size = 65536
		}
		if size > 0 {
			c.progress(int(c.bytes/size), int(binary.BigEndian.Uint32(c.head[pageCountAt:])))
		}
	}
	return n, err
}
