package limits

import (
	"context"
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// A quota or budget that is not needed is removed in two commits (S38, B5). The first marks it: that creates another version of the dictionary, so
// that submits which were decided before are decided again and refused. Only then the references to it are counted, and the second commit removes
// it together with the mark. If it is needed, only the mark is removed.

// removalMark keeps submits from naming what is being removed.
type removalMark struct {
	Token base.UUID `json:"token"` // of the call that checks whether it is needed
	key   string
}

// removalFor bounds how long a mark is kept whose process has ended: follow-up work removes it.
const removalFor = base.Minute

func removalRef(key string) store.DocRef { return store.DocRef{Kind: docRemoval, Key: key} }

func quotaKey(id string) string { return "quota:" + id }

// whileMarked runs do while no new reference to what has the key can appear. If do removes that, it removes the mark with it.
func (e *Admission) whileMarked(ctx context.Context, key string, do func(mark *removalMark) error) error {
	mark, err := e.MarkRemoval(ctx, key)
	if err != nil {
		return err
	}
	err = do(mark)
	// It is removed already if do removed it. If this fails, follow-up work does it.
	_ = e.unmark(e.Background(), key, mark.Token)
	return err
}

// MarkRemoval begins the removal of what has the key: from now on no new reference to it can appear.
func (e *Admission) MarkRemoval(ctx context.Context, key string) (*removalMark, error) {
	mark := &removalMark{key: key, Token: e.Mint()}
	return mark, e.Do(ctx, &setMark{mark})
}

// setMark is a mark on its way.
type setMark struct{ mark *removalMark }

func (*setMark) Name() string { return "mark_removal" }

func (s *setMark) Want(w *store.Want, _ bool) {
	w.Docs, w.LockDocs = append(w.Docs, removalRef(s.mark.key)), true
}

// Decide replaces a mark that exists already: it may come from a call that never ended. If that call is still running, it finds another mark, and
// removes nothing.
func (s *setMark) Decide(u *txn.Tx) error {
	body, _ := json.Marshal(s.mark)
	u.PutOrAdd(store.Doc{DocRef: removalRef(s.mark.key), Body: body})
	u.AddTaskAt(taskUnmark, TaskArgs{Rule: s.mark.key, Token: s.mark.Token}, u.Now.Add(removalFor))
	return nil
}

// take removes the mark in the transaction that removes what it stands for. A nil mark asks for nothing.
func (m *removalMark) take(u *txn.Tx) error {
	if m == nil {
		return nil
	}
	if !m.stands(u.Doc(removalRef(m.key))) {
		return beingRemoved(m.key) // it was kept too long, and there may be new references, or another call checks now
	}
	u.DropDoc(removalRef(m.key))
	return nil
}

// stands reports whether the record is this mark. One that cannot be read is not.
func (m *removalMark) stands(doc *store.Doc) bool {
	var kept removalMark
	return doc != nil && json.Unmarshal(doc.Body, &kept) == nil && kept.Token == m.Token
}

// unmark removes the mark of a call that is over.
func (e *Admission) unmark(ctx context.Context, key string, token base.UUID) error {
	mark := &removalMark{key: key, Token: token}
	return e.OnRefs(ctx, []store.DocRef{removalRef(key)}, func(u *txn.Tx, doc *store.Doc) error {
		if mark.stands(doc) {
			u.DropDoc(doc.DocRef)
		}
		return nil
	})
}

func beingRemoved(key string) error {
	return base.Errorf(base.CodeOverloaded, "%s is about to be deleted", key).WithRetryAfter(100)
}

// refs names the record of the mark; none, if it is nil.
func (m *removalMark) refs() []store.DocRef {
	if m == nil {
		return nil
	}
	return []store.DocRef{removalRef(m.key)}
}
