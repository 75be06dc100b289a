package admin

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Rollback describes acknowledged commits that the database has lost.
type Rollback struct {
	From        int64     `json:"from"` // the newest position of the event log that was known
	To          int64     `json:"to"`   // where the log ended when that was noticed
	Incarnation string    `json:"incarnation"`
	At          base.Time `json:"at"` // when it was noticed
}

// Rollbacks is the record of all of them. It is a rule, so that every process reads the dictionary, and with it the new identity of the
// log.
type Rollbacks struct {
	Seen         []Rollback `json:"seen"` // the newest last
	Acknowledged int64      `json:"acknowledged"`
	Count        int64      `json:"count"`
}

// rollbacksKept is how many are recorded.
const rollbacksKept = 32

// RollbackRef names the record of lost commits.
var RollbackRef = store.DocRef{Kind: docRollbacks, Key: "store"}

// DecodeRollbacks reads the record of lost commits; nil: none are known. Codes: corruption.
func DecodeRollbacks(doc *store.Doc) (r Rollbacks, err error) {
	if doc == nil {
		return r, nil
	}
	if err := json.Unmarshal(doc.Body, &r); err != nil {
		return r, txn.Corrupt("record of lost commits", err)
	}
	return r, nil
}

// Open returns those that are not acknowledged.
func (r *Rollbacks) Open() []Rollback {
	return r.Seen[max(0, len(r.Seen)-int(r.Count-r.Acknowledged)):]
}

// recordLoss gives the log a new identity and writes an audit row about the loss, unless another process has done so.
func (e *Admin) recordLoss(ctx context.Context, incarnation string, from, to int64) error {
	loss := &loss{Rollback: Rollback{From: from, To: to, Incarnation: incarnation}}
	if err := e.Do(ctx, loss); err != nil {
		return err
	}
	e.Cfg.Logger.Error("the database came back without commits that were acknowledged", "lost_from", from, "lost_to", to, "incarnation", incarnation)
	e.RulesChanged()
	return nil
}

// loss is the command of recordLoss.
type loss struct{ Rollback }

func (*loss) Name() string { return "store.rolled_back" }

func (*loss) Want(w *store.Want, _ bool) {
	w.Docs = append(w.Docs, RollbackRef)
	w.LockDocs = true
}

// By returns the engine, which has no bound.
func (*loss) By() txn.Caller { return txn.EngineCaller }

func (*loss) Chains(*txn.Tx) []string { return []string{keyring.Everywhere} }

func (l *loss) Decide(u *txn.Tx) error {
	if u.Since != l.Incarnation {
		return txn.ErrReborn
	}
	known, err := DecodeRollbacks(u.Doc(RollbackRef))
	if err != nil {
		return err
	}
	if slices.ContainsFunc(known.Seen, func(r Rollback) bool { return r.Incarnation == l.Incarnation }) {
		return nil
	}
	l.At = u.Now
	known.Seen = append(known.Seen, l.Rollback)
	known.Seen = known.Seen[max(0, len(known.Seen)-rollbacksKept):]
	known.Count++
	body, _ := json.Marshal(known)
	u.PutOrAdd(store.Doc{DocRef: RollbackRef, Body: body})
	u.Changes.NewLogID = u.Engine.Mint()
	Audit(u, txn.EngineCaller, core.AuditRow{Namespace: keyring.Everywhere, Action: l.Name(), Entity: "store", EntityID: u.Engine.Info().Installation.String()}, nil, l.Rollback)
	return nil
}

// AcknowledgeRollbacks records that an operator has acknowledged the lost commits: the doctor's check no longer fails. It returns those that were
// open; none is no error.
func (e *Admin) AcknowledgeRollbacks(ctx context.Context, c txn.Caller, how AdminAction) ([]Rollback, error) {
	var answer []Rollback
	cmd := &AdminCommand{
		Op: "acknowledge_rollbacks", Caller: c, How: how, Ref: RollbackRef, Answer: &answer,
		Where: func(*store.Doc) ([]string, error) { return []string{keyring.Everywhere}, nil },
		Act: func(u *txn.Tx, doc *store.Doc) (AdminChange, error) {
			known, err := DecodeRollbacks(doc)
			if answer = slices.Clone(known.Open()); err != nil || len(answer) == 0 {
				return AdminChange{}, err
			}
			known.Acknowledged = known.Count
			body, _ := json.Marshal(known)
			return AdminChange{Body: body, Chain: keyring.Everywhere, Entity: "store", ID: e.Info().Installation.String(), After: answer}, nil
		},
	}
	err := e.Administer(ctx, cmd, "", nil)
	return txn.Answered(&answer, err)
}
