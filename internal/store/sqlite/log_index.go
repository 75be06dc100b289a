package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/store"
)

// indexSchema is the schema with the index of the log. In a file that is used with an older one (migrate=off) the index has no end, and readers read
// the log itself.
const indexSchema = 4

// Index adds commits to the index of the log. Like Project it need not survive a power loss.
func (s *Store) Index(ctx context.Context, part store.IndexPart) error {
	if part.Incarnation != "" && part.Incarnation != s.incarnation {
		return s.reborn(part.Incarnation)
	}
	if s.info.Schema < indexSchema {
		return nil
	}
	return s.write(ctx, eventually, func(c *conn) error {
		moved, err := c.change("move index", part.To, part.From)
		if err != nil {
			return err
		}
		if moved != 1 {
			return &store.Fault{Kind: store.Stale, Err: fmt.Errorf("the index does not end at %d", part.From)}
		}
		for _, mention := range part.Mentions {
			mention.Eras(func(era int64, m store.Mention) {
				if err == nil {
					err = c.run("put mention", era, m.Subject[:], m.Seqs[0], store.EncodeSeqs(m.Seqs))
				}
			})
		}
		return err
	})
}

// LogOf returns commits that name a subject.
func (s *Store) LogOf(ctx context.Context, ask store.LogOf) (commits []store.Commit, end int64, err error) {
	if s.info.Schema < indexSchema {
		return nil, 0, nil
	}
	err = s.read(ctx, func(c *conn) error {
		first := int64(0)
		if err := c.each("index end", func(r row) error {
			end, first = r.Int(0), r.Int(1)
			return nil
		}); err != nil || ask.Limit <= 0 {
			return err
		}
		ask.After = max(ask.After, first-1)
		seqs, err := mentions(c, ask, end)
		if err != nil {
			return err
		}
		if ask.Newest {
			slices.Reverse(seqs)
		}
		for i := 0; i < len(seqs) && !store.Full(commits, ask.Limit); i++ {
			if err := c.each("read commit", func(r row) error {
				commits = append(commits, commitOf(r))
				return nil
			}, seqs[i]); err != nil {
				return err
			}
		}
		if ask.Newest {
			slices.Reverse(commits)
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	return commits, end, nil
}

// mentions reads the positions that are asked for, up to the end of the index, ascending.
func mentions(c *conn, ask store.LogOf, end int64) (found []int64, err error) {
	first, last := store.Era(ask.After+1), store.Era(end)
	for i := range max(0, last-first+1) {
		left := ask.Limit - len(found)
		switch {
		case left <= 0:
			return found, nil
		case ask.Newest:
			seqs, err := mentionsIn(c, "newest mentions", last-i, ask, left)
			if err != nil {
				return nil, err
			}
			found = slices.Concat(seqs[max(0, len(seqs)-left):], found)
		default:
			seqs, err := mentionsIn(c, "mentions", first+i, ask, left)
			if err != nil {
				return nil, err
			}
			found = append(found, seqs[:min(left, len(seqs))]...)
		}
	}
	return found, nil
}

// mentionsIn reads at least so many positions of one era, if there are so many, ascending.
func mentionsIn(c *conn, statement string, era int64, ask store.LogOf, limit int) (found []int64, err error) {
	err = c.each(statement, func(r row) error {
		seqs, err := store.DecodeSeqs(r.Bytes(1))
		found = append(found, slices.DeleteFunc(seqs, func(seq int64) bool { return seq <= ask.After })...)
		return err
	}, era, ask.Subject[:], ask.After+1, int64(limit)+1)
	slices.Sort(found)
	return found, err
}
