package flows

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// flowKeyWindow is how long an idempotency key names its flow (F11).
const flowKeyWindow = 24 * base.Hour

// smallFlow is how many nodes a flow may have to be committed together with the commands of others.
const smallFlow = 64

// SubmitFlow creates a whole graph, or recognises the one that the same submit has created (F8..F12).
func (e *Graphs) SubmitFlow(ctx context.Context, c txn.Caller, s core.FlowSubmission) (FlowAnswer, error) {
	cmd, err := e.newSubmitFlow(ctx, c, s)
	if err != nil {
		return FlowAnswer{}, err
	}
	return cmd.run(ctx)
}

// CreateFlow creates an empty flow that is not sealed, or recognises the one that exists (F13).
func (e *Graphs) CreateFlow(ctx context.Context, c txn.Caller, s core.FlowSubmission) (FlowAnswer, error) {
	s = core.FlowSubmission{
		ID: s.ID, Namespace: s.Namespace, Kind: s.Kind, Creator: s.Creator, IdempotencyKey: s.IdempotencyKey, Tags: s.Tags,
		Unsealed: true, Trace: s.Trace, Budgets: s.Budgets,
	}
	cmd, err := e.newSubmitFlow(ctx, c, s)
	if err != nil {
		return FlowAnswer{}, err
	}
	cmd.empty = true
	return cmd.run(ctx)
}

// CheckFlow reports whether SubmitFlow would accept a flow now, and in which order its nodes could run. It decides as SubmitFlow does, on the same
// rows under the same locks, and writes nothing; neither does it register classes. Codes: those of SubmitFlow.
func (e *Graphs) CheckFlow(ctx context.Context, c txn.Caller, s core.FlowSubmission) (order []string, err error) {
	cmd, err := e.planSubmitFlow(ctx, c, s)
	if err != nil {
		return nil, err
	}
	if err := cmd.enterDry(ctx); err != nil {
		return nil, err
	}
	if err := e.RunAlone(ctx, &flowCheck{cmd}, e.Checks, txn.BatchMode{Careful: true}); err != nil {
		return nil, err
	}
	var names []string
	for i := range cmd.s.Nodes {
		names = append(names, cmd.s.Nodes[i].Name)
	}
	var edges [][2]string
	for _, edge := range cmd.s.AllEdges() {
		edges = append(edges, [2]string{edge.From, edge.To})
	}
	return core.TopologicalOrder(names, edges), nil
}

// flowCheck is the command of CheckFlow: a submit that ends before anything is written. It must run carefully, because what an insert would find
// taken is found only by looking.
type flowCheck struct{ *submitFlow }

func (f *flowCheck) Name() string { return "check_flow" }

func (f *flowCheck) Decide(u *txn.Tx) error {
	_, _, err := f.judge(u)
	return err
}

// checkFlow checks the shape of a flow.
func (e *Graphs) checkFlow(_ context.Context, c txn.Caller, s *core.FlowSubmission) error {
	if s.Creator == "" {
		s.Creator, s.CreatorKey = c.Principal, c.KeyID
	}
	if err := s.CheckShape(e.Cfg.Limits); err != nil {
		return err
	}
	if !c.Sees(s.Namespace) {
		return admin.NoSuchNamespace(s.Namespace)
	}
	return nil
}

// submitFlow is the command of SubmitFlow.
type submitFlow struct {
	graphDelta
	s           core.FlowSubmission
	above       core.FlowParent
	fingerprint []byte
	empty       bool
	request     store.DocRef // of a call that its key makes repeatable (U13)
	replayed    bool
	budgets     limits.OwnBudgets   // that have the flow as their scope
	scoped      []core.ScopedBudget // that reach it by what is around it
	known       base.UUID           // the flow that the key or id names already
	answer      FlowAnswer
}

// newSubmitFlow checks a submit and lets its nodes in (F12).
func (e *Graphs) newSubmitFlow(ctx context.Context, c txn.Caller, s core.FlowSubmission) (*submitFlow, error) {
	cmd, err := e.planSubmitFlow(ctx, c, s)
	if err != nil {
		return nil, err
	}
	return cmd, cmd.enter(ctx)
}

// planSubmitFlow checks a submit as far as that needs no locks.
func (e *Graphs) planSubmitFlow(ctx context.Context, c txn.Caller, s core.FlowSubmission) (*submitFlow, error) {
	if err := e.checkFlow(ctx, c, &s); err != nil {
		return nil, err
	}
	cmd := &submitFlow{s: s}
	if c.RequestKey != "" {
		cmd.request = txn.RequestRef(c, cmd.Name(), s.Namespace, c.RequestKey)
	}
	if s.ID != nil {
		cmd.flow = s.ID.ID()
	} else {
		cmd.flow = base.IDOf(e.Mint())
	}
	if err := e.planFlow(ctx, c, cmd); err != nil {
		return nil, err
	}
	return cmd, cmd.planBudgets(ctx)
}

// planFlow prepares the nodes and edges of a submit.
func (e *Graphs) planFlow(ctx context.Context, c txn.Caller, cmd *submitFlow) error {
	s := &cmd.s
	cmd.list, cmd.output = "nodes", s.Output
	if err := e.newGraphDelta(ctx, c, &cmd.graphDelta, &s.Defaults, s.Nodes, s.Namespace, core.Submitter{Name: s.Creator, KeyID: s.CreatorKey}, s.Trace); err != nil {
		return err
	}
	if err := cmd.judgeSubflows(ctx, c, s.Nodes, s.CheckNodes); err != nil {
		return err
	}
	if err := s.CheckGraph(); err != nil {
		return cmd.before(ctx, len(cmd.nodes), err)
	}
	cmd.edges, cmd.fingerprint = s.AllEdges(), s.Fingerprint()
	return nil
}

// run commits the submit and returns what it created, or what existed already.
func (s *submitFlow) run(ctx context.Context) (FlowAnswer, error) {
	err := s.e.runGrowth(ctx, s, len(s.nodes))
	s.room.Settled(err == nil && s.answer.Created, err) // after an error the command may still be running, and write its answer
	if err != nil {
		return FlowAnswer{}, err
	}
	if s.replayed {
		s.caller.Again()
	}
	if s.known.IsZero() {
		return s.answer, nil
	}
	return s.e.existingFlow(ctx, s.known)
}

func (s *submitFlow) Name() string { return "submit_flow" }

func (s *submitFlow) key() store.Key {
	return store.Key{Space: store.FlowKeys, Namespace: s.s.Namespace, Text: s.s.IdempotencyKey}
}

func (s *submitFlow) Want(w *store.Want, careful bool) {
	s.graphDelta.Want(w, careful)
	if !careful {
		return // what exists already makes the insert fail, and the batch is tried again with care
	}
	w.Docs = append(w.Docs, FlowRef(s.flow.UUID))
	if s.s.IdempotencyKey != "" {
		w.Keys = append(w.Keys, s.key())
	}
	if s.request.Key != "" {
		w.Docs, w.LockDocs = append(w.Docs, s.request), true
	}
}

func (s *submitFlow) Decide(u *txn.Tx) error {
	expired, done, err := s.judge(u)
	if err != nil || done || s.lacksClasses(u) {
		return err
	}
	s.make(u, expired)
	return nil
}

// judge decides whether the flow is to be made now. done: it exists already, or, with u.redo set, the request is to be tried again. expired is the
// row of a key whose window is over.
func (s *submitFlow) judge(u *txn.Tx) (expired *store.KeyRow, done bool, err error) {
	s.answer, s.replayed, s.known = FlowAnswer{}, false, base.UUID{}
	var first base.UUID
	if again, err := u.Repeated(s.caller, s.request, s.requestFingerprint(), &first); again || err != nil {
		s.replayed, s.known = err == nil, first
		return nil, true, err
	}
	expired, found, err := s.existing(u)
	if err != nil || found {
		return nil, true, err
	}
	if err := s.check(u); err != nil || u.Redo != nil {
		return nil, true, err
	}
	if _, err := s.budgets.Check(u, s.taken); err != nil {
		return nil, true, refuseWithCare(u, err)
	}
	return expired, false, nil
}

// fingerprint returns a fingerprint that distinguishes two calls under one request key.
func (s *submitFlow) requestFingerprint() string {
	return txn.Fingerprint(s.fingerprint, s.s.IdempotencyKey, s.s.Tags, s.empty)
}

// existing recognises the flow that the key or the id names already (F11, F13). expired is the row of a key whose window is over.
func (s *submitFlow) existing(u *txn.Tx) (expired *store.KeyRow, found bool, err error) {
	if s.s.IdempotencyKey != "" {
		if row, ok := u.Keys[s.key()]; ok {
			switch {
			case row.ExpiresAt <= u.Now:
				expired = &row
			case !sameFingerprint(row.Fingerprint, s.fingerprint):
				return nil, true, base.Errorf(base.CodeIdempotencyConflict, "the key was used for another request").
					WithField("idempotency_key").With("flow_id", row.ID.String())
			default:
				s.known = row.ID.UUID
				return nil, true, nil
			}
		}
	}
	f := flow(u, s.flow.UUID) // one that the transaction has made itself is no doc yet
	if f == nil {
		doc := u.Doc(FlowRef(s.flow.UUID))
		if doc == nil {
			return expired, false, nil
		}
		f = &core.Flow{}
		if err := ReadDoc(doc, f); err != nil {
			return nil, true, err
		}
	}
	if !s.brings(f.ID) || f.Namespace != s.s.Namespace || !sameFingerprint(f.Fingerprint, s.fingerprint) || s.empty && !sameTags(f.Tags, s.s.Tags) {
		return nil, true, base.Errorf(base.CodeFlowAlreadyExists, "the id belongs to another flow").WithField("flow_id")
	}
	s.known = f.ID.UUID
	return nil, true, nil
}

// brings reports whether the submission has the id of a stored flow. A bare UUID names it whatever its N (L2).
func (s *submitFlow) brings(id base.ID) bool {
	if s.s.ID == nil {
		return s.flow == id
	}
	return s.s.ID.Names(id)
}

func sameTags(a, b base.Tags) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		if other, ok := b[key]; !ok || other != value {
			return false
		}
	}
	return true
}

// make writes the flow with everything in it.
func (s *submitFlow) make(u *txn.Tx, expired *store.KeyRow) {
	u.Changes.Dictionary = u.Dict.Version
	fx := u.Effects(s.caller)
	f := core.NewFlow(fx, &s.s, s.flow, s.above)
	f.Fingerprint = s.fingerprint
	f.Quorums = slices.ContainsFunc(s.s.Nodes, func(n core.FlowNode) bool { return n.Join != nil && n.Join.Policy == core.Quorum })
	if !s.empty {
		f.Revision = 1
	}
	createFlow(u, f)
	s.makeBudgets(u, f)
	made := s.write(u, f, func(base.UUID) *core.EndedRun { return nil })
	f.Created(fx, len(s.nodes), f.Edges)
	if !s.s.Unsealed {
		f.Sealed = true
	}
	u.Keep(fx)
	s.keepKey(u, f, expired)
	s.answer = FlowAnswer{Flow: f, Members: map[string]base.ID{}, Created: true}
	for i := range made {
		s.answer.Members[s.nodes[i].node.Name] = s.nodes[i].id
	}
	if s.request.Key != "" {
		u.RecordRequest(s.request, s.requestFingerprint(), f.ID.UUID)
	}
}

// keepKey files the idempotency key of the flow.
func (s *submitFlow) keepKey(u *txn.Tx, f *core.Flow, expired *store.KeyRow) {
	if s.s.IdempotencyKey == "" {
		return
	}
	row := store.KeyRow{Key: s.key(), Fingerprint: s.fingerprint, ID: f.ID, ExpiresAt: f.CreatedAt.Add(flowKeyWindow)}
	if expired != nil {
		u.Changes.ReplaceKeys = append(u.Changes.ReplaceKeys, row)
	} else {
		u.Changes.NewKeys = append(u.Changes.NewKeys, row)
	}
	txn.SetIn(&u.Keys, row.Key, row)
	timer := u.TimerAt(txn.TimerKeys, txn.RoundUp(row.ExpiresAt, base.Minute))
	timer.Texts = append(timer.Texts, txn.EncodeKey(row.Key))
}

// existingFlow is the answer about a flow that is there.
func (e *Graphs) existingFlow(ctx context.Context, id base.UUID) (FlowAnswer, error) {
	loaded, err := e.Store.Read(ctx, store.Want{
		Docs: []store.DocRef{FlowRef(id)}, Scans: []store.Scan{{Kind: DocMember, Owner: txn.Owner(id)}},
	})
	if err != nil {
		return FlowAnswer{}, txn.PublicFault(err)
	}
	doc, ok := loaded.Docs[FlowRef(id)]
	if !ok {
		return FlowAnswer{}, base.Errorf(base.CodeFlowNotFound, "the flow that this key named was removed")
	}
	answer := FlowAnswer{Flow: &core.Flow{}, Members: map[string]base.ID{}}
	if err := ReadDoc(&doc, answer.Flow); err != nil {
		return FlowAnswer{}, err
	}
	for _, member := range slices.Concat(loaded.Scanned...) {
		m, err := readMember(&member)
		if err != nil {
			return FlowAnswer{}, err
		}
		answer.Members[member.Key] = m.id
	}
	return answer, nil
}
