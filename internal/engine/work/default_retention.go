package work

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// retentionRef names the record of the default retention.
var retentionRef = store.DocRef{Kind: docRetention}

// startRetention lets a default retention that is shorter than it was reach what has ended already (L139).
func (e *Work) startRetention(ctx context.Context) error {
	if e.Cfg.NoTimers {
		return nil
	}
	docs, err := e.ReadDocs(ctx, retentionRef)
	if err != nil {
		return err
	}
	doc, known := docs[retentionRef]
	if now, _ := json.Marshal(e.Cfg.Retention); known && bytes.Equal(doc.Body, now) || !known && e.Cfg.Retention.Same(core.DefaultRetention()) {
		return nil
	}
	return e.Do(ctx, &setRetention{e.Cfg.Retention})
}

// setRetention notes the default retention that is in force.
type setRetention struct{ now core.RetentionByStatus }

func (s *setRetention) Name() string { return "set_retention" }

func (s *setRetention) Want(w *store.Want, _ bool) {
	w.Docs = append(w.Docs, retentionRef)
	w.LockDocs = true
}

func (s *setRetention) Decide(u *txn.Tx) error {
	old := core.DefaultRetention()
	if doc := u.Doc(retentionRef); doc != nil {
		old = core.RetentionByStatus{} // for ever, if it cannot be read
		_ = json.Unmarshal(doc.Body, &old)
	}
	if s.now.Same(old) {
		return nil // another process was faster
	}
	body, _ := json.Marshal(s.now)
	u.PutOrAdd(store.Doc{DocRef: retentionRef, Body: body})
	if s.now.Shortens(old, core.RetentionByStatus{}) {
		u.AddTask(TaskRetireAll, TaskArgs{Retention: &old, Default: &s.now})
	}
	return nil
}
