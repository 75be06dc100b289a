package core

import (
	"encoding/binary"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

// storyStart is when every story begins.
const storyStart base.Time = 1_700_000_000_000

// story is the life of one execution, told command by command. It keeps what a store would keep, and holds the execution to
// the invariants after every command.
type story struct {
	t       tester
	x       *Execution
	now     base.Time
	jitter  float64
	lane    *Lane
	events  []Event
	history map[int64]LeaseRecord
	d       WaitState
	keys    *keyring.Ring
	books   *BudgetSet // of the transaction under way; nil: no budgets

	grantKey keyring.GrantKey // of the last grant
	minted   uint64
	acquired map[int64]int // lease.acquired by epoch
	closed   map[int64]int // exit events by epoch, late ones excepted
	ended    int           // execution.completed
	told     Status        // what a reader of the log believes; StatusNone: some status that the gate gives
	seen     *Execution    // as the last check found it
}

func policyOf(t tester, text string) *Policy {
	t.Helper()
	policy, err := ParsePolicy([]byte(text))
	if err != nil {
		t.Fatalf("policy %s: %v", text, err)
	}
	return policy
}

// begin tells the submission of an execution with that policy, changed as edits say.
func begin(t tester, policy string, edits ...func(*Submission)) *story {
	t.Helper()
	s := &story{
		t: t, now: storyStart, history: map[int64]LeaseRecord{}, acquired: map[int64]int{}, closed: map[int64]int{},
		lane: &Lane{Name: "default", Settings: LaneSettings{State: LaneActive}}, keys: storyKeys(t),
	}
	submission := &Submission{Kind: "charge", Creator: "shop", Input: Payload{Data: []byte("in")}, Policy: policyOf(t, policy)}
	for _, edit := range edits {
		edit(submission)
	}
	if err := submission.Normalize(base.DefaultLimits()); err != nil {
		t.Fatalf("submission: %v", err)
	}
	class := submission.Class()
	fx := s.effects()
	s.x = NewExecution(fx, submission, base.IDOf(s.mint()), &class)
	s.keep(fx)
	return s
}

func (s *story) mint() base.UUID {
	s.minted++
	var u base.UUID
	u[0] = 1
	binary.BigEndian.PutUint64(u[8:], s.minted)
	return u
}

func (s *story) effects() *Effects {
	return &Effects{Now: s.now, Actor: Actor{Type: "client", ID: "tester"}, RequestID: "r-1", Jitter: s.jitter, Budgets: s.books}
}

// do runs a command as the engine does: settle, then the command, which leaves no trace if it is refused (L78).
func (s *story) do(command func(fx *Effects) error) error {
	s.t.Helper()
	fx := s.effects()
	s.x.Settle(fx)
	s.keep(fx)
	settled, stored := s.x.Clone(), copyOfState(&s.d)

	after := s.effects()
	after.Now = fx.Now
	mark := s.books.Mark()
	err := command(after)
	wantUntouched(s.t, &stored, &s.d)
	if err != nil {
		s.books.Back(mark)
		if !reflect.DeepEqual(settled, s.x) {
			s.t.Fatalf("refused with %v, but the record changed: %s", err, cmp.Diff(settled, s.x))
		}
		if len(after.Events)+len(after.History)+len(after.Patches)+len(after.Waits) > 0 {
			s.t.Fatalf("refused with %v, but it left traces: %+v", err, after)
		}
		return err
	}
	s.checkTelling(settled, after)
	s.keep(after)
	return nil
}

// settle is the sweep.
func (s *story) settle() {
	s.t.Helper()
	_ = s.do(func(*Effects) error { return nil })
}

// pass moves the clock on and sweeps.
func (s *story) pass(ms base.Millis) {
	s.t.Helper()
	s.now = s.now.Add(ms)
	s.settle()
}

// keep does what a store does with effects.
func (s *story) keep(fx *Effects) {
	s.t.Helper()
	for _, record := range fx.History {
		if _, there := s.history[record.Epoch]; there != record.Replaces {
			s.t.Fatalf("epoch %d: entry there already: %v, replaces: %v", record.Epoch, there, record.Replaces)
		}
		s.history[record.Epoch] = record
	}
	for _, patch := range fx.Patches {
		record, there := s.history[patch.Epoch]
		if !there || record.Attempt.State.Final() {
			s.t.Fatalf("patch of epoch %d finds %+v", patch.Epoch, record)
		}
		record.Attempt.State, record.Attempt.EndedAt, record.Attempt.Failure = patch.State, patch.EndedAt, patch.Failure
		s.history[patch.Epoch] = record
	}
	for _, event := range fx.Events {
		s.hear(event)
	}
	s.events = append(s.events, fx.Events...)
	s.keepWaits(fx.Waits)
	s.check()
}

// recorded is the history entry of an epoch, nil when there is none.
func (s *story) recorded(epoch int64) *LeaseRecord {
	record, there := s.history[epoch]
	if !there {
		return nil
	}
	return &record
}

func (s *story) entries() []LeaseRecord {
	var entries []LeaseRecord
	for _, record := range s.history {
		entries = append(entries, record)
	}
	slices.SortFunc(entries, func(a, b LeaseRecord) int { return int(a.Epoch - b.Epoch) })
	return entries
}

// kinds lists the kinds of the events from the n-th on.
func (s *story) kinds(from int) []string {
	var kinds []string
	for _, event := range s.events[from:] {
		kinds = append(kinds, event.Kind)
	}
	return kinds
}

// last is the data of the newest event, which must be of that kind.
func (s *story) last(kind string) map[string]any {
	s.t.Helper()
	event := s.events[len(s.events)-1]
	if event.Kind != kind {
		s.t.Fatalf("the newest event is %s, want %s", event.Kind, kind)
	}
	return dataOf(s.t, event)
}

func dataOf(t tester, event Event) map[string]any {
	t.Helper()
	var data map[string]any
	if err := json.Unmarshal(event.Data.JSON(), &data); err != nil {
		t.Fatalf("%s: data %s: %v", event.Kind, event.Data.JSON(), err)
	}
	return data
}

// The commands.

func (s *story) claim() Fence { return s.claimFor(30 * base.Second) }

func (s *story) claimFor(ttl base.Millis) Fence {
	s.t.Helper()
	_ = s.do(func(fx *Effects) error {
		if !s.x.Queued() && s.x.Status != Granted {
			s.t.Fatalf("claim of an execution that is %s", s.x.Status)
		}
		s.x.Acquire(fx, Acquisition{LeaseID: s.mint(), AttemptID: s.mint(), WorkerID: "w", InstanceID: "w-1", TTL: ttl})
		return nil
	})
	return s.fence()
}

func (s *story) fence() Fence {
	return Fence{LeaseID: s.x.Lease.ID, Epoch: s.x.LeaseEpoch, AttemptID: s.x.Attempt.ID}
}

func (s *story) renew(f Fence, ttl base.Millis) error {
	return s.do(func(fx *Effects) error { return s.x.Renew(fx, f, ttl) })
}

func (s *story) complete(f Fence, result *Payload) (a CompleteAnswer, err error) {
	err = s.do(func(fx *Effects) error {
		a, err = s.x.Complete(fx, Completion{Fence: f, Result: result, Recorded: s.recorded(f.Epoch)})
		return err
	})
	return a, err
}

func (s *story) fail(f Fence, class string) (FailAnswer, error) {
	return s.failWith(FailCommand{Fence: f, Class: class, Message: "broke"})
}

func (s *story) failWith(c FailCommand) (a FailAnswer, err error) {
	err = s.do(func(fx *Effects) error {
		c.Recorded = s.recorded(c.Fence.Epoch)
		a, err = s.x.Fail(fx, c)
		return err
	})
	return a, err
}

func (s *story) delay(f Fence, until base.Time) (a LeaveAnswer, err error) {
	err = s.do(func(fx *Effects) error {
		a, err = s.x.Delay(fx, DelayCommand{Fence: f, Until: until, Recorded: s.recorded(f.Epoch)})
		return err
	})
	return a, err
}

func (s *story) release(f Fence) (a LeaveAnswer, err error) {
	err = s.do(func(fx *Effects) error {
		a, err = s.x.Release(fx, ReleaseCommand{Fence: f, Reason: "shutdown", Recorded: s.recorded(f.Epoch)})
		return err
	})
	return a, err
}

func (s *story) cancel(f *Fence) (already bool, err error) {
	c := CancelCommand{Fence: f, By: "ann", Reason: "enough"}
	if f != nil {
		c.Recorded = s.recorded(f.Epoch)
	}
	err = s.do(func(fx *Effects) error {
		already, err = s.x.Cancel(fx, c)
		return err
	})
	return already, err
}

func (s *story) replay(c ReplayCommand) error {
	c.Lane = s.lane
	return s.do(func(fx *Effects) error { return s.x.Replay(fx, c) })
}

func (s *story) hold() (changed bool, err error) {
	err = s.do(func(fx *Effects) error {
		changed, err = s.x.PlaceHold(fx, "ann", "look into it")
		return err
	})
	return changed, err
}

func (s *story) releaseHold() (changed bool, err error) {
	err = s.do(func(fx *Effects) error {
		changed, err = s.x.ReleaseHold(fx, "done")
		return err
	})
	return changed, err
}

func (s *story) revoke(hold bool) (a RevokeAnswer, err error) {
	err = s.do(func(fx *Effects) error {
		a, err = s.x.Revoke(fx, RevokeCommand{By: "ann", Reason: "stuck", Hold: hold})
		return err
	})
	return a, err
}

// The statuses that other pages bring about, made by hand through the routines they will call.

func (s *story) grant(ms base.Millis, slots ...string) {
	s.t.Helper()
	err := s.do(func(fx *Effects) (err error) {
		s.x.Holds = append(slots, s.x.Holds...)
		s.grantKey, err = s.x.IssueGrant(fx, s.keys, GrantCommand{WorkerID: "w", InstanceID: "w-2", TTL: ms, RequestKey: "r"})
		return err
	})
	if err != nil {
		s.t.Fatalf("grant: %v", err)
	}
}

// waitForChildren waits for one child that has not ended.
func (s *story) waitForChildren() {
	s.t.Helper()
	must[ChildrenWaitAnswer](s.t)(s.waitFor(s.fence()))
}

// depend and satisfy raise and clear a dependency.
func (s *story) depend() {
	s.t.Helper()
	_ = s.do(func(fx *Effects) error {
		s.x.Dependency = WaitingForChildren
		s.x.pass(fx, "")
		return nil
	})
}

func (s *story) satisfy() {
	s.t.Helper()
	_ = s.do(func(fx *Effects) error {
		if c := s.x.Children; c != nil && c.Wait != nil && s.x.waitsForChildren(c.Wait.Number) {
			s.x.EdgeResolved(&Edge{Wait: c.Wait.Number, State: EdgeSatisfied})
			s.x.DueChildren(fx)
			return nil
		}
		s.x.Dependency = ReasonNone
		if s.x.Status == Blocked {
			s.x.pass(fx, "dependencies")
		}
		return nil
	})
}

// delayFor gives a waiting execution a delay, as a resume with a delay does.
func (s *story) delayFor(ms base.Millis) {
	s.t.Helper()
	_ = s.do(func(fx *Effects) error {
		s.x.DelayUntil, s.x.DelayReason = fx.Now.Add(ms), WaitingForResumeDelay
		s.x.gate(fx.Now)
		s.x.emitDelayed(fx)
		return nil
	})
}

func (s *story) blockByQuota() {
	s.t.Helper()
	_ = s.do(func(fx *Effects) error {
		s.x.BlockedOn = "slots:api"
		s.x.become(fx.Now, Blocked, WaitingForQuota)
		s.x.emitBlocked(fx)
		return nil
	})
}

func (s *story) want(status Status, reason Reason, next Next) {
	s.t.Helper()
	if s.x.Status != status || s.x.Reason != reason || s.x.Next != next {
		s.t.Fatalf("is %s %s next=%s, want %s %s next=%s", s.x.Status, s.x.Reason, s.x.Next, status, reason, next)
	}
}

// inEveryStatus runs a test for each of the eleven statuses, on an execution brought there.
func inEveryStatus(t *testing.T, policy string, test func(t *testing.T, s *story, status Status)) {
	for _, status := range Statuses() {
		t.Run(status.String(), func(t *testing.T) {
			t.Parallel()
			test(t, broughtTo(t, policy, status), status)
		})
	}
}

// broughtTo makes an execution of that status, with one attempt behind it where the status allows.
func broughtTo(t tester, policy string, status Status) *story {
	s := begin(t, policy)
	switch status {
	case Ready:
	case Delayed:
		s.claim()
		must[LeaveAnswer](t)(s.delay(s.fence(), s.now.Add(5*base.Minute)))
	case Blocked:
		s.depend()
	case Granted:
		s.grant(5 * base.Second)
	case Running:
		s.claim()
	case Suspended:
		s.claim()
		s.suspend()
	case Succeeded:
		must[CompleteAnswer](t)(s.complete(s.claim(), &Payload{Data: []byte("out"), Size: 3, ContentType: base.DefaultContentType}))
	case Failed:
		must[FailAnswer](t)(s.fail(s.claim(), classPermanent))
	case Cancelled:
		must[bool](t)(s.cancel(nil))
	case Expired:
		s.claim()
		_ = s.do(func(fx *Effects) error { s.x.expire(fx); return nil })
	case Skipped:
		s.depend()
		_ = s.do(func(fx *Effects) error {
			s.x.end(fx, ending{status: Skipped, reason: DependencyImpossible, edges: []string{"a"}})
			return nil
		})
	}
	if s.x.Status != status {
		t.Fatalf("brought to %s, want %s", s.x.Status, status)
	}
	return s
}

// statusEvents are the kinds of E28 that tell a change of status.
var statusEvents = []string{
	"execution.submitted", "execution.ready", "execution.delayed", "execution.blocked", "grant.issued", "grant.ended",
	"lease.acquired", "lease.released", "lease.expired", "lease.revoked", "attempt.ended", "execution.suspended",
	"execution.waiting_children", "execution.resumed", "execution.completed", "execution.replayed",
}

// checkTelling holds one command to L147: one status event for a change of status, none without, late commands excepted.
func (s *story) checkTelling(before *Execution, fx *Effects) {
	s.t.Helper()
	count, late := 0, false
	for _, event := range fx.Events {
		takeover := event.Kind == "attempt.ended" && !strings.Contains(string(event.Data.JSON()), `"lease"`)
		if slices.Contains(statusEvents, event.Kind) && !takeover {
			count++
			late = late || strings.Contains(string(event.Data.JSON()), `"late":true`)
		}
	}
	silent := before.blockedByAdmission() && s.x.Status == Ready
	changed := before.Status != s.x.Status && !silent
	if changed && count != 1 || !changed && count != 0 && !late {
		s.t.Fatalf("%s -> %s told by %d events (L147)", before.Status, s.x.Status, count)
	}
}
