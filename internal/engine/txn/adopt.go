package txn

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// A submission inside the user's own transaction writes one row into the inbox and locks nothing else (L88). Engines adopt such rows, that is, turn
// them into executions: at the first command or read that misses the id, on Nudge, on a hint, or by the poll.

const adoptLimit = 500

// inboxBody is a submission as it waits in the inbox.
type inboxBody struct {
	Submission core.Submission `json:"submission"`
	Policy     json.RawMessage `json:"policy,omitempty"`
	Budgets    []base.UUID     `json:"budgets,omitempty"` // that the policy names
	Caller     Caller          `json:"caller"`
}

// TxAnswer is the answer to a submission inside the user's own transaction.
type TxAnswer struct {
	SubmitAnswer
	View View // the execution as it is, or as the commit will create it; empty if that of a duplicate was removed (L84)
}

// SubmitTx writes a submission in the user's own transaction: the execution exists if and only if that commits.
func (e *Engine) SubmitTx(ctx context.Context, c Caller, tx any, s core.Submission) (TxAnswer, error) {
	submitter, ok := e.Store.(store.TxSubmitter)
	if !ok {
		return TxAnswer{}, base.Errorf(base.CodeNotImplemented, "this store takes no part in other transactions")
	}
	cmd, err := e.checkSubmit(ctx, c, s, e.newNames())
	if err != nil {
		return TxAnswer{}, err
	}
	if err := cmd.noBudgets(); err != nil {
		return TxAnswer{}, err
	}
	present, err := e.present(ctx)
	if err != nil {
		return TxAnswer{}, err
	}
	if err := cmd.s.CheckTimes(present.now); err != nil {
		return TxAnswer{}, err
	}
	row := store.InboxRow{ID: cmd.id}
	refusal := present.refuses(cmd)
	if refusal == nil {
		refusal = cmd.bound
	}
	if refusal == nil {
		if row.Body, err = cmd.inboxBody(); err != nil {
			return TxAnswer{}, err
		}
	} // otherwise it must be known first whether it is a duplicate (L80)
	existing, err := submitter.SubmitTx(ctx, tx, cmd.keyRow(present.now), row)
	switch {
	case err != nil:
		return TxAnswer{}, PublicFault(err)
	case existing != nil:
		return e.existing(ctx, cmd, existing, present)
	case refusal != nil:
		return TxAnswer{}, refusal
	}
	return txAnswer("created", cmd.id, present.made(cmd)), nil
}

func txAnswer(outcome string, id base.ID, view View) TxAnswer {
	answer := TxAnswer{SubmitAnswer: SubmitAnswer{Outcome: outcome, ID: id}, View: view}
	if x := view.Execution; x != nil {
		answer.PublicState, _ = core.Derive(x, view.Lane)
		answer.Priority = x.Priority
	}
	return answer
}

// existing answers a transactional submission whose key or id exists already, as a duplicate or a conflict (L83, L85).
func (e *Engine) existing(ctx context.Context, cmd *submit, found *store.Existing, at present) (TxAnswer, error) {
	byKey := found.Key != (store.Key{})
	if byKey && !bytes.Equal(found.Fingerprint, cmd.fingerprint) {
		return TxAnswer{}, keyConflict(found.ID)
	}
	view, err := e.existingView(ctx, found, at)
	if err != nil {
		return TxAnswer{}, err
	}
	switch x := view.Execution; {
	case byKey && x == nil: // only the key is left of it (L84)
		return TxAnswer{SubmitAnswer: SubmitAnswer{Outcome: "duplicate", ID: found.ID, Priority: cmd.s.Priority}}, nil
	case byKey:
	case x == nil:
		return TxAnswer{}, base.Errorf(base.CodeIdempotencyInProgress, "the id is held by a transaction that is still open").WithRetryAfter(1000)
	case !cmd.sameAs(x):
		return TxAnswer{}, idConflict()
	}
	return txAnswer("duplicate", found.ID, view), nil
}

// existingView reads the existing execution: as it was filed, otherwise as its submission will create it. It adopts nothing and writes no due
// timers: the user's own transaction may hold the rows (L88).
func (e *Engine) existingView(ctx context.Context, found *store.Existing, at present) (View, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Executions: []base.UUID{found.ID.UUID}, Inputs: true, Results: true})
	if err != nil {
		return View{}, PublicFault(err)
	}
	if x := loaded.Executions[found.ID.UUID]; x != nil {
		return e.view(ctx, settled(x, loaded.Now), loaded.Dictionary)
	}
	if found.Body == nil {
		return View{}, nil
	}
	waiting := &submit{id: found.ID}
	if err := waiting.readBody(found.Body); err != nil {
		return View{}, Corrupt("inbox", err)
	}
	return at.made(waiting), nil
}

// settled returns an execution that no other transaction has seen as its due timers leave it, so that the answer does not depend on how late the
// sweep runs (L18).
func settled(x *core.Execution, now base.Time) *core.Execution {
	if now = max(now, x.LastMutationAt); x.WakeAt != 0 && x.WakeAt <= now {
		x.Settle(&core.Effects{Now: now})
	}
	return x
}

// present is the moment at which a transactional submission is judged, and what is committed then.
type present struct {
	now  base.Time
	dict *Dictionary
}

func (e *Engine) present(ctx context.Context) (present, error) {
	loaded, err := e.Store.Read(ctx, store.Want{})
	if err != nil {
		return present{}, PublicFault(err)
	}
	dict, err := e.Dict.At(ctx, loaded.Dictionary)
	if err != nil {
		return present{}, PublicFault(err)
	}
	return present{now: loaded.Now, dict: dict}, nil
}

// refuses is the refusal of a submission with an input that is too large for this process, to a lane that takes none, or whose policy names what
// does not exist.
func (p present) refuses(cmd *submit) error {
	if cmd.large != nil {
		return cmd.large
	}
	if lane := p.dict.Lanes[cmd.s.Lane]; lane != nil && !lane.Settings.State.Accepting() {
		return laneNotAccepting(lane)
	}
	return cmd.refs.resolve(p.dict.rules, cmd.s.Namespace)
}

// made is the execution that a submission makes if it is filed now.
func (p present) made(cmd *submit) View {
	class := cmd.refs.class(&cmd.s)
	x := core.NewExecution(&core.Effects{Now: p.now}, &cmd.s, cmd.id, &class)
	return View{Execution: settled(x, p.now), Lane: p.dict.State(class.Lane)}
}

// keyRow returns the row of the submission's key, or nil if it has none.
func (s *submit) keyRow(now base.Time) *store.KeyRow {
	if s.s.IdempotencyKey == "" {
		return nil
	}
	return &store.KeyRow{Key: s.key(), Fingerprint: s.fingerprint, ID: s.id, ExpiresAt: now.Add(s.s.Policy.DedupWindowMS)}
}

func (s *submit) inboxBody() ([]byte, error) {
	body := inboxBody{Submission: s.s, Policy: s.s.Policy.Encode(), Budgets: s.refs.budgets, Caller: s.caller}
	body.Submission.Policy = nil
	given := s.id.Given()
	body.Submission.ID = &given
	text, err := json.Marshal(body)
	if err != nil {
		return nil, base.Errorf(base.CodeInternal, "the submission cannot be written down: %w", err)
	}
	return text, nil
}

// readBody reads what inboxBody wrote.
func (s *submit) readBody(text []byte) error {
	var body inboxBody
	if err := json.Unmarshal(text, &body); err != nil {
		return err
	}
	policy, err := core.DecodePolicy(body.Policy)
	if err != nil {
		return err
	}
	s.s, s.caller = body.Submission, body.Caller
	s.s.Policy = policy
	s.refs = references{given: policy, budgets: body.Budgets, fixed: true}
	return nil
}

// Nudge looks for submissions that the user's own transactions have committed, and for work in the named lanes.
func (e *Engine) Nudge(ctx context.Context, _ Caller, lanes ...string) error {
	if e.stopping() {
		return errShuttingDown()
	}
	e.adoptAll(ctx)
	hint := store.Hint{Lanes: e.Dict.Now().narrow(lanes)}
	e.picker.hinted(hint)
	e.hints.send(hint)
	return nil
}

// narrow returns those of the lanes that have no more classes than one poll asks about. In the others a nudge would make every process look at the
// queues of hundreds of thousands of keys. It is not needed there: the process that adopts a submission names its class in a hint, and everything
// else is left to the polls (S68).
func (d *Dictionary) narrow(lanes []string) []string {
	return slices.DeleteFunc(slices.Clone(lanes), func(lane string) bool { return len(d.OfLane[lane]) > pollShared })
}

// appeared reports whether an execution that was not found is worth another look: the execution exists now, or the inbox has something that is then
// adopted. Both are read in one snapshot, because another process may adopt it between two.
func (e *Engine) appeared(ctx context.Context, id base.UUID) bool {
	loaded, err := e.Store.Read(ctx, store.Want{Executions: []base.UUID{id}, Inbox: 1})
	if err != nil {
		return false
	}
	if len(loaded.Inbox) > 0 {
		e.adoptAll(ctx)
		return true
	}
	return loaded.Executions[id] != nil
}

// adoptAll adopts everything in the inbox.
func (e *Engine) adoptAll(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := e.adopt(ctx)
		if err != nil {
			e.notes.Warn("submissions wait to be adopted", "error", err)
			break
		}
		if n < adoptLimit {
			break
		}
	}
}

// adopt turns inbox rows into executions, and returns how many there were. Within a process one adopt runs at a time: a second one would only lock
// what the first has just filed, and keep it from being claimed.
func (e *Engine) adopt(ctx context.Context) (int, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Inbox: adoptLimit})
	if err != nil || len(loaded.Inbox) == 0 {
		return 0, err
	}
	e.adopting.Lock()
	defer e.adopting.Unlock()
	if loaded, err = e.Store.Read(ctx, store.Want{Inbox: adoptLimit}); err != nil || len(loaded.Inbox) == 0 {
		return 0, err
	}
	batch := make([]*request, 0, len(loaded.Inbox))
	for _, row := range loaded.Inbox {
		cmd, err := e.newAdoption(ctx, row)
		if err != nil {
			return 0, err
		}
		// The caller may itself be a waiter of held rows, so it must not wait for one. What stays in the inbox is found by the next look.
		batch = append(batch, &request{command: cmd, done: make(chan struct{}), began: e.Meter.now(), stays: true})
	}
	e.process(batch)
	for _, r := range batch {
		<-r.done
		if r.err != nil {
			err = r.err
		}
	}
	return len(batch), err
}
