package txn

import (
	"bytes"
	"cmp"
	"context"
	"errors"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// submit creates an execution, or recognises the one that the same submit created before (L79..L87).
type submit struct {
	e           *Engine
	caller      Caller
	s           core.Submission
	space       core.NamespaceSettings
	id          base.ID
	refs        references
	budgets     ownBudgets   // of the policy
	class       *core.Class  // without a number: what the policy names was not found
	fingerprint []byte       // of a submit with a key
	request     store.DocRef // record of a submit that is repeatable by its call's key (U13); the id stands for that key
	print       string       // fingerprint of everything that such a call asks for
	show        bool         // the answer contains what was created
	unfiled     bool         // it is a duplicate of a submission that may be in the inbox: that is adopted first (L88)
	sought      bool         // the inbox was searched
	again       bool         // the call was answered before
	large       error        // why this process refuses such an input, unless it is a duplicate: it may have allowed more before
	bound       error        // that, or why the namespace refuses such an input or class, unless it is a duplicate
	later       bool         // its class is registered only once it is known that no other item of its call is refused
	taken       readyTaken   // counted against the namespace's bound of waiting executions
	answer      SubmitAnswer
}

// Submit creates an execution.
func (e *Engine) Submit(ctx context.Context, c Caller, s core.Submission) (SubmitAnswer, error) {
	return e.submit(ctx, c, s, false)
}

// SubmitAndShow creates an execution and shows it as it was created.
func (e *Engine) SubmitAndShow(ctx context.Context, c Caller, s core.Submission) (SubmitAnswer, error) {
	return e.submit(ctx, c, s, true)
}

func (e *Engine) submit(ctx context.Context, c Caller, s core.Submission, show bool) (SubmitAnswer, error) {
	cmd, err := e.newSubmit(ctx, c, s)
	if err != nil {
		return SubmitAnswer{}, err
	}
	cmd.show = show
	if err := e.Do(ctx, cmd); err != nil {
		cmd.settled("", err)
		return SubmitAnswer{}, err
	}
	cmd.settled(cmd.answer.Outcome, nil)
	if cmd.again {
		c.Again()
	}
	return cmd.answer, nil
}

// newSubmit checks the arguments and finds the class (L80).
func (e *Engine) newSubmit(ctx context.Context, c Caller, s core.Submission) (*submit, error) {
	cmd, err := e.checkSubmit(ctx, c, s, e.newNames())
	if err != nil {
		return nil, err
	}
	if refused, err := e.ready.admit(ctx, cmd); err != nil || refused[cmd] != nil {
		return nil, cmp.Or(err, refused[cmd])
	}
	if cmd.unresolved() || cmd.bound != nil {
		return cmd, nil
	}
	if cmd.class, err = e.Dict.classOf(ctx, cmd.refs.class(&cmd.s)); err != nil {
		cmd.taken.back()
		return nil, PublicFault(err)
	}
	return cmd, nil
}

// checkSubmit checks a submission, one of several whose new names are counted together. If names is nil, it was accepted before, and no bound of
// this process or of its namespace refuses it.
func (e *Engine) checkSubmit(ctx context.Context, c Caller, s core.Submission, names *newNames) (*submit, error) {
	var space core.NamespaceSettings
	settings := func() (_ core.NamespaceSettings, err error) {
		space, err = e.spaces.of(ctx, s.Namespace, e.Cfg.Clock.Now())
		if names == nil {
			space.MaxPayloadBytes = 0
		}
		return space, err
	}
	priority := s.Priority // as requested: what the namespace makes of it may change until the call is repeated
	if err := checkArguments(c, &s, settings); err != nil {
		return nil, err
	}
	cmd := &submit{e: e, caller: c, s: s, space: space}
	if names != nil {
		cmd.large = e.Cfg.Limits.CheckPayload("input", s.Input.Size)
	}
	cmd.bound = cmp.Or(cmd.large, space.CheckInput(s.Input.Size))
	if s.IdempotencyKey != "" {
		cmd.fingerprint = s.Fingerprint()
	}
	if s.ID != nil {
		cmd.id = s.ID.ID()
	} else {
		cmd.id = base.IDOf(e.Mint())
	}
	if c.RequestKey != "" {
		cmd.request, cmd.print = RequestRef(c, cmd.Name(), cmd.id.Full(), c.RequestKey), requestPrint(&s, priority)
	}
	if err := cmd.refer(ctx, e.Dict.Now().rules, space.DefaultQuotas, e.readDocs); err != nil {
		return nil, err
	}
	if err := cmd.planBudgets(ctx); err != nil {
		return nil, err
	}
	if cmd.unresolved() {
		return cmd, nil
	}
	class := cmd.refs.class(&cmd.s)
	if cmd.bound == nil {
		cmd.bound = names.check(space, &class)
	}
	if cmd.bound != nil { // it must be known first whether it is a duplicate (L80)
		cmd.class = &class
	}
	return cmd, nil
}

// readDocs reads small records.
func (e *Engine) readDocs(ctx context.Context, refs ...store.DocRef) (map[store.DocRef]store.Doc, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Docs: refs})
	if err != nil {
		return nil, PublicFault(err)
	}
	return loaded.Docs, nil
}

// requestPrint distinguishes two calls under one key. Unlike the fingerprint of the work (L83) it covers everything they ask for (W4).
func requestPrint(s *core.Submission, priority int) string {
	return Fingerprint(s.Fingerprint(), s.IdempotencyKey, priority, s.Tags, s.DelayUntil, s.DelayMS, s.DeadlineAt)
}

// anySize are the limits of payloads that some process may have accepted. Whether this one accepts them too matters only once it is known that
// they are not those of a repeat (L117).
var anySize = base.Limits{MaxPayload: base.MaxPayloadSetting}

// checkArguments normalizes a submission and checks it by itself. Bounds of the process and of the namespace are not checked: they may have
// changed since the first try of a repeat.
func checkArguments(c Caller, s *core.Submission, settings func() (core.NamespaceSettings, error)) error {
	if s.Creator == "" {
		s.Creator, s.CreatorKey = c.Principal, c.KeyID
	}
	if err := s.Normalize(anySize); err != nil {
		return err
	}
	space, err := settings()
	if err != nil {
		return err
	}
	s.Priority = space.ClampPriority(s.Priority)
	return nil
}

func (s *submit) Name() string { return "submit" }

func (s *submit) key() store.Key {
	return store.Key{Space: store.ExecutionKeys, Namespace: s.s.Namespace, Text: s.s.IdempotencyKey}
}

// keepClass makes sure that new executions may use the class: it may have been retired since it was looked up, and what the policy names may exist
// now, or be another budget. If it cannot be registered now, decide requests another try.
func (s *submit) keepClass() {
	dict := s.e.Dict.Now()
	if s.bound != nil || s.later || s.refs.resolve(dict.rules, s.s.Namespace) != nil || s.hasClass(dict) {
		return
	}
	if class, err := s.e.Dict.classOf(s.e.background(), s.refs.class(&s.s)); err == nil {
		s.class = class
	}
}

// hasClass reports whether the class is one that the dictionary gives to such executions.
func (s *submit) hasClass(dict *Dictionary) bool {
	return dict.gives(s.class) && (len(s.refs.budgets) == 0 || s.refs.class(&s.s).Needs == s.class.Needs)
}

// lostClass reports whether the class is not, or no longer, that of such executions, and requests another try.
func (s *submit) lostClass(u *Tx) bool {
	if s.later || s.hasClass(u.dict) {
		return false
	}
	u.redo = &store.Fault{Kind: store.Stale, Err: errRetired}
	return true
}

var errRetired = errors.New("the class was retired")

func (s *submit) Want(w *store.Want, careful bool) {
	if s.unfiled {
		s.unfiled, s.sought = false, true
		s.e.adoptAll(s.e.background())
	}
	s.keepClass()
	if !careful {
		return // a key or id that exists already makes the insert fail, and the batch is tried again with care
	}
	w.Inputs = true // the fingerprint of an existing execution with this id is recomputed
	w.Executions = append(w.Executions, s.id.UUID)
	if s.s.IdempotencyKey != "" {
		w.Keys = append(w.Keys, s.key())
	}
	if s.request.Key != "" {
		w.Docs, w.LockDocs = append(w.Docs, s.request), true
	}
}

// More loads the execution that the key names, so that the answer contains its state.
func (s *submit) More(u *Tx, w *store.Want) {
	var first recordedSubmit
	if rec, err := u.recordedRequest(s.request, s.print); rec != nil && err == nil && rec.into(&first) == nil {
		w.Executions = append(w.Executions, first.ID.UUID)
	}
	if row, ok := u.keys[s.key()]; ok && s.s.IdempotencyKey != "" {
		w.Executions = append(w.Executions, row.ID.UUID)
	}
}

func (s *submit) Decide(u *Tx) error {
	s.answer, s.again = SubmitAnswer{}, false
	if err := s.s.CheckTimes(u.Now); err != nil {
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
	if refusal := s.refusedBeside(u, takenBudgets{}); refusal != nil {
		if !u.careful { // it must be known first whether it is a duplicate (L80), and this dictionary may not be the newest
			u.redo = &store.Fault{Kind: store.Conflict, Err: errHeld}
			return nil
		}
		return refusal
	}
	if u.dict.Lanes[s.s.Lane] == nil && !s.later {
		u.redo = &store.Fault{Kind: store.Stale, Err: errHeld}
		return nil
	}
	if !s.later && !s.lostClass(u) {
		s.write(u, expired)
	}
	return nil
}

// refusedBeside returns the refusal of a submit that is no duplicate: by the lane, then by what the policy names (L80), then by the bounds of the
// namespace. taken are the names and ids of budgets of other items of the same request.
func (s *submit) refusedBeside(u *Tx, taken takenBudgets) error {
	if err := (present{now: u.Now, dict: u.dict}).refuses(s); err != nil {
		return err
	}
	if err := s.checkBudgets(u, taken); err != nil {
		return err
	}
	return s.bound
}

// recordedSubmit is the record of a submit that is repeatable by its call's key: what it created, or was a duplicate of.
type recordedSubmit struct{ ID base.ID }

// answered answers a call that was answered before.
func (s *submit) answered(u *Tx) (bool, error) {
	rec, err := u.recordedRequest(s.request, s.print)
	if rec == nil || err != nil {
		return false, err
	}
	var first recordedSubmit
	if err := rec.into(&first); err != nil {
		return false, err
	}
	s.again = true
	s.duplicate(u, first.ID)
	return true, nil
}

// record stores the answer of the call, if its key makes it repeatable.
func (s *submit) record(u *Tx) {
	if s.request.Key == "" || u.redo != nil {
		return
	}
	// The record may not have been looked up: if it exists, the write fails with Conflict, and the batch is tried again with care.
	u.RecordRequest(s.request, s.print, recordedSubmit{s.answer.ID})
}

// known answers a submit whose key or id exists already (L83..L85). expired is the row of a key whose window is over.
func (s *submit) known(u *Tx) (expired *store.KeyRow, found bool, err error) {
	if s.s.IdempotencyKey != "" {
		if row, ok := u.keys[s.key()]; ok {
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
	if ent := u.Entries[s.id.UUID]; ent != nil {
		if !ent.created && !u.careful { // loaded for another command of this batch: without its input, and its key was not looked up
			u.redo = &store.Fault{Kind: store.Conflict, Err: errHeld}
			return nil, true, nil
		}
		if !s.sameAs(ent.Exec) {
			return nil, true, idConflict()
		}
		s.duplicate(u, ent.Exec.ID)
		return nil, true, nil
	}
	if u.unfiled[s.id.UUID] { // of a committed transaction: its content is known once it is adopted
		if s.sought {
			return nil, true, heldByOpenTransaction()
		}
		s.fileFirst(u)
		return nil, true, nil
	}
	return expired, false, nil
}

// fileFirst requests another try after the inbox was emptied (L88).
func (s *submit) fileFirst(u *Tx) {
	s.unfiled = true
	u.redo = &store.Fault{Kind: store.Conflict, Err: errUnfiled}
}

func laneNotAccepting(lane *core.Lane) error {
	return base.Errorf(base.CodeLaneNotAccepting, "lane %q is %s", lane.Name, lane.Settings.State).
		WithField("lane").With("state", lane.Settings.State.String())
}

func keyConflict(id base.ID) error {
	return base.Errorf(base.CodeIdempotencyConflict, "the key was used for another request").
		WithField("idempotency_key").With("execution_id", id.String())
}

func idConflict() error {
	return base.Errorf(base.CodeIDConflict, "the id belongs to another execution").WithField("execution_id")
}

// sameAs reports whether an execution that has the submission's id is what it submits (L85).
func (s *submit) sameAs(x *core.Execution) bool {
	return s.brings(x.ID) && x.Class.Namespace == s.s.Namespace && s.refs.sameSubmission(s.s, x)
}

// brings reports whether the submission has the id of a stored execution. A bare UUID names it whatever its N (L2).
func (s *submit) brings(id base.ID) bool {
	if s.s.ID == nil {
		return s.id == id
	}
	return s.s.ID.Names(id)
}

// fingerprintOf recomputes the fingerprint of a stored execution (L83, L85). Its input must be loaded.
func fingerprintOf(x *core.Execution) []byte {
	s := core.Submission{Lane: x.Class.Lane, Kind: x.Class.Kind, Input: x.Input, Policy: x.Policy}
	return s.Fingerprint()
}

func (s *submit) duplicate(u *Tx, id base.ID) {
	s.answer = SubmitAnswer{Outcome: "duplicate", ID: id, Priority: s.s.Priority}
	ent := u.Entries[id.UUID]
	if ent == nil {
		if !s.sought {
			s.fileFirst(u)
		}
		return
	}
	u.Settle(ent) // the answer must not depend on the sweep (L18)
	s.answer.PublicState, _ = core.Derive(ent.Exec, u.LaneState(ent.Exec))
	s.answer.Priority = ent.Exec.Priority
}

var errUnfiled = errors.New("what has the key or id may wait in the inbox")

func (s *submit) write(u *Tx, expired *store.KeyRow) {
	u.Changes.Dictionary = u.dict.version
	fx := u.effects(s.caller)
	x := core.NewExecution(fx, &s.s, s.id, s.class)
	u.create(x, fx)
	s.makeBudgets(u, x)
	if s.s.IdempotencyKey != "" {
		row := store.KeyRow{Key: s.key(), Fingerprint: s.fingerprint, ID: s.id, ExpiresAt: x.CreatedAt.Add(x.Policy.DedupWindowMS)}
		if expired != nil {
			u.Changes.ReplaceKeys = append(u.Changes.ReplaceKeys, row)
		} else {
			u.Changes.NewKeys = append(u.Changes.NewKeys, row)
		}
		SetIn(&u.keys, row.Key, row)
		timer := u.TimerAt(timerKeys, RoundUp(row.ExpiresAt, base.Minute))
		timer.Texts = append(timer.Texts, encodeKey(row.Key))
	}
	public, _ := core.Derive(x, u.LaneState(x))
	s.answer = SubmitAnswer{Outcome: "created", ID: x.ID, PublicState: public, Priority: x.Priority}
	s.record(u)
	if s.show { // a copy: it may be handed to a worker at once
		s.answer.Created = &View{Execution: x.Clone(), Lane: u.LaneState(x)}
	}
}

// LaneState returns the state of an execution's lane, or active if the dictionary does not have it.
func (u *Tx) LaneState(x *core.Execution) core.LaneState {
	if lane := u.Lane(x); lane != nil {
		return lane.Settings.State
	}
	return core.LaneActive
}
