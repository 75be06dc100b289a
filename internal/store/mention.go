package store

import (
	"encoding/binary"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// eraBits is how many of the lower bits of a position are not part of its era.
const eraBits = 20

// Era returns the era of a position of the log. Rows of the index hold positions of one era, so that they can be dropped with the log.
func Era(seq int64) int64 { return seq >> eraBits }

// Eras splits the mention into one for each era of its positions.
func (m Mention) Eras(each func(era int64, part Mention)) {
	for from := 0; from < len(m.Seqs); {
		to, era := from+1, Era(m.Seqs[from])
		for to < len(m.Seqs) && Era(m.Seqs[to]) == era {
			to++
		}
		each(era, Mention{m.Subject, m.Seqs[from:to]})
		from = to
	}
}

// EncodeSeqs encodes ascending positions as the first and the differences.
func EncodeSeqs(seqs []int64) []byte {
	out := make([]byte, 0, binary.MaxVarintLen64+2*len(seqs))
	last := int64(0)
	for _, seq := range seqs {
		out = binary.AppendUvarint(out, uint64(seq-last))
		last = seq
	}
	return out
}

// DecodeSeqs reads the output of EncodeSeqs. Unreadable bytes are code corruption.
func DecodeSeqs(data []byte) (seqs []int64, err error) {
	last := int64(0)
	for len(data) > 0 {
		step, n := binary.Uvarint(data)
		if n <= 0 || int64(step) <= 0 || last+int64(step) <= last {
			return nil, base.Errorf(base.CodeCorruption, "a row of the index of the event log cannot be read")
		}
		last += int64(step)
		seqs, data = append(seqs, last), data[n:]
	}
	return seqs, nil
}
