package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/test/sleepy"
)

// reference is the model: the rules of core applied to maps, one command at a time. It shares no code with the engine. Records
// are settled when a command names them and when a sweep is said to run, and not otherwise.
type reference struct {
	clock   *sleepy.Clock
	ids     *idSource
	lanes   map[string]*core.Lane
	records map[base.UUID]*record
	keys    map[string]keyRow
	answers map[string]recordedAnswer
	claims  map[string][]base.UUID
	workers map[string]*worker
	told    map[base.UUID][]core.Event
	lanesOf []core.Event // lane.changed
	last    string       // lane served last (S18)
	turns   core.Turns   // of the fairness keys (S24)
	jobs    map[base.UUID]ended

	signing  *signing
	happened []string // what commands and timers did to waits, since it was last asked
}

// record is an execution with what belongs to it.
type record struct {
	x       *core.Execution
	history []core.LeaseRecord
	steps   []core.StepRecord
	d       core.WaitState // its waits, with the bytes of payloads
	sees    map[int]int    // by run: the first run whose steps it sees (L150)
	kept    base.Time      // when an operator's wish to retain it ended or ends (U54)
}

type keyRow struct {
	print   []byte
	id      base.ID
	expires base.Time
}

type recordedAnswer struct {
	print string
	value any
}

// worker is an instance as its first claim or registration made it known.
type worker struct {
	marked, draining bool
	namespaces       []string // none: all
	owner            string   // principal that made it known: it is its own with whatever namespaces (U103)
}

// seenBy reports whether the caller may know of the instance (U121).
func (w *worker) seenBy(c engine.Caller) bool {
	return w != nil && (c.Namespaces == nil || len(w.namespaces) == 0 || slices.ContainsFunc(w.namespaces, func(name string) bool {
		return sees(c, name)
	}))
}

// claims reports whether the instance may claim for the caller (S49, S52).
func (w *worker) claims(c engine.Caller) error {
	switch {
	case !w.seenBy(c) && w.owner != c.Principal:
		return base.Errorf(base.CodeInstanceIDTaken, "of another namespace")
	case w.marked:
		return base.Errorf(base.CodeWorkerNotRegistered, "dead")
	default:
		return nil
	}
}

// sees reports whether the caller has a namespace (W5).
func sees(c engine.Caller, namespace string) bool {
	return c.Namespaces == nil || slices.Contains(c.Namespaces, namespace)
}

func newReference(c *sleepy.Clock, ids *idSource) *reference {
	return &reference{
		clock: c, ids: ids, lanes: map[string]*core.Lane{}, records: map[base.UUID]*record{}, keys: map[string]keyRow{},
		answers: map[string]recordedAnswer{}, claims: map[string][]base.UUID{}, workers: map[string]*worker{},
		told: map[base.UUID][]core.Event{}, jobs: map[base.UUID]ended{}, signing: newSigning(c.StoreNow()),
	}
}

func (m *reference) now() base.Time { return m.clock.StoreNow() }

// effects starts a command. The clock may have been set back, but not for the execution (L5).
func (m *reference) effects(c engine.Caller) *core.Effects {
	return &core.Effects{Now: m.now(), Actor: core.Actor{Type: c.Actor, ID: c.Principal}, RequestID: c.RequestID}
}

// find is the execution that a caller may mean.
func (m *reference) find(c engine.Caller, id base.GivenID) (*record, error) {
	r := m.records[id.UUID]
	if r == nil || !id.Names(r.x.ID) || !sees(c, r.x.Class.Namespace) {
		return nil, base.Errorf(base.CodeExecutionNotFound, "no such execution")
	}
	return r, nil
}

// settle applies due timers (L18).
func (m *reference) settle(r *record) {
	fx := m.effects(engine.Caller{})
	r.x.Settle(fx)
	m.keep(r, fx)
}

// settled is what a record will be once somebody settles it, and what that will tell.
func (m *reference) settled(r *record) (*record, []core.Event) {
	copied := &record{x: r.x.Clone(), history: slices.Clone(r.history), steps: r.steps, d: cloneDossier(r.d)}
	fx := m.effects(engine.Caller{})
	copied.x.Settle(fx)
	copied.absorb(fx)
	return copied, fx.Events
}

// keep takes over what a command did besides changing the record.
func (m *reference) keep(r *record, fx *core.Effects) {
	m.told[r.x.ID.UUID] = append(m.told[r.x.ID.UUID], fx.Events...)
	m.happen(fx)
	r.absorb(fx)
}

// now is the present for an execution: never before the latest of its times (L5).
func (r *record) now(now base.Time) base.Time { return max(now, r.x.Latest()) }

func (r *record) absorb(fx *core.Effects) {
	r.d.Apply(fx.Waits)
	for _, entry := range fx.History {
		at := slices.IndexFunc(r.history, func(old core.LeaseRecord) bool { return old.Epoch == entry.Epoch })
		if at >= 0 {
			r.history[at] = entry
		} else {
			r.history = append(r.history, entry)
		}
	}
	for _, patch := range fx.Patches {
		for i := range r.history {
			if a := &r.history[i].Attempt; r.history[i].Epoch == patch.Epoch {
				a.State, a.EndedAt, a.Failure = patch.State, patch.EndedAt, patch.Failure
			}
		}
	}
}

// on runs a command on an execution; a refusal leaves the record as settling left it (L76, L78).
func (m *reference) on(c engine.Caller, id base.GivenID, op func(r *record, fx *core.Effects) error) error {
	r, err := m.find(c, id)
	if err != nil {
		return err
	}
	m.settle(r)
	return m.apply(c, r, op)
}

func (m *reference) apply(c engine.Caller, r *record, op func(r *record, fx *core.Effects) error) error {
	before := r.x.Clone()
	fx := m.effects(c)
	fx.Now = r.now(fx.Now)
	if err := op(r, fx); err != nil {
		r.x = before
		return err
	}
	if m.records[r.x.ID.UUID] == r {
		m.keep(r, fx)
	} else { // it was deleted
		m.told[r.x.ID.UUID] = append(m.told[r.x.ID.UUID], fx.Events...)
	}
	return nil
}

// asWorker runs a worker's command: its events name the worker of the attempt.
func (m *reference) asWorker(c engine.Caller, id base.GivenID, f core.Fence, op func(x *core.Execution, fx *core.Effects, recorded *core.LeaseRecord) error) error {
	if err := f.Validate(); err != nil {
		return err
	}
	return m.on(c, id, func(r *record, fx *core.Effects) error {
		fx.Actor.Type = "worker"
		if r.x.Attempt != nil {
			fx.Actor.ID = r.x.Attempt.WorkerID
		}
		return op(r.x, fx, r.entry(f.Epoch))
	})
}

// entry is a copy of the lease history entry of an epoch.
func (r *record) entry(epoch int64) *core.LeaseRecord {
	for _, entry := range r.history {
		if entry.Epoch == epoch {
			return &entry
		}
	}
	return nil
}

// operate runs an operator's command: recorded answer, expectation, effect (L76, L77, L118).
func (m *reference) operate(c engine.Caller, name string, id base.GivenID, o engine.Operator, args any, op func(r *record, fx *core.Effects) (any, error)) (any, error) {
	r, err := m.find(c, id)
	scope := answerScope(id.UUID) + name + " " + c.Principal + " " + o.RequestKey
	if name == "delete" {
		scope = "gone " + scope // the answer outlives what it tells of
	} else if err != nil {
		return nil, err
	}
	if err == nil {
		m.settle(r)
	}
	text, _ := json.Marshal([]any{args, o.Reason, o.Expect})
	if known, ok := m.answers[scope]; ok && o.RequestKey != "" {
		if known.print != string(text) {
			return nil, base.Errorf(base.CodeIdempotencyConflict, "another request")
		}
		return known.value, nil
	}
	if err != nil {
		return nil, err
	}
	if err := r.x.CheckExpect(o.Expect); err != nil {
		return nil, err
	}
	var value any
	err = m.apply(c, r, func(r *record, fx *core.Effects) (err error) {
		value, err = op(r, fx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if o.RequestKey != "" && (name == "delete" || m.records[id.UUID] == r) {
		m.answers[scope] = recordedAnswer{print: string(text), value: value}
	}
	return value, nil
}

// submit is L79..L85.
func (m *reference) submit(c engine.Caller, s core.Submission) (engine.SubmitAnswer, error) {
	if s.Creator == "" {
		s.Creator = c.Principal
	}
	if err := s.Normalize(base.DefaultLimits()); err != nil {
		return engine.SubmitAnswer{}, err
	}
	var id base.ID
	if s.ID != nil {
		id = s.ID.ID()
	} else {
		id = base.IDOf(m.ids.next())
	}
	lane := m.lane(s.Lane, "submit")
	if err := s.CheckTimes(m.now()); err != nil {
		return engine.SubmitAnswer{}, err
	}
	known, err := m.known(&s, id)
	if err != nil {
		return engine.SubmitAnswer{}, err
	}
	if known != nil {
		return m.duplicate(*known, s.Priority), nil
	}
	if !lane.Settings.State.Accepting() {
		return engine.SubmitAnswer{}, base.Errorf(base.CodeLaneNotAccepting, "closed")
	}
	r := m.create(c, &s, id)
	return engine.SubmitAnswer{Outcome: "created", ID: id, PublicState: m.public(r.x), Priority: r.x.Priority}, nil
}

func (m *reference) duplicate(id base.ID, priority int) engine.SubmitAnswer {
	answer := engine.SubmitAnswer{Outcome: "duplicate", ID: id, Priority: priority}
	if r := m.records[id.UUID]; r != nil {
		m.settle(r)
		answer.PublicState, answer.Priority = m.public(r.x), r.x.Priority
	}
	return answer
}

func (m *reference) public(x *core.Execution) string {
	public, _ := core.Derive(x, m.lanes[x.Class.Lane].Settings.State)
	return public
}

// lane finds a lane or registers it (S1).
func (m *reference) lane(name, by string) *core.Lane {
	if m.lanes[name] == nil {
		lane := core.NewLane(name, by)
		m.lanes[name] = &lane
	}
	return m.lanes[name]
}

// sweep settles everything that is due, ends the counting of lanes and removes what retention no longer keeps. gone tells
// whether the engines have removed an execution that they may keep for up to a second longer.
func (m *reference) sweep(gone func(base.UUID) bool) {
	for _, id := range m.sorted() {
		m.settle(m.records[id])
	}
	m.signing.sweep(m.now())
	for _, lane := range m.lanes {
		if lane.Counting {
			lane.Counting = false
			for _, r := range m.records {
				if r.x.Status == core.Running && r.x.Class.Lane == lane.Name {
					takePlace(lane, r.x)
				}
			}
		}
	}
	for id, r := range m.records {
		if at, ok := r.removable(m.now()); ok && at <= m.now() && gone(id) {
			m.remove(id)
		}
	}
}

// remove takes every trace of an execution away but its events and its key (L141).
func (m *reference) remove(id base.UUID) {
	delete(m.records, id)
	maps.DeleteFunc(m.answers, func(scope string, _ recordedAnswer) bool { return strings.HasPrefix(scope, answerScope(id)) })
}

func answerScope(id base.UUID) string { return id.String() + " " }

// removable is the moment from which retention may have the execution (L139, L140); ok is false while it may not.
func (r *record) removable(now base.Time) (at base.Time, ok bool) {
	at, ok = r.x.RemoveAt(&core.LaneSettings{}, core.DefaultRetention())
	return max(at, r.kept), ok && r.x.CheckRemovable(now) == nil
}

// overdue lists what retention should have removed: it acts on whole seconds.
func (m *reference) overdue() []base.UUID {
	var late []base.UUID
	for _, id := range m.sorted() {
		if at, ok := m.records[id].removable(m.now()); ok && at.Add(base.Second) <= m.now() {
			late = append(late, id)
		}
	}
	return late
}

// sorted lists the ids in order.
func (m *reference) sorted() []base.UUID {
	return slices.SortedFunc(maps.Keys(m.records), func(a, b base.UUID) int { return bytes.Compare(a[:], b[:]) })
}

func takePlace(lane *core.Lane, x *core.Execution) {
	if key := "lane:" + lane.Name; lane.Settings.MaxConcurrent > 0 && !slices.Contains(x.Holds, key) {
		x.Holds = append(slices.Clone(x.Holds), key)
	}
}

// digest says how everything stands once due timers have acted: what a command that does nothing leaves as it is.
func (m *reference) digest() []string {
	var all []string
	for _, id := range m.sorted() {
		r := m.records[id]
		later, told := m.settled(r)
		all = append(all, fmt.Sprintf("%s %s %s next %s epoch %d since %s, changed %s, held %v, priority %d, %d steps, %d events, %d records of waits", id, later.x.Status,
			later.x.Reason, later.x.Next, later.x.LeaseEpoch, later.x.StatusSince, later.x.LastMutationAt, later.x.Held != nil, later.x.Priority,
			len(r.steps), len(m.told[id])+len(told), recordsIn(&later.d)))
	}
	return all
}

// stale reports whether a command carries a fence that speaks for no lease: neither for the one that is held, nor for one that
// lapsed and that was not taken over (L34, L36).
func (m *reference) stale(cmd command) bool {
	var id base.GivenID
	var f core.Fence
	switch c := cmd.(type) {
	case workerCommand:
		id, f = c.ID, c.Fence
	case operatorCommand:
		if c.Fence == nil {
			return false
		}
		id, f = c.ID, *c.Fence
	case createCommand:
		id, f = c.ID, c.Cmd.Fence
	case suspendCommand:
		id, f = c.ID, c.Cmd.Fence
	default:
		return false
	}
	r := m.records[id.UUID]
	if r == nil {
		return false
	}
	later, _ := m.settled(r)
	x := later.x
	if x.Lease != nil {
		return f != fenceOf(x)
	}
	last := x.LastLease
	return last == nil || last.End != core.EndExpired || f != core.Fence{LeaseID: last.ID, Epoch: last.Epoch, AttemptID: last.AttemptID}
}

// idSource gives all participants the same ids: the n-th id that a command asks for is the same everywhere.
type idSource struct{ command, n uint32 }

func (s *idSource) begin(command uint32) { s.command, s.n = command, 0 }

func (s *idSource) next() base.UUID {
	s.n++
	return base.UUID{0: 1, 2: byte(s.command >> 16), 3: byte(s.command >> 8), 4: byte(s.command), 6: 0x70, 8: 0x80, 14: byte(s.n >> 8), 15: byte(s.n)}
}
