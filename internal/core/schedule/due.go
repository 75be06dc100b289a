package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Jitter returns by how much the moments of a schedule are late on purpose (T20): a fixed part of jitterMS that follows from the id.
func Jitter(id base.UUID, jitterMS base.Millis) base.Millis {
	if jitterMS <= 0 {
		return 0
	}
	sum := sha256.Sum256(append([]byte("ff-jitter"), id[:]...))
	part, _ := bits.Mul64(uint64(jitterMS), binary.BigEndian.Uint64(sum[:8]))
	return base.Millis(part)
}

// dueBefore returns when a moment is due whose next one is known; next is zero if there is none.
func dueBefore(m, next base.Time, jitter base.Millis) base.Time {
	if next != 0 {
		jitter = min(jitter, next.Sub(m)-1)
	}
	return m.Add(jitter)
}

// due returns when a moment is due.
func (s *Spec) due(m base.Time, jitter base.Millis) base.Time {
	if jitter == 0 {
		return m
	}
	next, _ := s.Next(m)
	return dueBefore(m, next, jitter)
}

// count returns the number of moments m with from <= m < to, at most most+1. A range that takes too long to look through counts as one with more.
func (s *Spec) count(from, to base.Time, most int) int {
	n := 0
	for w, end := s.walk(ceilSecond(from)), ceilSecond(to); n <= most; n++ {
		m, ok := w.next()
		if w.spent() && !ok {
			return most + 1
		}
		if !ok || m >= end {
			break
		}
	}
	return n
}
