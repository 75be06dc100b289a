package flowfabric

import (
	"encoding/binary"
	"io"
)

// pageCounter hands a SQLite file on and tells how many of its pages have come. Size and number of the pages stand in the head of the
// file.
type pageCounter struct {
	w    io.Writer
	told func(pages, total int) // nil: nobody wants to know

	head  []byte
	bytes int64
}

// Where the head of a SQLite file tells of its pages.
const (
	pageSizeAt  = 16 // two bytes; 1 stands for 65536
	pageCountAt = 28 // four bytes
	headBytes   = pageCountAt + 4
)

// Write hands a part on.
func (c *pageCounter) Write(part []byte) (int, error) {
	n, err := c.w.Write(part)
	c.bytes += int64(n)
	if missing := headBytes - len(c.head); missing > 0 {
		c.head = append(c.head, part[:min(missing, n)]...)
	}
	if c.told != nil && len(c.head) == headBytes {
		size := int64(binary.BigEndian.Uint16(c.head[pageSizeAt:]))
		if size == 1 {
			size = 65536
		}
		if size > 0 {
			c.told(int(c.bytes/size), int(binary.BigEndian.Uint32(c.head[pageCountAt:])))
		}
	}
	return n, err
}
