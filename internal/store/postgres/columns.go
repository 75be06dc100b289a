package postgres

import (
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Arguments of statements are encoded directly in Postgres's binary form: with hundreds of rows and dozens of columns per commit, a general encoder
// would dominate the CPU time of the process.

// arrayHeader is the size of the header of a one-dimensional array.
const arrayHeader = 20

// column is an array argument under construction, with one element per row.
type column struct {
	data  []byte
	oid   uint32
	count uint32
	nulls bool
}

// largestColumn is the largest buffer of a column that is kept for reuse.
const largestColumn = 256 << 10

// spare holds the columns of a connection that have been sent and can be reused. nil holds none.
type spare struct{ columns []*column }

func (s *spare) column(oid uint32, rows, width int) *column {
	if s == nil || len(s.columns) == 0 {
		return newColumn(oid, rows, width)
	}
	last := len(s.columns) - 1
	c := s.columns[last]
	s.columns = s.columns[:last]
	*c = column{data: slices.Grow(c.data[:0], arrayHeader+rows*(4+width))[:arrayHeader], oid: oid}
	return c
}

// keep adds columns whose arguments are no longer needed.
func (s *spare) keep(columns []*column) {
	for _, c := range columns {
		if cap(c.data) <= largestColumn {
			s.columns = append(s.columns, c)
		}
	}
}

func newColumn(oid uint32, rows, width int) *column {
	return &column{data: make([]byte, arrayHeader, arrayHeader+rows*(4+width)), oid: oid}
}

func (s *spare) uuids(rows int) *column     { return s.column(pgtype.UUIDOID, rows, 16) }
func (s *spare) bigints(rows int) *column   { return s.column(pgtype.Int8OID, rows, 8) }
func (s *spare) ints(rows int) *column      { return s.column(pgtype.Int4OID, rows, 4) }
func (s *spare) smallints(rows int) *column { return s.column(pgtype.Int2OID, rows, 2) }
func (s *spare) places(rows int) *column    { return s.column(pgtype.TIDOID, rows, 6) }
func (s *spare) blobs(rows int) *column     { return s.column(pgtype.ByteaOID, rows, 96) }

func uuids(rows int) *column     { return newColumn(pgtype.UUIDOID, rows, 16) }
func bigints(rows int) *column   { return newColumn(pgtype.Int8OID, rows, 8) }
func ints(rows int) *column      { return newColumn(pgtype.Int4OID, rows, 4) }
func smallints(rows int) *column { return newColumn(pgtype.Int2OID, rows, 2) }
func bools(rows int) *column     { return newColumn(pgtype.BoolOID, rows, 1) }
func blobs(rows int) *column     { return newColumn(pgtype.ByteaOID, rows, 96) }
func texts(rows int) *column     { return newColumn(pgtype.TextOID, rows, 24) }

func (c *column) element(length int) {
	c.count++
	c.data = binary.BigEndian.AppendUint32(c.data, uint32(length))
}

func (c *column) uuid(v base.UUID) {
	c.element(16)
	c.data = append(c.data, v[:]...)
}

func (c *column) place(v place) {
	c.element(len(v))
	c.data = append(c.data, v[:]...)
}

func (c *column) bigint(v int64) {
	c.element(8)
	c.data = binary.BigEndian.AppendUint64(c.data, uint64(v))
}

func (c *column) time(v base.Time) { c.bigint(int64(v)) }

func (c *column) int(v int32) {
	c.element(4)
	c.data = binary.BigEndian.AppendUint32(c.data, uint32(v))
}

func (c *column) smallint(v int) {
	c.element(2)
	c.data = binary.BigEndian.AppendUint16(c.data, uint16(v))
}

func (c *column) bool(v bool) {
	c.element(1)
	c.data = append(c.data, boolByte(v))
}

// blob adds bytes; nil becomes null.
func (c *column) blob(v []byte) {
	if v == nil {
		c.count++
		c.nulls = true
		c.data = append(c.data, 0xff, 0xff, 0xff, 0xff)
		return
	}
	c.element(len(v))
	c.data = append(c.data, v...)
}

func (c *column) text(v string) {
	c.element(len(v))
	c.data = append(c.data, v...)
}

// argument ends the construction.
func (c *column) argument() []byte {
	head := c.data[:0]
	if c.count == 0 {
		head = binary.BigEndian.AppendUint32(head, 0) // dimensions
		head = binary.BigEndian.AppendUint32(head, 0)
		return binary.BigEndian.AppendUint32(head, c.oid)
	}
	head = binary.BigEndian.AppendUint32(head, 1)
	head = binary.BigEndian.AppendUint32(head, uint32(boolByte(c.nulls)))
	head = binary.BigEndian.AppendUint32(head, c.oid)
	head = binary.BigEndian.AppendUint32(head, c.count)
	binary.BigEndian.AppendUint32(head, 1) // lowest index
	return c.data
}

// arguments ends the construction of several columns.
func arguments(columns ...*column) [][]byte {
	values := make([][]byte, len(columns))
	for i, c := range columns {
		values[i] = c.argument()
	}
	return values
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// Single arguments.

func bigint(v int64) []byte   { return binary.BigEndian.AppendUint64(nil, uint64(v)) }
func integer(v int32) []byte  { return binary.BigEndian.AppendUint32(nil, uint32(v)) }
func smallint(v int16) []byte { return binary.BigEndian.AppendUint16(nil, uint16(v)) }
func boolean(v bool) []byte   { return []byte{boolByte(v)} }
func text(v string) []byte    { return []byte(v) }

// blob returns v, or an empty slice if v is nil.
func blob(v []byte) []byte {
	if v == nil {
		return []byte{}
	}
	return v
}

func uuidColumn(ids []base.UUID) []byte {
	c := uuids(len(ids))
	for _, id := range ids {
		c.uuid(id)
	}
	return c.argument()
}

func intColumn(values []int32) []byte {
	c := ints(len(values))
	for _, v := range values {
		c.int(v)
	}
	return c.argument()
}

func textColumn(values []string) []byte {
	c := texts(len(values))
	for _, v := range values {
		c.text(v)
	}
	return c.argument()
}

// smallintColumn returns null if there is nothing to filter by.
func smallintColumn[T ~uint8](values []T) []byte {
	if values == nil {
		return nil
	}
	c := smallints(len(values))
	for _, v := range values {
		c.smallint(int(v))
	}
	return c.argument()
}
