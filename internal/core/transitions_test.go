package core

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

var updateDocs = flag.Bool("update", false, "rewrite the generated pages of docs")

func TestL41_the_page_of_the_state_machine_is_generated_from_the_table(t *testing.T) {
	t.Parallel()
	page := filepath.Join("..", "..", "docs", "state-machine.md")
	if *updateDocs {
		if err := os.WriteFile(page, []byte(StateMachine()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(StateMachine(), string(committed)); diff != "" {
		t.Errorf("run go test ./internal/core -run TestL41 -update: %s", diff)
	}
}

// tablePolicy lets every timer of the table be there: a retry for the failures, an attempt timeout, reclaims.
const tablePolicy = `{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":1000}},"timeout_policy":{"attempt_timeout_ms":3600000}}`

// commands run the operations of the table; fence is that of the last lease.
func (s *story) run(operation string, f Fence) error {
	var err error
	switch operation {
	case "claim_resumed":
		return s.take(s.x.CheckClaimResumed)
	case "reclaim":
		return s.take(s.x.CheckReclaim)
	case "operator_claim":
		return s.take(s.x.CheckOperatorClaim)
	case "grant (one id)":
		return s.grantOne(Targeted{Lane: s.lane})
	case "claim_from_grant":
		_, err = s.claimGrant(s.someGrantKey(), "w", "w-2")
	case "renew":
		return s.renew(f, 0)
	case "progress":
		percent := 50
		return s.do(func(fx *Effects) error { return s.x.ReportProgress(fx, f, &percent, nil) })
	case "complete":
		_, err = s.complete(f, nil)
	case "fail":
		_, err = s.fail(f, "")
	case "delay":
		_, err = s.delay(f, s.now.Add(base.Minute))
	case "wait_for_children":
		_, err = s.waitFor(f)
	case "suspend":
		_, err = s.suspendFor(f, operatorOnly)
	case "release":
		_, err = s.release(f)
	case "cancel":
		_, err = s.cancel(nil)
	case "revoke":
		_, err = s.revoke(false)
	case "resume":
		_, err = s.resumeWith(ResumeCommand{By: "ann"})
	case "replay":
		return s.replay(ReplayCommand{By: "ann"})
	case "set_priority":
		return s.do(func(fx *Effects) error { _, err := s.x.SetPriority(fx, 7); return err })
	case "hold":
		_, err = s.hold()
	case "release_hold":
		_, err = s.releaseHold()
	case "set_tags":
		value := "7"
		return s.do(func(fx *Effects) error {
			_, err := s.x.SetTags(fx, map[string]*string{"tenant": &value})
			return err
		})
	default:
		s.t.Fatalf("no operation %q", operation)
	}
	return err
}

// take is a targeted claim.
func (s *story) take(check func(Targeted) error) error {
	return s.do(func(fx *Effects) error {
		if err := check(Targeted{Lane: s.lane}); err != nil {
			return err
		}
		s.x.Acquire(fx, Acquisition{LeaseID: s.mint(), AttemptID: s.mint(), WorkerID: "w", InstanceID: "w-9", TTL: base.Minute})
		return nil
	})
}

// ofOtherPages are the rows whose operations are not part of this package's lifecycle commands: picks go through
// Acquire and IssueGrant once they have chosen, the others belong to flows and budgets.
var ofOtherPages = []string{"claim", "grant", "sub-flow ended", "admission cause removed", "hard breach of a budget"}

// joinRows are the rows that the end of an upstream brings about: what it makes of the edge from it.
var joinRows = map[string]EdgeState{"join satisfied": EdgeSatisfied, "join impossible": EdgeImpossible}

// timerRows are the rows that a timer brings about, by its name.
var timerRows = map[string]string{
	"deadline due": "deadline", "attempt timeout due": "attempt timeout", "lease lapse due": "lease lapse",
	"grant expiry due": "grant expiry", "delay due": "delay", waitTimeoutRow: "suspension timeout",
}

// waitTimeoutRow is shared by suspensions and waits for children, whose cell is that for blocked.
const waitTimeoutRow = "timeout of a wait due"

func TestL41_LC2_every_cell_of_the_table_holds(t *testing.T) {
	t.Parallel()
	for _, row := range Transitions() {
		if slices.Contains(ofOtherPages, row.Operation) {
			continue
		}
		for _, status := range Statuses() {
			t.Run(row.Rule+"_"+row.Operation+"/"+status.String(), func(t *testing.T) {
				t.Parallel()
				if edge, ok := joinRows[row.Operation]; ok {
					checkJoinCell(t, row.Cell(status), edge, status)
					return
				}
				if timer, ok := timerRows[row.Operation]; ok {
					cell := row.Cell(status)
					if row.Operation == waitTimeoutRow && status == Blocked {
						checkChildrenTimeoutCell(t, cell)
						return
					}
					checkTimerCell(t, cell, timer, status)
					return
				}
				checkCell(t, row, status)
			})
		}
	}
}

func checkCell(t *testing.T, row Transition, status Status) {
	cell := row.Cell(status)
	if cell.Kind == CellFences {
		checkFenceCell(t, row, status)
		return
	}
	s := forRow(t, row.Operation, status)
	before := s.x.Clone()
	var f Fence
	if s.x.Lease != nil {
		f = s.fence()
	}
	err := s.run(row.Operation, f)
	if status == Cancelled && row.Operation == "cancel" {
		cell = Cell{Kind: CellStays}
	}
	if status == Skipped && row.Operation == "replay" {
		cell.Next = NextInitial // it never had an attempt
	}
	if status == Cancelled && row.Operation == "replay" {
		cell.Next = NextInitial
	}
	wantCell(t, cell, before, s.x, err)
}

// forRow brings an execution into a status with the `next` for which the row's cells are written (L74 c).
func forRow(t *testing.T, operation string, status Status) *story {
	next := map[string]Next{"claim_resumed": NextResume, "reclaim": NextReclaim}[operation]
	if next == NextNone || !status.Queues() && status != Granted {
		return broughtTo(t, tablePolicy, status)
	}
	s := begin(t, tablePolicy)
	s.claim()
	if next == NextResume {
		must[LeaveAnswer](t)(s.release(s.fence()))
	} else {
		s.pass(30 * base.Second)
	}
	s.queueAs(status)
	return s
}

// queueAs moves a ready execution into another waiting status and leaves its next alone.
func (s *story) queueAs(status Status) {
	switch status {
	case Delayed:
		s.delayFor(base.Minute)
	case Blocked:
		s.depend()
	case Granted:
		s.grant(5 * base.Second)
	}
}

func wantCell(t *testing.T, cell Cell, before, after *Execution, err error) {
	t.Helper()
	if cell.Kind == CellRefuses {
		refusal := wantCode(t, err, cell.Code)
		if cell.Code == base.CodeExecutionNotActive {
			wantNotActive(t, refusal, after)
		}
		return
	}
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	ok := false
	switch cell.Kind {
	case CellBecomes:
		ok = after.Status == cell.Status
	case CellGates:
		next := cell.Next
		if next == NextNone {
			next = before.Next
		}
		ok = after.Status.Queues() && after.Next == next
	case CellStays:
		ok = after.Status == before.Status && after.Reason == before.Reason && after.Next == before.Next
	}
	if !ok {
		t.Fatalf("%s %s -> %s %s next=%s, the table says %s", before.Status, before.Reason, after.Status, after.Reason, after.Next, cell)
	}
}

func wantNotActive(t *testing.T, err *base.Error, x *Execution) {
	t.Helper()
	want := map[string]any{
		"status": x.Status.String(), "reason": x.Reason.String(), "terminal_outcome": x.Status.Outcome(), "lease_epoch": x.LeaseEpoch,
	}
	if x.Attempt != nil {
		want["attempt_id"], want["attempt_index"] = x.Attempt.ID.String(), x.Attempt.Index
	}
	if diff := cmp.Diff(want, err.Details); diff != "" {
		t.Fatalf("L35: %s", diff)
	}
}

// checkFenceCell tells apart what the fence check makes of a waiting execution: never leased, given back, revoked, lapsed.
// The last is late, and the command acts as from running.
func checkFenceCell(t *testing.T, row Transition, status Status) {
	if !status.Queues() && status != Granted {
		s := broughtTo(t, tablePolicy, status)
		f := Fence{LeaseID: s.mint(), Epoch: 1, AttemptID: s.mint()}
		wantNotActive(t, wantCode(t, s.run(row.Operation, f), base.CodeExecutionNotActive), s.x)
		return
	}
	fresh := begin(t, tablePolicy)
	fresh.queueAs(status)
	wantCode(t, fresh.run(row.Operation, Fence{fresh.mint(), 1, fresh.mint()}), base.CodeStaleLease)

	back := begin(t, tablePolicy)
	f := back.claim()
	if row.Operation == "release" {
		must[LeaveAnswer](t)(back.delay(f, back.now))
	} else {
		must[LeaveAnswer](t)(back.release(f))
	}
	back.queueAs(status)
	wantNotActive(t, wantCode(t, back.run(row.Operation, f), base.CodeExecutionNotActive), back.x)

	revoked := begin(t, tablePolicy)
	f = revoked.claim()
	must[RevokeAnswer](t)(revoked.revoke(false))
	revoked.queueAs(status)
	wantCode(t, revoked.run(row.Operation, f), base.CodeLeaseRevoked)

	late := begin(t, tablePolicy)
	f = late.claim()
	late.pass(30 * base.Second)
	late.queueAs(status)
	before := late.x.Clone()
	cell := row.Running
	if cell.Kind == CellStays {
		cell = refuses(base.CodeLeaseExpired)
	}
	err := late.run(row.Operation, f)
	wantCell(t, cell, before, late.x, err)
	if err == nil && late.last(late.events[len(late.events)-1].Kind)["late"] != true {
		t.Fatalf("L36: %+v is not marked late", late.events[len(late.events)-1])
	}
}

// checkTimerCell: the timer is armed exactly in the statuses of its row, and does what the cell says when it is due.
func checkTimerCell(t *testing.T, cell Cell, name string, status Status) {
	s := broughtTo(t, tablePolicy, status)
	if cell.Kind == CellVaries {
		checkSuspensionTimeoutCell(t)
		return
	}
	if name == "deadline" && !status.Terminal() {
		s.x.DeadlineAt = s.now.Add(base.Second)
		s.x.arm()
	}
	all := timers()
	timer := all[slices.IndexFunc(all[:], func(c timer) bool { return c.name == name })]
	due := timer.due(s.x)
	if cell.Kind == CellUnseen {
		if due != 0 {
			t.Fatalf("the %s is armed in %s", name, status)
		}
		return
	}
	if name == "attempt timeout" {
		must[base.Millis](t)(0, s.renew(s.fence(), 24*base.Hour))
	}
	before := s.x.Clone()
	s.now = due - 1
	s.settle()
	if s.x.Status != status {
		t.Fatalf("the %s acted early", name)
	}
	s.now = due
	s.settle()
	wantCell(t, cell, before, s.x, nil)
	if s.x.LastMutationAt != due {
		t.Fatalf("acted as of %s, was due at %s", s.x.LastMutationAt, due)
	}
}

// checkSuspensionTimeoutCell: what a suspension asked for happens when it is due, and not before (W75).
func checkSuspensionTimeoutCell(t *testing.T) {
	for behavior, cell := range map[string]Cell{
		BehaviorFail: becomes(Failed), BehaviorCancel: becomes(Cancelled), BehaviorExpire: becomes(Expired),
		BehaviorAutoResume: gatesTo(NextResume), BehaviorEscalate: becomes(Suspended),
	} {
		s := begin(t, tablePolicy)
		must[SuspendAnswer](t)(s.suspendFor(s.claim(), timeoutOnly, timedOut(base.Minute, behavior)))
		before := s.x.Clone()
		s.pass(base.Minute - 1)
		if s.x.Status != Suspended {
			t.Fatalf("%s acted early", behavior)
		}
		s.pass(1)
		wantCell(t, cell, before, s.x, nil)
	}
}

// checkChildrenTimeoutCell: a wait for children is over when it is due, and not before (F41).
func checkChildrenTimeoutCell(t *testing.T, cell Cell) {
	s := begin(t, tablePolicy)
	must[ChildrenWaitAnswer](t)(s.waitFor(s.claim(), func(c *ChildrenWaitCommand) { c.TimeoutMS = base.Minute }))
	before := s.x.Clone()
	s.pass(base.Minute - 1)
	if s.x.Status != Blocked {
		t.Fatal("it acted early")
	}
	s.pass(1)
	wantCell(t, cell, before, s.x, nil)
	if cause := s.last("execution.ready")["cause"]; cause != CauseChildrenTimeout {
		t.Fatalf("cause %v", cause)
	}
}

// checkJoinCell: the last edge decides the join of a member that is blocked on it, and changes nothing of one that is not (F25, F26). A wait
// for children passes the gate either way (F41).
func checkJoinCell(t *testing.T, cell Cell, edge EdgeState, status Status) {
	s := broughtTo(t, tablePolicy, status)
	s.x.Member = &Membership{Name: "m", Join: Join{JoinSpec: JoinSpec{Policy: AnyOf}, N: 2, Satisfied: 1, State: JoinHeld}}
	if status == Blocked {
		s.x.Member.Join = Join{N: 1, State: JoinPending}
	}
	before := s.x.Clone()
	s.resolve(Edge{State: edge})
	wantCell(t, cell, before, s.x, nil)
	if status != Blocked {
		return
	}
	parent := begin(t, tablePolicy)
	parent.claim()
	parent.waitForChildren()
	before = parent.x.Clone()
	parent.resolve(Edge{State: edge, Wait: 1})
	wantCell(t, gatesTo(NextResume), before, parent.x, nil)
}

// resolve tells the execution of an edge that has left pending, as the engine does.
func (s *story) resolve(e Edge) {
	s.t.Helper()
	_ = s.do(func(fx *Effects) error {
		s.x.EdgeResolved(&e)
		if s.x.DueChildren(fx) {
			return nil
		}
		switch s.x.DueJoin(true) {
		case JoinHeld:
			s.x.HoldJoin(fx, false)
		case JoinBroken:
			s.x.BreakJoin(fx, true, []string{"a"})
		}
		return nil
	})
}
