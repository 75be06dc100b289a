package postgres

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/store"
)

var errIndexEnd = errors.New("the index of the log ends elsewhere")

// indexStep is the step of the schema with the index of the log. Without it the index has no end, and readers read the log itself.
const indexStep = 7

// Index adds commits to the index of the log, in one transaction.
func (s *Store) Index(ctx context.Context, part store.IndexPart) error {
	if s.level.Load() < indexStep {
		return nil
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	t := &tx{s: s, lockWait: patient}
	defer func() { t.Rollback(ctx) }()
	opening, err := t.start(ctx)
	if err != nil {
		return err
	}
	moved := false
	if part.Incarnation != "" {
		opening.add("check_standing", nil, bigint(0), text(part.Incarnation))
	}
	opening.add("move_index", func(row) error {
		moved = true
		return nil
	}, bigint(part.From), bigint(part.To))
	if err := opening.run(ctx); isCode(err, staleCode) {
		return &store.Fault{Kind: store.Stale, Err: errOther}
	} else if err != nil {
		return fault(err)
	}
	if !moved {
		return &store.Fault{Kind: store.Stale, Err: errIndexEnd}
	}
	writing := s.trip(t.conn)
	if len(part.Mentions) > 0 {
		writing.add("put_mentions", nil, mentionColumns(part.Mentions)...)
	}
	writing.add("commit", nil)
	err = writing.run(ctx)
	return commitFault(err, writing.done+1 >= len(writing.asked))
}

func mentionColumns(mentions []store.Mention) [][]byte {
	n := len(mentions)
	era, subject, first, seqs := ints(n), uuids(n), bigints(n), texts(n)
	for _, mention := range mentions {
		mention.Eras(func(number int64, m store.Mention) {
			era.int(int32(number))
			subject.uuid(m.Subject)
			first.bigint(m.Seqs[0])
			seqs.text(joined(m.Seqs))
		})
	}
	return arguments(era, subject, first, seqs)
}

func joined(seqs []int64) string {
	var out strings.Builder
	for i, seq := range seqs {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(strconv.FormatInt(seq, 10))
	}
	return out.String()
}

// LogOf returns commits that name a subject. The end is read before them: what is indexed meanwhile is left out.
func (s *Store) LogOf(ctx context.Context, ask store.LogOf) (commits []store.Commit, end int64, err error) {
	if s.level.Load() < indexStep {
		return nil, 0, nil
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	statement := "log_of"
	if ask.Newest {
		statement = "newest_log_of"
	}
	err = s.alone(ctx, func(t *trip) {
		t.add("index_end", func(r row) error {
			end = r.bigint(0)
			return nil
		})
		if ask.Limit <= 0 {
			return
		}
		t.add(statement, func(r row) error {
			commits = append(commits, commitOf(r))
			return nil
		}, ask.Subject[:], bigint(ask.After), integer(int32(ask.Limit)), bigint(store.LogBytes))
	})
	if err != nil {
		return nil, 0, fault(err)
	}
	return slices.DeleteFunc(commits, func(c store.Commit) bool { return c.Seq > end }), end, nil
}
