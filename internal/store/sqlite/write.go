package sqlite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// outcome is the result of a transaction besides its rows.
type outcome struct {
	seq        int64       // position of its events in the log, 0 without events
	dictionary *dictionary // nil if it changed none
}

// reborn refuses changes that were decided on another incarnation of the file.
func (s *Store) reborn(decidedOn string) error {
	return &store.Fault{Kind: store.Stale, Err: fmt.Errorf("decided on incarnation %s of the file, which is now %s", decidedOn, s.incarnation)}
}

// apply writes the changes in the transaction on c. Rows are dropped before others are added, so that a row may move within one transaction.
func (s *Store) apply(c *conn, ch *store.Changes) (out outcome, err error) {
	if ch.Incarnation != "" && ch.Incarnation != s.incarnation {
		return out, s.reborn(ch.Incarnation)
	}
	ch.Draw = rand.Uint32() //nolint:gosec // G404: it distinguishes commits; predicting it gives no advantage
	if version := s.dictionary.Load().Version; ch.Dictionary != 0 && ch.Dictionary != version {
		return out, &store.Fault{Kind: store.Stale, Err: fmt.Errorf("decided by dictionary %d, which is now %d", ch.Dictionary, version)}
	}
	for _, part := range [...]func() error{
		func() error { return s.writeKeys(c, ch) },
		func() error { return dropInbox(c, ch.DropInbox) },
		func() error { return s.writeExecutions(c, ch) },
		func() error { return writeHistory(c, ch) },
		func() error { return checkAssumed(c, ch) },
		func() error { return writeQueue(c, ch) },
		func() error { return writeTimers(c, ch) },
		func() error { return writeCounters(c, ch) },
		func() error { return writeDocs(c, ch) },
		func() error { return remove(c, ch.Remove, "remove docs") },
		func() error { return remove(c, ch.Strip, "strip docs", kindList(ch.StripLeaves)) },
		func() (err error) { out.seq, err = s.appendToLog(c, ch.Events); return err },
		func() (err error) { out.dictionary, err = s.writeDictionary(c, ch); return err },
	} {
		if err := part(); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (s *Store) writeKeys(c *conn, ch *store.Changes) error {
	for i := range ch.DropKeys {
		key := &ch.DropKeys[i]
		if err := c.run("drop expired key", int64(key.Space), key.Namespace, key.Text, int64(s.now())); err != nil {
			return err
		}
	}
	for i := range ch.ReplaceKeys {
		if err := writeKey(c, "replace key", &ch.ReplaceKeys[i]); err != nil {
			return err
		}
	}
	for i := range ch.NewKeys {
		if err := writeKey(c, "insert key", &ch.NewKeys[i]); err != nil {
			return err
		}
	}
	return nil
}

func writeKey(c *conn, how string, k *store.KeyRow) error {
	return c.run(how, int64(k.Space), k.Namespace, k.Text, k.Fingerprint, k.ID.UUID[:], int64(k.ID.N), int64(k.ExpiresAt))
}

// longInput is the size from which an input is stored in a row of its own: SQLite rewrites a whole row with every change.
const longInput = 1024

func (s *Store) writeExecutions(c *conn, ch *store.Changes) error {
	for _, x := range ch.Insert {
		if err := insertExecution(c, x, ch.Draw); err != nil {
			return err
		}
	}
	for _, changed := range [...][]*core.Execution{ch.Update, ch.Renew} {
		for _, x := range changed {
			if err := updateExecution(c, x, ch.Draw); err != nil {
				return err
			}
		}
	}
	for _, x := range ch.Assume {
		if err := updateRemembered(c, x, ch.Draw); err != nil {
			return err
		}
	}
	if ch.AssumeUntil != 0 && s.now() >= ch.AssumeUntil {
		return &store.Fault{Kind: store.Conflict, Err: errors.New("a timer of a remembered execution is due")}
	}
	return nil
}

// checkAssumed refuses the changes unless queues and docs are as the caller assumes. Lanes cannot change meanwhile: there is one transaction at a
// time.
func checkAssumed(c *conn, ch *store.Changes) error {
	for _, q := range ch.AssumeEmpty {
		err := c.each("pick", func(row) error {
			return &store.Fault{Kind: store.Conflict, Err: fmt.Errorf("the queue of class %d is not empty", q.Class)}
		}, int64(q.Class), int64(q.Block), q.Floor, int64(1))
		if err != nil {
			return err
		}
	}
	for i := range ch.AssumeDocs {
		doc, found := &ch.AssumeDocs[i], false
		err := c.each("load doc", func(r row) error {
			found = bytes.Equal(r.Show(0), doc.StoredBody())
			return nil
		}, doc.Owner, int64(doc.Kind), doc.Key)
		if err == nil && !found {
			err = &store.Fault{Kind: store.Conflict, Err: errors.New("a small record is not what was assumed")}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func updateExecution(c *conn, x *core.Execution, draw uint32) error {
	p := store.ChangedRowOf(x)
	n, err := c.change("update execution", int64(draw), int64(p.Status), int64(p.Reason), int64(p.Next), p.Order, p.State, x.ID.UUID[:])
	if err == nil && n != 1 {
		err = &store.Fault{Kind: store.Broken, Err: fmt.Errorf("execution %s is changed, but it is not there", x.ID)}
	}
	return err
}

// updateRemembered changes a row that this transaction has not loaded.
func updateRemembered(c *conn, x *core.Execution, draw uint32) error {
	p := store.ChangedRowOf(x)
	n, err := c.change("update execution as remembered",
		int64(draw), int64(p.Status), int64(p.Reason), int64(p.Next), p.Order, p.State, x.ID.UUID[:], p.Version)
	if err == nil && n != 1 {
		err = &store.Fault{Kind: store.Conflict, Err: fmt.Errorf("execution %s is no longer as remembered", x.ID)}
	}
	return err
}

func insertExecution(c *conn, x *core.Execution, draw uint32) error {
	p := store.RowOf(x)
	inline := p.Input
	if len(inline) > longInput {
		inline = nil
	}
	err := c.run("insert execution", x.ID.UUID[:], int64(p.N), int64(p.Class), store.NextVersion(p.Version, draw), int64(p.Status), int64(p.Reason), int64(p.Next), p.Order, p.State, p.Origin, inline)
	switch {
	case err != nil || inline != nil:
		return err
	case p.Input == nil:
		return &store.Fault{Kind: store.Broken, Err: fmt.Errorf("execution %s is inserted without its input", x.ID)}
	}
	return c.run("insert input", x.ID.UUID[:], p.Input)
}

func writeHistory(c *conn, ch *store.Changes) error {
	for i := range ch.History {
		record := &ch.History[i]
		how := "insert lease"
		if record.Replaces {
			how = "replace lease"
		}
		r := store.HistoryRowOf(record)
		if err := c.run(how, r.ID[:], r.Epoch, r.LeaseID[:], int64(r.EndedAt), int64(r.End), r.Body, r.Result); err != nil {
			return err
		}
	}
	for i := range ch.Patches {
		patch := &ch.Patches[i]
		if err := c.run("patch lease", int64(patch.State), store.EncodePatch(*patch), patch.ExecutionID.UUID[:], patch.Epoch); err != nil {
			return err
		}
	}
	for i := range ch.DropHistory {
		ref := &ch.DropHistory[i]
		if err := c.run("drop lease", ref.ID[:], ref.Epoch); err != nil {
			return err
		}
	}
	return nil
}

func writeQueue(c *conn, ch *store.Changes) error {
	for i := range ch.Dequeue {
		q := &ch.Dequeue[i]
		if err := c.run("dequeue", int64(q.Class), int64(q.Block), q.Order, q.ID[:]); err != nil {
			return err
		}
	}
	for i := range ch.Enqueue {
		q := &ch.Enqueue[i]
		if err := c.run("enqueue", int64(q.Class), int64(q.Block), q.Order, q.ID[:]); err != nil {
			return err
		}
	}
	return nil
}

func writeCounters(c *conn, ch *store.Changes) error {
	for key, difference := range ch.Counters {
		if difference == 0 {
			continue
		}
		err := c.run("add to counter", key, difference)
		if err == nil && difference < 0 {
			err = c.run("drop empty counter", key)
		}
		if err != nil {
			return err
		}
	}
	for key, most := range ch.AssumeCounters {
		err := c.each("load counter", func(r row) error {
			if r.Int(0) > most {
				return &store.Fault{Kind: store.Conflict, Err: fmt.Errorf("more than %d are counted under %q", most, key)}
			}
			return nil
		}, key)
		if err != nil {
			return err
		}
	}
	return nil
}

func writeDocs(c *conn, ch *store.Changes) error {
	for i := range ch.DropDocs {
		d := &ch.DropDocs[i]
		if err := c.run("drop doc", d.Owner, int64(d.Kind), d.Key); err != nil {
			return err
		}
	}
	for i := range ch.PutDocs {
		if err := writeDoc(c, "put doc", &ch.PutDocs[i]); err != nil {
			return err
		}
	}
	for i := range ch.NewDocs {
		if err := writeDoc(c, "insert doc", &ch.NewDocs[i]); err != nil {
			return err
		}
	}
	return nil
}

func writeDoc(c *conn, how string, d *store.Doc) error {
	return c.run(how, d.Owner, int64(d.Kind), d.Key, d.StoredBody(), d.Data, int64(d.ExpiresAt))
}

// dropInbox removes submissions, so that executions can have their ids.
func dropInbox(c *conn, ids []base.UUID) error {
	for i := range ids {
		if err := errors.Join(c.run("drop inbox", ids[i][:]), c.run("free id", ids[i][:])); err != nil {
			return err
		}
	}
	return nil
}

// kindList encodes kinds of docs for a statement.
func kindList(kinds []store.DocKind) string {
	list := make([]int, len(kinds))
	for i, kind := range kinds {
		list[i] = int(kind)
	}
	text, _ := json.Marshal(list)
	return string(text)
}

// remove deletes the rows of executions, and those of their docs that the statement selects. The queue comes first: the place of its row is found
// through the execution.
func remove(c *conn, ids []base.UUID, docs string, leaves ...any) error {
	for i := range ids {
		for _, statement := range [...]string{
			"remove from queues", "remove execution", "remove input", "remove leases", "remove search", "remove search tags",
		} {
			if err := c.run(statement, ids[i][:]); err != nil {
				return err
			}
		}
		if err := c.run(docs, append([]any{ids[i].String()}, leaves...)...); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) appendToLog(c *conn, events []core.Event) (seq int64, err error) {
	if len(events) == 0 {
		return 0, nil
	}
	if err := c.run("append to log", int64(s.now()), store.EncodeCommit(events)); err != nil {
		return 0, err
	}
	return c.raw.LastInsertID(), nil
}

func (s *Store) writeDictionary(c *conn, ch *store.Changes) (*dictionary, error) {
	for i := range ch.Lanes {
		lane := &ch.Lanes[i]
		n, err := c.change("update lane", string(core.EncodeLaneSettings(lane.Settings)), lane.Revision, int64(lane.Since), flag(lane.Counting), lane.RegisteredBy, int64(lane.ID))
		if err == nil && n != 1 {
			err = &store.Fault{Kind: store.Broken, Err: fmt.Errorf("lane %d is changed, but it is not there", lane.ID)}
		}
		if err != nil {
			return nil, err
		}
	}
	if !ch.NewLogID.IsZero() {
		if err := c.run("set log id", ch.NewLogID[:]); err != nil {
			return nil, err
		}
	}
	for _, class := range ch.RetireClasses {
		if err := c.run("retire class", int64(class.Since), int64(class.ID)); err != nil {
			return nil, err
		}
	}
	for _, class := range ch.DropClasses {
		if err := c.run("drop class", int64(class.ID), int64(class.Since)); err != nil {
			return nil, err
		}
	}
	if !ch.RaisesDictionary() {
		return nil, nil
	}
	return s.raise(c)
}
