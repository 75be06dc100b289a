package postgres

import (
	"encoding/binary"
	"errors"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// row is one result row in binary form. Its bytes are valid until the next row is read.
type row [][]byte

func (r row) bigint(i int) int64   { return int64(binary.BigEndian.Uint64(r[i])) }
func (r row) int(i int) int32      { return int32(binary.BigEndian.Uint32(r[i])) }
func (r row) smallint(i int) int   { return int(int16(binary.BigEndian.Uint16(r[i]))) }
func (r row) bool(i int) bool      { return r[i][0] != 0 }
func (r row) text(i int) string    { return string(r[i]) }
func (r row) null(i int) bool      { return r[i] == nil }
func (r row) time(i int) base.Time { return base.Time(r.bigint(i)) }

func (r row) uuid(i int) (v base.UUID) {
	copy(v[:], r[i])
	return v
}

func (r row) place(i int) (v place) {
	copy(v[:], r[i])
	return v
}

// blob copies the bytes; null becomes nil.
func (r row) blob(i int) []byte {
	if r[i] == nil {
		return nil
	}
	return append(make([]byte, 0, len(r[i])), r[i]...)
}

// id assembles an id.
func (r row) id(uuid, n int) base.ID { return base.ID{N: uint8(r.smallint(n)), UUID: r.uuid(uuid)} }

var errArray = errors.New("an array in an unexpected form")

// elements splits a one-dimensional array.
func elements(data []byte) ([][]byte, error) {
	if len(data) < 12 {
		return nil, errArray
	}
	if binary.BigEndian.Uint32(data) == 0 {
		return nil, nil
	}
	if len(data) < arrayHeader || binary.BigEndian.Uint32(data) != 1 {
		return nil, errArray
	}
	count := binary.BigEndian.Uint32(data[12:])
	data = data[arrayHeader:]
	if uint64(count)*4 > uint64(len(data)) {
		return nil, errArray
	}
	list := make([][]byte, count)
	for i := range list {
		if len(data) < 4 {
			return nil, errArray
		}
		n := int32(binary.BigEndian.Uint32(data))
		if data = data[4:]; n < 0 || int(n) > len(data) {
			return nil, errArray
		}
		list[i], data = data[:n], data[n:]
	}
	return list, nil
}

// texts reads an array of texts or bytes; an empty one becomes nil.
func (r row) texts(i int) ([]string, error) {
	list, err := elements(r[i])
	if err != nil || len(list) == 0 {
		return nil, err
	}
	out := make([]string, len(list))
	for at, one := range list {
		out[at] = string(one)
	}
	return out, nil
}

// uuids reads an array of uuids; an empty one becomes nil.
func (r row) uuids(i int) ([]base.UUID, error) {
	list, err := elements(r[i])
	if err != nil || len(list) == 0 {
		return nil, err
	}
	out := make([]base.UUID, len(list))
	for at, one := range list {
		copy(out[at][:], one)
	}
	return out, nil
}

// bools reads an array of booleans.
func (r row) bools(i int) ([]bool, error) {
	list, err := elements(r[i])
	out := make([]bool, len(list))
	for at, one := range list {
		out[at] = one[0] != 0
	}
	return out, err
}
