package sqlite

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// TakeDue returns due timers and moves them by hide. The hiding need not survive a power loss: after one, no process is handling them.
func (s *Store) TakeDue(ctx context.Context, limit int, hide time.Duration, except ...store.TimerKind) ([]store.Timer, error) {
	others := numbersOf(except)
	due, err := s.anyDue(ctx, others)
	if err != nil || !due {
		return nil, err
	}
	var timers []store.Timer
	err = s.write(ctx, eventually, func(c *conn) error {
		now := s.now()
		timers, err = loadDue(c, now, limit, others)
		if err != nil {
			return err
		}
		for i := range timers {
			if err := c.run("hide timer", int64(now.Add(hide.Milliseconds())), timers[i].Seq); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return timers, nil
}

// HideTimers hides timers that are still being handled.
func (s *Store) HideTimers(ctx context.Context, timers []store.Timer, hide time.Duration) error {
	return s.write(ctx, eventually, func(c *conn) error {
		until := int64(s.now().Add(hide.Milliseconds()))
		for i := range timers {
			if err := c.run("keep timer hidden", until, timers[i].Seq); err != nil {
				return err
			}
		}
		return nil
	})
}

// anyDue checks for due timers on a reading connection, so that writers do not wait for a query that finds nothing.
func (s *Store) anyDue(ctx context.Context, except string) (due bool, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.each("any due timer", func(row) error {
			due = true
			return nil
		}, int64(s.now()), except)
	})
	return due, err
}

// numbersOf encodes values as a JSON array of their numbers.
func numbersOf[T ~uint8 | ~int32](values []T) string {
	text := []byte{'['}
	for i, v := range values {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, int64(v), 10)
	}
	return string(append(text, ']'))
}

// TimersAhead returns timers that are due after from, and by to.
func (s *Store) TimersAhead(ctx context.Context, from, to base.Time, after int64, limit int) (ahead []store.Timer, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.each("timers ahead", readTimers(&ahead), int64(from), int64(to), after, int64(limit))
	})
	return ahead, err
}

func loadDue(c *conn, now base.Time, limit int, except string) (timers []store.Timer, err error) {
	err = c.each("due timers", readTimers(&timers), int64(now), except, int64(limit))
	return timers, err
}

// readTimers returns a function that appends the timers that are read to a list.
func readTimers(list *[]store.Timer) func(r row) error {
	return func(r row) error {
		timer := store.Timer{Seq: r.Int(0), At: r.time(1), Kind: store.TimerKind(r.Int(2)), Tries: int(r.Int(5))}
		timer.IDs = splitIDs(r.Bytes(3))
		if text := r.Text(4); text != "" {
			if err := json.Unmarshal([]byte(text), &timer.Texts); err != nil {
				return base.Errorf(base.CodeCorruption, "the stored texts of timer %d cannot be read: %w", timer.Seq, err)
			}
		}
		*list = append(*list, timer)
		return nil
	}
}

func writeTimers(c *conn, ch *store.Changes) error {
	for i := range ch.DropTimers {
		if err := c.run("drop timer", ch.DropTimers[i].Seq); err != nil {
			return err
		}
	}
	for i := range ch.AddTimers {
		timer := &ch.AddTimers[i]
		texts := ""
		if len(timer.Texts) > 0 {
			encoded, _ := json.Marshal(timer.Texts) // texts always marshal
			texts = string(encoded)
		}
		err := c.run("add timer", int64(timer.At), int64(timer.Kind), joinIDs(timer.IDs), optionalText(texts))
		if err != nil {
			return err
		}
	}
	return nil
}

// joinIDs concatenates the raw bytes of ids.
func joinIDs(ids []base.UUID) []byte {
	if len(ids) == 0 {
		return nil
	}
	data := make([]byte, 0, len(ids)*len(base.UUID{}))
	for i := range ids {
		data = append(data, ids[i][:]...)
	}
	return data
}

func splitIDs(data []byte) []base.UUID {
	const size = len(base.UUID{})
	if len(data) < size {
		return nil
	}
	ids := make([]base.UUID, len(data)/size)
	for i := range ids {
		copy(ids[i][:], data[i*size:])
	}
	return ids
}

// Poll returns everything that an idle process needs to know.
func (s *Store) Poll(ctx context.Context, ask store.PollAsk) (store.PollAnswer, error) {
	answer := store.PollAnswer{Now: s.now(), Incarnation: s.incarnation, Queues: make([]bool, len(ask.Queues))}
	err := s.read(ctx, func(c *conn) error {
		err := c.each("poll", func(r row) error {
			answer.Dictionary, answer.NextTimer = r.Int(0), r.time(1)
			answer.LogStart, answer.LogEnd, answer.Projected = r.Int(2)-1, r.Int(3), r.Int(4)
			if r.IsNull(2) {
				answer.LogStart = answer.LogEnd // no row is left
			}
			answer.LogNewest = answer.LogEnd // one writer: numbers are committed in their order
			answer.Inbox = r.Int(5) != 0
			for i, there := range []byte(r.Text(6)) {
				answer.Queues[i] = there == '1'
			}
			return nil
		}, queuesOf(ask.Queues))
		if err != nil {
			return err
		}
		var there store.Loaded
		err = loadDocs(c, ask.Docs, &there)
		for _, ref := range ask.Docs {
			_, found := there.Docs[ref]
			answer.Docs = append(answer.Docs, found)
		}
		return err
	})
	if err != nil {
		return store.PollAnswer{}, err
	}
	return answer, nil
}

// queuesOf encodes class, block and order key of each question as a JSON array.
func queuesOf(asked []store.Before) string {
	text := []byte{'['}
	for i, q := range asked {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, '[')
		text = strconv.AppendInt(text, int64(q.Class), 10)
		text = append(text, ',')
		text = strconv.AppendInt(text, int64(q.Block), 10)
		text = append(text, ',')
		text = strconv.AppendInt(text, q.Order, 10)
		text = append(text, ']')
	}
	return string(append(text, ']'))
}
