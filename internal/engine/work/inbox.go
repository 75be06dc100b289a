package work

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// A submission inside the user's own transaction writes one row into the inbox and locks nothing else (L88). Engines ingest such rows, that is, turn
// them into executions: at the first command or read that misses the id, on Nudge, on a hint, or by the poll. Rows without a submission stand for
// outcomes (outcome.go).

const ingestLimit = 500

// inboxBody is a submission as it waits in the inbox.
type inboxBody struct {
	Submission core.Submission `json:"submission"`
	Policy     json.RawMessage `json:"policy,omitempty"`
	Budgets    []base.UUID     `json:"budgets,omitempty"` // that the policy names
	Caller     txn.Caller      `json:"caller"`
}

// TxAnswer is the answer to a submission inside the user's own transaction.
type TxAnswer struct {
	txn.SubmitAnswer
	View txn.View // the execution as it is, or as the commit will create it; empty if that of a duplicate was removed (L84)
}

// SubmitTx writes a submission in the user's own transaction: the execution exists if and only if that commits.
func (e *Work) SubmitTx(ctx context.Context, c txn.Caller, tx any, s core.Submission) (TxAnswer, error) {
	submitter, ok := e.Store.(store.TxSubmitter)
	if !ok {
		return TxAnswer{}, base.Errorf(base.CodeNotImplemented, "this store takes no part in other transactions")
	}
	cmd, err := e.CheckSubmit(ctx, c, s, e.NewNames())
	if err != nil {
		return TxAnswer{}, err
	}
	if err := cmd.noBudgets(); err != nil {
		return TxAnswer{}, err
	}
	present, err := e.Present(ctx)
	if err != nil {
		return TxAnswer{}, err
	}
	if err := cmd.S.CheckTimes(present.Now); err != nil {
		return TxAnswer{}, err
	}
	row := store.InboxRow{ID: cmd.ID}
	refusal := present.Refuses(cmd)
	if refusal == nil {
		refusal = cmd.Bound
	}
	if refusal == nil {
		if row.Body, err = cmd.inboxBody(); err != nil {
			return TxAnswer{}, err
		}
	} // otherwise it must be known first whether it is a duplicate (L80)
	existing, err := submitter.SubmitTx(ctx, tx, cmd.keyRow(present.Now), row)
	switch {
	case err != nil:
		return TxAnswer{}, txn.PublicFault(err)
	case existing != nil:
		return e.existing(ctx, cmd, existing, present)
	case refusal != nil:
		return TxAnswer{}, refusal
	}
	return txAnswer("created", cmd.ID, present.made(cmd)), nil
}

func txAnswer(outcome string, id base.ID, view txn.View) TxAnswer {
	answer := TxAnswer{SubmitAnswer: txn.SubmitAnswer{Outcome: outcome, ID: id}, View: view}
	if x := view.Execution; x != nil {
		answer.PublicState, _ = core.Derive(x, view.Lane)
		answer.Priority = x.Priority
	}
	return answer
}

// existing answers a transactional submission whose key or id exists already, as a duplicate or a conflict (L83, L85).
func (e *Work) existing(ctx context.Context, cmd *Submit, found *store.Existing, at Present) (TxAnswer, error) {
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
		return TxAnswer{SubmitAnswer: txn.SubmitAnswer{Outcome: "duplicate", ID: found.ID, Priority: cmd.S.Priority}}, nil
	case byKey:
	case x == nil:
		return TxAnswer{}, base.Errorf(base.CodeIdempotencyInProgress, "the id is held by a transaction that is still open").WithRetryAfter(1000)
	case !cmd.sameAs(x):
		return TxAnswer{}, IDConflict()
	}
	return txAnswer("duplicate", found.ID, view), nil
}

// existingView reads the existing execution: as it was filed, otherwise as its submission will create it. It ingests nothing and writes no due
// timers: the user's own transaction may hold the rows (L88).
func (e *Work) existingView(ctx context.Context, found *store.Existing, at Present) (txn.View, error) {
	loaded, err := e.Store.Read(ctx, store.Want{Executions: []base.UUID{found.ID.UUID}, Inputs: true, Results: true})
	if err != nil {
		return txn.View{}, txn.PublicFault(err)
	}
	if x := loaded.Executions[found.ID.UUID]; x != nil {
		return e.View(ctx, settled(x, loaded.Now), loaded.Dictionary)
	}
	if found.Body == nil {
		return txn.View{}, nil
	}
	waiting := &Submit{ID: found.ID}
	if err := waiting.readBody(found.Body); err != nil {
		return txn.View{}, txn.Corrupt("inbox", err)
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

// Present is the moment at which a transactional submission is judged, and what is committed then.
type Present struct {
	Now  base.Time
	Dict *txn.Dictionary
}

// Present reads the clock and the dictionary as they are now, for what is decided before a transaction.
func (e *Work) Present(ctx context.Context) (Present, error) {
	loaded, err := e.Store.Read(ctx, store.Want{})
	if err != nil {
		return Present{}, txn.PublicFault(err)
	}
	dict, err := e.Dict.At(ctx, loaded.Dictionary)
	if err != nil {
		return Present{}, txn.PublicFault(err)
	}
	return Present{Now: loaded.Now, Dict: dict}, nil
}

// Refuses is the refusal of a submission with an input that is too large for this process, to a lane that takes none, or whose policy names what
// does not exist.
func (p Present) Refuses(cmd *Submit) error {
	if cmd.large != nil {
		return cmd.large
	}
	if lane := p.Dict.Lanes[cmd.S.Lane]; lane != nil && !lane.Settings.State.Accepting() {
		return laneNotAccepting(lane)
	}
	return cmd.Refs.Resolve(limits.RulesOf(p.Dict), cmd.S.Namespace)
}

// made is the execution that a submission makes if it is filed now.
func (p Present) made(cmd *Submit) txn.View {
	class := cmd.Refs.Class(&cmd.S)
	cmd.S.LaneRetry = retryOfLane(p.Dict, cmd.S.Lane)
	x := core.NewExecution(&core.Effects{Now: p.Now}, &cmd.S, cmd.ID, &class)
	return txn.View{Execution: settled(x, p.Now), Lane: p.Dict.State(class.Lane)}
}

// keyRow returns the row of the submission's key, or nil if it has none.
func (s *Submit) keyRow(now base.Time) *store.KeyRow {
	if s.S.IdempotencyKey == "" {
		return nil
	}
	return &store.KeyRow{Key: s.key(), Fingerprint: s.fingerprint, ID: s.ID, ExpiresAt: now.Add(s.S.Policy.DedupWindowMS)}
}

func (s *Submit) inboxBody() ([]byte, error) {
	body := inboxBody{Submission: s.S, Policy: s.S.Policy.Encode(), Budgets: s.Refs.Budgets, Caller: s.caller}
	body.Submission.Policy = nil
	given := s.ID.Given()
	body.Submission.ID = &given
	text, err := json.Marshal(body)
	if err != nil {
		return nil, base.Errorf(base.CodeInternal, "the submission cannot be written down: %w", err)
	}
	return text, nil
}

// readBody reads what inboxBody wrote.
func (s *Submit) readBody(text []byte) error {
	var body inboxBody
	if err := json.Unmarshal(text, &body); err != nil {
		return err
	}
	policy, err := core.DecodePolicy(body.Policy)
	if err != nil {
		return err
	}
	s.S, s.caller = body.Submission, body.Caller
	s.S.Policy = policy
	s.Refs = limits.References{Given: policy, Budgets: body.Budgets, Fixed: true}
	return nil
}

// Nudge looks for submissions that the user's own transactions have committed, and for work in the named lanes.
func (e *Work) Nudge(ctx context.Context, _ txn.Caller, lanes ...string) error {
	if e.Stopping() {
		return txn.ErrShuttingDown()
	}
	e.ingestAll(ctx)
	hint := store.Hint{Lanes: narrow(e.Dict.Now(), lanes)}
	e.Dispatcher.Hinted(hint)
	e.Hints.Send(hint)
	return nil
}

// PollShared is the number of classes of a filter that one poll asks for on a store that processes share. If there are more they take turns, so that
// work without a hint is found later than within a second (S68).
const PollShared = 4096

// narrow returns those of the lanes that have no more classes than one poll asks about. In the others a nudge would make every process look at the
// queues of hundreds of thousands of keys. It is not needed there: the process that ingests a submission names its class in a hint, and everything
// else is left to the polls (S68).
func narrow(d *txn.Dictionary, lanes []string) []string {
	return slices.DeleteFunc(slices.Clone(lanes), func(lane string) bool { return len(d.OfLane[lane]) > PollShared })
}
