package work

import (
	"bytes"
	"cmp"
	"context"
	"errors"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Submit creates an execution, or recognises the one that the same submit created before (L79..L87).
type Submit struct {
	e                  *Work
	caller             txn.Caller
	S                  core.Submission
	Space              core.NamespaceSettings
	ID                 base.ID
	Refs               limits.References
	Budgets            limits.OwnBudgets // of the policy
	Class              *core.Class       // without a number: what the policy names was not found
	fingerprint        []byte            // of a submit with a key
	request            store.DocRef      // record of a submit that is repeatable by its call's key (U13); the id stands for that key
	requestFingerprint string            // of everything that such a call asks for
	show               bool              // the answer contains what was created
	notIngested        bool              // it is a duplicate of a submission that may be in the inbox: that is ingested first (L88)
	searched           bool              // the inbox was searched
	replayed           bool              // the call was answered before
	large              error             // why this process refuses such an input, unless it is a duplicate: it may have allowed more before
	Bound              error             // that, or why the namespace refuses such an input or class, unless it is a duplicate
	Later              bool              // its class is registered only once it is known that no other item of its call is refused
	taken              ReadyTaken        // counted against the namespace's bound of waiting executions
	answer             txn.SubmitAnswer
}

// Submit creates an execution.
func (e *Work) Submit(ctx context.Context, c txn.Caller, s core.Submission) (txn.SubmitAnswer, error) {
	return e.submit(ctx, c, s, false)
}

// SubmitAndShow creates an execution and shows it as it was created.
func (e *Work) SubmitAndShow(ctx context.Context, c txn.Caller, s core.Submission) (txn.SubmitAnswer, error) {
	return e.submit(ctx, c, s, true)
}

func (e *Work) submit(ctx context.Context, c txn.Caller, s core.Submission, show bool) (txn.SubmitAnswer, error) {
	cmd, err := e.newSubmit(ctx, c, s)
	if err != nil {
		return txn.SubmitAnswer{}, err
	}
	cmd.show = show
	if err := e.Do(ctx, cmd); err != nil {
		cmd.settled("", err)
		return txn.SubmitAnswer{}, err
	}
	cmd.settled(cmd.answer.Outcome, nil)
	if cmd.replayed {
		c.Again()
	}
	return cmd.answer, nil
}

// newSubmit checks the arguments and finds the class (L80).
func (e *Work) newSubmit(ctx context.Context, c txn.Caller, s core.Submission) (*Submit, error) {
	cmd, err := e.CheckSubmit(ctx, c, s, e.NewNames())
	if err != nil {
		return nil, err
	}
	if refused, err := e.Ready.admit(ctx, cmd); err != nil || refused[cmd] != nil {
		return nil, cmp.Or(err, refused[cmd])
	}
	if cmd.Unresolved() || cmd.Bound != nil {
		return cmd, nil
	}
	if cmd.Class, err = e.Dict.ClassOf(ctx, cmd.Refs.Class(&cmd.S)); err != nil {
		cmd.taken.Back()
		return nil, txn.PublicFault(err)
	}
	return cmd, nil
}

// CheckSubmit checks a submission, one of several whose new names are counted together. If names is nil, it was accepted before, and no bound of
// this process or of its namespace refuses it.
func (e *Work) CheckSubmit(ctx context.Context, c txn.Caller, s core.Submission, names *admin.NewNames) (*Submit, error) {
	var space core.NamespaceSettings
	settings := func() (_ core.NamespaceSettings, err error) {
		space, err = e.Spaces.Of(ctx, s.Namespace, e.Cfg.Clock.Now())
		if names == nil {
			space.MaxPayloadBytes = 0
		}
		return space, err
	}
	priority := s.Priority // as requested: what the namespace makes of it may change until the call is repeated
	if err := checkArguments(c, &s, settings); err != nil {
		return nil, err
	}
	cmd := &Submit{e: e, caller: c, S: s, Space: space}
	if names != nil {
		cmd.large = e.Cfg.Limits.CheckPayload("input", s.Input.Size)
	}
	cmd.Bound = cmp.Or(cmd.large, space.CheckInput(s.Input.Size))
	if s.IdempotencyKey != "" {
		cmd.fingerprint = s.Fingerprint()
	}
	if s.ID != nil {
		cmd.ID = s.ID.ID()
	} else {
		cmd.ID = base.IDOf(e.Mint())
	}
	if c.RequestKey != "" {
		cmd.request, cmd.requestFingerprint = txn.RequestRef(c, cmd.Name(), cmd.ID.Full(), c.RequestKey), submitFingerprint(&s, priority)
	}
	if err := cmd.refer(ctx, limits.RulesOf(e.Dict.Now()), space.DefaultQuotas, e.ReadDocs); err != nil {
		return nil, err
	}
	if err := cmd.planBudgets(ctx); err != nil {
		return nil, err
	}
	if cmd.Unresolved() {
		return cmd, nil
	}
	class := cmd.Refs.Class(&cmd.S)
	if cmd.Bound == nil {
		cmd.Bound = names.Check(space, &class)
	}
	if cmd.Bound != nil { // it must be known first whether it is a duplicate (L80)
		cmd.Class = &class
	}
	return cmd, nil
}

// submitFingerprint distinguishes two calls under one key. Unlike the fingerprint of the work (L83) it covers everything they ask for (W4).
func submitFingerprint(s *core.Submission, priority int) string {
	return txn.Fingerprint(s.Fingerprint(), s.IdempotencyKey, priority, s.Tags, s.DelayUntil, s.DelayMS, s.DeadlineAt)
}

// AnySize are the limits of payloads that some process may have accepted. Whether this one accepts them too matters only once it is known that
// they are not those of a repeat (L117).
var AnySize = base.Limits{MaxPayload: base.MaxPayloadSetting}

// checkArguments normalizes a submission and checks it by itself. Bounds of the process and of the namespace are not checked: they may have
// changed since the first try of a repeat.
func checkArguments(c txn.Caller, s *core.Submission, settings func() (core.NamespaceSettings, error)) error {
	if s.Creator == "" {
		s.Creator, s.CreatorKey = c.Principal, c.KeyID
	}
	if err := s.Normalize(AnySize); err != nil {
		return err
	}
	space, err := settings()
	if err != nil {
		return err
	}
	s.Priority = space.ClampPriority(s.Priority)
	return nil
}

// Name returns the name of the operation.
func (s *Submit) Name() string { return "submit" }

// Submits is the class of the new work.
func (s *Submit) Submits() *core.Class { return s.Class }

// WaitsOnce reports that it waits for a lock for one second at most (L82).
func (s *Submit) WaitsOnce() {}

// Subject is the execution that the command is about.
func (s *Submit) Subject() base.UUID { return s.answer.ID.UUID }

func (s *Submit) key() store.Key {
	return store.Key{Space: store.ExecutionKeys, Namespace: s.S.Namespace, Text: s.S.IdempotencyKey}
}

// keepClass makes sure that new executions may use the class: it may have been retired since it was looked up, and what the policy names may exist
// now, or be another budget. If it cannot be registered now, decide requests another try.
func (s *Submit) keepClass() {
	dict := s.e.Dict.Now()
	if s.Bound != nil || s.Later || s.Refs.Resolve(limits.RulesOf(dict), s.S.Namespace) != nil || s.hasClass(dict) {
		return
	}
	if class, err := s.e.Dict.ClassOf(s.e.Background(), s.Refs.Class(&s.S)); err == nil {
		s.Class = class
	}
}

// hasClass reports whether the class is one that the dictionary gives to such executions.
func (s *Submit) hasClass(dict *txn.Dictionary) bool {
	return dict.Gives(s.Class) && (len(s.Refs.Budgets) == 0 || s.Refs.Class(&s.S).Needs == s.Class.Needs)
}

// LostClass reports whether the class is not, or no longer, that of such executions, and requests another try.
func (s *Submit) LostClass(u *txn.Tx) bool {
	if s.Later || s.hasClass(u.Dict) {
		return false
	}
	u.Redo = &store.Fault{Kind: store.Stale, Err: errRetired}
	return true
}

var errRetired = errors.New("the class was retired")

// Want adds the rows that the submit needs: the key and the id, which careful also looks up, and small records that it names.
func (s *Submit) Want(w *store.Want, careful bool) {
	if s.notIngested {
		s.notIngested, s.searched = false, true
		s.e.ingestAll(s.e.Background())
	}
	s.keepClass()
	if !careful {
		return // a key or id that exists already makes the insert fail, and the batch is tried again with care
	}
	w.Inputs = true // the fingerprint of an existing execution with this id is recomputed
	w.Executions = append(w.Executions, s.ID.UUID)
	if s.S.IdempotencyKey != "" {
		w.Keys = append(w.Keys, s.key())
	}
	if s.request.Key != "" {
		w.Docs, w.LockDocs = append(w.Docs, s.request), true
	}
}

// More loads the execution that the key names, so that the answer contains its state.
func (s *Submit) More(u *txn.Tx, w *store.Want) {
	var first recordedSubmit
	if rec, err := u.RecordedRequest(s.request, s.requestFingerprint); rec != nil && err == nil && rec.Into(&first) == nil {
		w.Executions = append(w.Executions, first.ID.UUID)
	}
	if row, ok := u.Keys[s.key()]; ok && s.S.IdempotencyKey != "" {
		w.Executions = append(w.Executions, row.ID.UUID)
	}
}

// Decide creates the execution, or answers with the one that exists.
func (s *Submit) Decide(u *txn.Tx) error {
	s.answer, s.replayed = txn.SubmitAnswer{}, false
	if err := s.S.CheckTimes(u.Now); err != nil {
		return err
	}
	if found, err := s.answered(u); found || err != nil {
		return err
	}
	expired, found, err := s.known(u)
	if err != nil {
		return err
	}
	if found {
		s.record(u)
		return nil
	}
	if refusal := s.RefusedBeside(u, limits.TakenBudgets{}); refusal != nil {
		if !u.Careful { // it must be known first whether it is a duplicate (L80), and this dictionary may not be the newest
			u.Redo = &store.Fault{Kind: store.Conflict, Err: txn.ErrHeld}
			return nil
		}
		return refusal
	}
	if u.Dict.Lanes[s.S.Lane] == nil && !s.Later {
		u.Redo = &store.Fault{Kind: store.Stale, Err: txn.ErrHeld}
		return nil
	}
	if !s.Later && !s.LostClass(u) {
		s.Write(u, expired)
	}
	return nil
}

// RefusedBeside returns the refusal of a submit that is no duplicate: by the lane, then by what the policy names (L80), then by the bounds of the
// namespace. taken are the names and ids of budgets of other items of the same request.
func (s *Submit) RefusedBeside(u *txn.Tx, taken limits.TakenBudgets) error {
	if err := (Present{Now: u.Now, Dict: u.Dict}).Refuses(s); err != nil {
		return err
	}
	if err := s.CheckBudgets(u, taken); err != nil {
		return err
	}
	return s.Bound
}

// recordedSubmit is the record of a submit that is repeatable by its call's key: what it created, or was a duplicate of.
type recordedSubmit struct{ ID base.ID }

// answered answers a call that was answered before.
func (s *Submit) answered(u *txn.Tx) (bool, error) {
	rec, err := u.RecordedRequest(s.request, s.requestFingerprint)
	if rec == nil || err != nil {
		return false, err
	}
	var first recordedSubmit
	if err := rec.Into(&first); err != nil {
		return false, err
	}
	s.replayed = true
	s.duplicate(u, first.ID)
	return true, nil
}

// record stores the answer of the call, if its key makes it repeatable.
func (s *Submit) record(u *txn.Tx) {
	if s.request.Key == "" || u.Redo != nil {
		return
	}
	// The record may not have been looked up: if it exists, the write fails with Conflict, and the batch is tried again with care.
	u.RecordRequest(s.request, s.requestFingerprint, recordedSubmit{s.answer.ID})
}

// known answers a submit whose key or id exists already (L83..L85). expired is the row of a key whose window is over.
func (s *Submit) known(u *txn.Tx) (expired *store.KeyRow, found bool, err error) {
	if s.S.IdempotencyKey != "" {
		if row, ok := u.Keys[s.key()]; ok {
			switch {
			case row.ExpiresAt <= u.Now:
				expired = &row
			case !bytes.Equal(row.Fingerprint, s.fingerprint):
				return nil, true, keyConflict(row.ID)
			default:
				s.duplicate(u, row.ID)
				return nil, true, nil
			}
		}
	}
	if ent := u.Entries[s.ID.UUID]; ent != nil {
		if !ent.Created && !u.Careful { // loaded for another command of this batch: without its input, and its key was not looked up
			u.Redo = &store.Fault{Kind: store.Conflict, Err: txn.ErrHeld}
			return nil, true, nil
		}
		if !s.sameAs(ent.Exec) {
			return nil, true, IDConflict()
		}
		s.duplicate(u, ent.Exec.ID)
		return nil, true, nil
	}
	if u.NotIngested[s.ID.UUID] { // of a committed transaction: its content is known once it is ingested
		if s.searched {
			return nil, true, txn.HeldByOpenTransaction()
		}
		s.fileFirst(u)
		return nil, true, nil
	}
	return expired, false, nil
}

// fileFirst requests another try after the inbox was emptied (L88).
func (s *Submit) fileFirst(u *txn.Tx) {
	s.notIngested = true
	u.Redo = &store.Fault{Kind: store.Conflict, Err: errNotIngested}
}

func laneNotAccepting(lane *core.Lane) error {
	return base.Errorf(base.CodeLaneNotAccepting, "lane %q is %s", lane.Name, lane.Settings.State).
		WithField("lane").With("state", lane.Settings.State.String())
}

func keyConflict(id base.ID) error {
	return base.Errorf(base.CodeIdempotencyConflict, "the key was used for another request").
		WithField("idempotency_key").With("execution_id", id.String())
}

// IDConflict returns the refusal of an id that other work has.
func IDConflict() error {
	return base.Errorf(base.CodeIDConflict, "the id belongs to another execution").WithField("execution_id")
}

// sameAs reports whether an execution that has the submission's id is what it submits (L85).
func (s *Submit) sameAs(x *core.Execution) bool {
	return s.brings(x.ID) && x.Class.Namespace == s.S.Namespace && s.Refs.SameSubmission(s.S, x)
}

// brings reports whether the submission has the id of a stored execution. A bare UUID names it whatever its N (L2).
func (s *Submit) brings(id base.ID) bool {
	if s.S.ID == nil {
		return s.ID == id
	}
	return s.S.ID.Names(id)
}

func (s *Submit) duplicate(u *txn.Tx, id base.ID) {
	s.answer = txn.SubmitAnswer{Outcome: "duplicate", ID: id, Priority: s.S.Priority}
	ent := u.Entries[id.UUID]
	if ent == nil {
		if !s.searched {
			s.fileFirst(u)
		}
		return
	}
	u.Settle(ent) // the answer must not depend on the sweep (L18)
	s.answer.PublicState, _ = core.Derive(ent.Exec, u.LaneState(ent.Exec))
	s.answer.Priority = ent.Exec.Priority
}

var errNotIngested = errors.New("what has the key or id may wait in the inbox")

// retryOfLane returns the default retry policy of a lane; nil if it has none or does not exist yet.
func retryOfLane(d *txn.Dictionary, name string) *core.RetryPolicy {
	if lane := d.Lanes[name]; lane != nil {
		return lane.Settings.Retry
	}
	return nil
}

// Write adds the new execution and its key to the transaction. expired is the row of a key whose window is over; nil: there is none.
func (s *Submit) Write(u *txn.Tx, expired *store.KeyRow) {
	u.Changes.Dictionary = u.Dict.Version
	fx := u.Effects(s.caller)
	s.S.LaneRetry = retryOfLane(u.Dict, s.S.Lane)
	x := core.NewExecution(fx, &s.S, s.ID, s.Class)
	u.Create(x, fx)
	s.makeBudgets(u, x)
	if s.S.IdempotencyKey != "" {
		row := store.KeyRow{Key: s.key(), Fingerprint: s.fingerprint, ID: s.ID, ExpiresAt: x.CreatedAt.Add(x.Policy.DedupWindowMS)}
		if expired != nil {
			u.Changes.ReplaceKeys = append(u.Changes.ReplaceKeys, row)
		} else {
			u.Changes.NewKeys = append(u.Changes.NewKeys, row)
		}
		txn.SetIn(&u.Keys, row.Key, row)
		timer := u.TimerAt(txn.TimerKeys, txn.RoundUp(row.ExpiresAt, base.Minute))
		timer.Texts = append(timer.Texts, txn.EncodeKey(row.Key))
	}
	public, _ := core.Derive(x, u.LaneState(x))
	s.answer = txn.SubmitAnswer{Outcome: "created", ID: x.ID, PublicState: public, Priority: x.Priority}
	s.record(u)
	if s.show { // a copy: it may be handed to a worker at once
		s.answer.Created = &txn.View{Execution: x.Clone(), Lane: u.LaneState(x)}
	}
}
