package engine

import (
	"context"
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// A submission inside the user's own transaction leaves one row in the inbox and locks nothing else (L88). Engines adopt such
// rows: at the first command or read that misses the id, on Nudge, on a hint, or by the poll.

const adoptLimit = 500

// inboxBody is a submission as it waits in the inbox.
type inboxBody struct {
	Submission core.Submission `json:"submission"`
	Policy     json.RawMessage `json:"policy,omitempty"`
	Caller     Caller          `json:"caller"`
}

// SubmitTx leaves a submission in the user's own transaction: the execution exists iff that commits.
func (e *Engine) SubmitTx(ctx context.Context, c Caller, tx any, s core.Submission) (SubmitAnswer, error) {
	submitter, ok := e.store.(store.TxSubmitter)
	if !ok {
		return SubmitAnswer{}, core.Errorf(core.CodeNotImplemented, "this store takes no part in other transactions")
	}
	cmd, err := e.checkSubmit(c, s)
	if err != nil {
		return SubmitAnswer{}, err
	}
	now, err := e.ServerTime(ctx)
	if err != nil {
		return SubmitAnswer{}, err
	}
	if err := e.checkSubmitTx(cmd, now); err != nil {
		return SubmitAnswer{}, err
	}
	body, err := cmd.inboxBody()
	if err != nil {
		return SubmitAnswer{}, err
	}
	var key *store.KeyRow
	if cmd.s.IdempotencyKey != "" {
		key = &store.KeyRow{Key: cmd.key(), Fingerprint: cmd.fingerprint, ID: cmd.id, ExpiresAt: now.Add(cmd.s.Policy.DedupWindowMS)}
	}
	existing, err := submitter.SubmitTx(ctx, tx, key, store.InboxRow{ID: cmd.id, Body: body})
	switch {
	case err != nil:
		return SubmitAnswer{}, publicFault(err)
	case existing == nil:
		answer := SubmitAnswer{Outcome: "created", ID: cmd.id, PublicState: "waiting", Priority: cmd.s.Priority}
		if cmd.s.StartAt(now) != 0 {
			answer.PublicState = "delayed"
		}
		return answer, nil
	case existing.Key == store.Key{}:
		return e.existingID(ctx, cmd)
	case string(existing.Fingerprint) != string(cmd.fingerprint):
		return SubmitAnswer{}, core.Errorf(core.CodeIdempotencyConflict, "the key was used for another request").
			WithField("idempotency_key").With("execution_id", existing.ID.String())
	default:
		return SubmitAnswer{Outcome: "duplicate", ID: existing.ID, Priority: cmd.s.Priority}, nil
	}
}

// existingID answers a transactional submission whose id is there already, as a duplicate or a conflict (L85).
func (e *Engine) existingID(ctx context.Context, cmd *submit) (SubmitAnswer, error) {
	want := store.Want{Executions: []core.UUID{cmd.id.UUID}, Inputs: true}
	loaded, x, err := e.readOne(ctx, Caller{}, core.GivenID{UUID: cmd.id.UUID}, want)
	switch {
	case core.CodeOf(err) == core.CodeExecutionNotFound:
		return SubmitAnswer{}, core.Errorf(core.CodeIdempotencyInProgress, "the id is held by a transaction that is still open").WithRetryAfter(1000)
	case err != nil:
		return SubmitAnswer{}, err
	case x.ID != cmd.id || x.Class.Namespace != cmd.s.Namespace || string(fingerprintOf(x)) != string(cmd.s.Fingerprint()):
		return SubmitAnswer{}, core.Errorf(core.CodeIDConflict, "the id belongs to another execution").WithField("execution_id")
	}
	view, err := e.view(ctx, x, loaded.Dictionary)
	if err != nil {
		return SubmitAnswer{}, err
	}
	public, _ := core.Derive(x, view.Lane)
	return SubmitAnswer{Outcome: "duplicate", ID: x.ID, PublicState: public, Priority: x.Priority}, nil
}

// checkSubmitTx makes the checks of L80 against what is committed.
func (e *Engine) checkSubmitTx(cmd *submit, now core.Time) error {
	if err := cmd.s.CheckTimes(now); err != nil {
		return err
	}
	if lane := e.dict.now().lanes[cmd.s.Lane]; lane != nil && !lane.Settings.State.Accepting() {
		return core.Errorf(core.CodeLaneNotAccepting, "lane %q is %s", lane.Name, lane.Settings.State)
	}
	return nil
}

func (s *submit) inboxBody() ([]byte, error) {
	body := inboxBody{Submission: s.s, Policy: s.s.Policy.Encode(), Caller: s.caller}
	body.Submission.Policy = nil
	given := s.id.Given()
	body.Submission.ID = &given
	text, err := json.Marshal(body)
	if err != nil {
		return nil, core.Errorf(core.CodeInternal, "the submission cannot be written down: %w", err)
	}
	return text, nil
}

// Nudge looks for submissions that the user's own transactions have committed, and for work in the named lanes.
func (e *Engine) Nudge(ctx context.Context, _ Caller, lanes ...string) error {
	if e.stopping() {
		return errShuttingDown()
	}
	e.adoptAll(ctx)
	e.picker.hinted(lanes)
	e.hints.send(store.Hint{Lanes: lanes})
	return nil
}

// adoptedSome adopts what waits in the inbox and tells whether there was anything.
func (e *Engine) adoptedSome(ctx context.Context) bool {
	if _, ok := e.store.(store.TxSubmitter); !ok {
		return false
	}
	return e.adoptAll(ctx) > 0
}

// adoptAll adopts everything that waits in the inbox.
func (e *Engine) adoptAll(ctx context.Context) int {
	total := 0
	for ctx.Err() == nil {
		n, err := e.adopt(ctx)
		total += n
		if err != nil {
			e.cfg.Logger.Warn("submissions wait to be adopted", "error", err)
			break
		}
		if n < adoptLimit {
			break
		}
	}
	return total
}

// adopt turns inbox rows into executions. Another process that adopts at the same time takes others.
func (e *Engine) adopt(ctx context.Context) (int, error) {
	loaded, err := e.store.Read(ctx, store.Want{Inbox: adoptLimit})
	if err != nil || len(loaded.Inbox) == 0 {
		return 0, err
	}
	batch := make([]*request, 0, len(loaded.Inbox))
	for _, row := range loaded.Inbox {
		cmd, err := e.newAdoption(ctx, row)
		if err != nil {
			return 0, err
		}
		batch = append(batch, &request{command: cmd, done: make(chan struct{})})
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

// adoption files a submission from the inbox. The key was written by the user's own transaction.
type adoption struct {
	submit
	bad error // the row cannot be read: it is dropped with a log line
}

func (e *Engine) newAdoption(ctx context.Context, row store.InboxRow) (*adoption, error) {
	var body inboxBody
	a := &adoption{}
	a.id = row.ID
	if a.bad = json.Unmarshal(row.Body, &body); a.bad != nil {
		e.cfg.Logger.Error("an inbox row cannot be read and is dropped", "execution", row.ID, "error", a.bad)
		return a, nil
	}
	if body.Submission.Policy, a.bad = core.DecodePolicy(body.Policy); a.bad != nil {
		e.cfg.Logger.Error("an inbox row cannot be read and is dropped", "execution", row.ID, "error", a.bad)
		return a, nil
	}
	a.s, a.caller = body.Submission, body.Caller
	class, err := e.dict.classOf(ctx, a.s.Class())
	a.class = class
	return a, err
}

func (a *adoption) name() string { return "adopt" }

func (a *adoption) want(w *store.Want, careful bool) {
	if careful {
		w.Executions = append(w.Executions, a.id.UUID)
	}
}

func (a *adoption) more(*unit, *store.Want) {}

func (a *adoption) decide(u *unit) error {
	u.ch.DropInbox = append(u.ch.DropInbox, a.id.UUID)
	if a.bad != nil || u.entries[a.id.UUID] != nil {
		return nil
	}
	u.ch.Dictionary = u.dict.version
	fx := u.effects(a.caller)
	x := core.NewExecution(fx, &a.s, a.id, a.class)
	u.create(x, fx)
	if a.s.IdempotencyKey != "" {
		timer := u.timerAt(timerKeys, roundUp(x.CreatedAt.Add(x.Policy.DedupWindowMS), core.Minute))
		timer.Texts = append(timer.Texts, encodeKey(a.key()))
	}
	return nil
}
