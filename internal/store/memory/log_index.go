package memory

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/store"
)

// Index adds commits to the index of the log.
func (s *Store) Index(ctx context.Context, part store.IndexPart) error {
	return s.during(ctx, func() error {
		m := s.d.rows
		switch {
		case part.Incarnation != "" && part.Incarnation != m.name():
			return refuse(store.Stale, "read on incarnation %s, which is now %s", part.Incarnation, m.name())
		case part.From != m.indexed:
			return refuse(store.Stale, "the index ends at %d", m.indexed)
		}
		m.indexed = part.To
		for _, mention := range part.Mentions {
			m.mentions[mention.Subject] = append(slices.Clip(m.mentions[mention.Subject]), mention.Seqs...)
		}
		return nil
	})
}

// LogOf returns commits that name a subject.
func (s *Store) LogOf(ctx context.Context, ask store.LogOf) (commits []store.Commit, end int64, err error) {
	err = s.during(ctx, func() error {
		m := s.d.rows
		end = m.indexed
		seqs := m.mentions[ask.Subject]
		seqs = seqs[above(seqs, max(ask.After, m.logStart)):above(seqs, min(end, m.logStart+int64(len(m.log))))]
		if n := min(ask.Limit, len(seqs)); ask.Newest {
			seqs = seqs[len(seqs)-n:]
		} else {
			seqs = seqs[:n]
		}
		if ask.Newest {
			seqs = slices.Clone(seqs)
			slices.Reverse(seqs)
		}
		for i := 0; i < len(seqs) && !store.Full(commits, ask.Limit); i++ {
			commits = append(commits, m.log[seqs[i]-m.logStart-1].read())
		}
		if ask.Newest {
			slices.Reverse(commits)
		}
		return nil
	})
	return commits, end, err
}

// above returns the place of the first position above another.
func above(seqs []int64, seq int64) int {
	at, found := slices.BinarySearch(seqs, seq)
	if found {
		at++
	}
	return at
}
