package core

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// waitChaos drives one execution by random commands about waits, among all others. The story holds it to WI7, WI9, WI11, WI12, WI14
// and WI20 after every step, chaos to WI16 and WI17.
type waitChaos struct {
	*chaos
	asked []askedSuspend
}

// askedSuspend is a suspend that was answered.
type askedSuspend struct {
	command SuspendCommand
	answer  SuspendAnswer
	run     int
}

// The first are drawn most often.
var waitPolicies = []string{
	`{"timeout_policy":{"attempt_timeout_ms":2000,"execution_deadline_ms":1500},"max_replay_count":5}`,
	`{"suspension_policy":{"default_timeout_ms":900,"timeout_behavior":"auto_resume_with_timeout_signal"},"slots_while_waiting":"hold"}`,
	`{}`,
	`{"max_signals_per_execution":4,"lease_grace_ms":300,"max_replay_count":2}`,
	`{"retry_policy":{"max_retries":2,"backoff":{"initial_ms":400}},"suspension_policy":{"default_timeout_ms":700,"timeout_behavior":"escalate"}}`,
}

func TestWI7_WI9_WI10_WI11_WI12_WI13_WI14_WI15_WI16_WI17_WI20_hold_after_every_step_of_random_waits(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	done := map[string]int{}
	life := func(t *rapid.T) {
		c := &waitChaos{chaos: &chaos{draw: t, done: map[string]int{}}}
		c.story = begin(t, rapid.SampledFrom(waitPolicies).Draw(t, "policy"))
		names, actions := c.everything()
		for range rapid.IntRange(20, 80).Draw(t, "steps") {
			name := rapid.SampledFrom(names).Draw(t, "action")
			c.jitter = rapid.Float64Range(0, 0.999).Draw(t, "u")
			if actions[name]() == nil {
				c.done[name]++
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for name, n := range c.done {
			done[name] += n
		}
		for _, end := range c.d.SuspensionEnds {
			done["ended by "+string(end.Cause)]++
		}
	}
	kinds, _ := (&waitChaos{chaos: &chaos{}}).everything()
	for _, cause := range []SuspensionCause{CauseSignal, CauseOperator, CauseTimeout, CauseEarlySignals, CauseCancelled, CauseEnded} {
		kinds = append(kinds, "ended by "+string(cause))
	}
	never := func() []string {
		return slices.DeleteFunc(slices.Clone(kinds), func(name string) bool { return done[name] > 0 })
	}
	testseed.Rounds(t, 1, 30, never, life)
}

// everything lists the actions about waits and those of chaos that let waits happen, in the order of how often they are drawn.
func (c *waitChaos) everything() ([]string, map[string]func() error) {
	_, byName := c.actions()
	names := []string{
		"claim", "create", "signal", "suspend", "claim", "approve", "create", "signal", "clock", "suspend", "link", "decide", "suspend again",
		"resume by operator", "replay", "close", "revoke link", "reissue", "cancel", "release", "fail", "complete", "revoke", "hold", "release_hold",
	}
	complete := byName["complete"]
	byName["complete"] = func() error { return c.rarely(complete) }
	hold := byName["hold"]
	byName["hold"] = func() error { return c.rarely(hold) }
	byName["clock"] = c.moveOn
	for name, run := range map[string]func() error{
		"create": c.create, "close": c.closeOne, "suspend": c.suspendRandomly, "suspend again": c.suspendAgain, "signal": c.signalRandomly,
		"approve": c.approveRandomly, "link": c.linkRandomly, "decide": c.decideRandomly, "revoke link": c.revokeRandomly,
		"reissue": c.reissueRandomly, "resume by operator": c.resumeRandomly,
	} {
		byName[name] = run
	}
	return names, byName
}

// moveOn lets time pass: seldom so little that nothing happens.
func (c *waitChaos) moveOn() error {
	c.now = c.now.Add(rapid.SampledFrom([]base.Millis{400, 900, 1600, 1, -50}).Draw(c.draw, "ms"))
	if rapid.Bool().Draw(c.draw, "sweep") {
		c.settle()
	}
	return nil
}

func (c *waitChaos) key() string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(c.draw, "key")
}

func (c *waitChaos) create() error {
	return c.worker(func(f Fence) (repeated, late bool, err error) {
		ms := rapid.Int64Range(1, 2500).Draw(c.draw, "expires")
		late = c.x.Lease == nil
		a, err := c.createWaitpoint(f, c.key(), func(cmd *CreateWaitpointCommand) {
			cmd.ExpiresInMS, cmd.IdempotencyKey = &ms, rapid.SampledFrom([]string{"", "", "k1"}).Draw(c.draw, "idempotency")
		})
		return a.Repeated, late, err
	})
}

// someWaitpoint is any that ever was, more often one of the last.
func (c *waitChaos) someWaitpoint() (base.UUID, bool) {
	all := c.d.Waitpoints
	if len(all) == 0 {
		return base.UUID{}, false
	}
	if open := c.x.openWaitpoints(); len(open) > 0 && rapid.IntRange(0, 3).Draw(c.draw, "open") > 0 {
		return rapid.SampledFrom(open).Draw(c.draw, "waitpoint").ID, true
	}
	return rapid.SampledFrom(all).Draw(c.draw, "waitpoint").ID, true
}

func (c *waitChaos) closeOne() error {
	id, ok := c.someWaitpoint()
	if !ok {
		return errIdle
	}
	_, err := c.closeWaitpoint(nil, id)
	return err
}

// drawSuspend binds some pending waitpoints and fresh ones and asks for something about their keys.
func (c *waitChaos) drawSuspend() SuspendCommand {
	cmd := SuspendCommand{IdempotencyKey: rapid.SampledFrom([]string{"", "one", "two", "three"}).Draw(c.draw, "idempotency")}
	keys := map[string]bool{}
	for _, open := range c.x.openWaitpoints() {
		if !open.Active && !keys[open.Key] && rapid.Bool().Draw(c.draw, "adopt") {
			keys[open.Key] = true
			cmd.Waitpoints = append(cmd.Waitpoints, pending(open.ID)...)
		}
	}
	if key := c.key(); !keys[key] && (len(keys) == 0 || rapid.Bool().Draw(c.draw, "fresh")) {
		keys[key] = true
		cmd.Waitpoints = append(cmd.Waitpoints, fresh(key)...)
	}
	cmd.Condition = c.drawConditionOver(keys)
	if rapid.Bool().Draw(c.draw, "timeout") {
		ms := rapid.Int64Range(0, 1500).Draw(c.draw, "ms")
		cmd.TimeoutMS, cmd.Behavior = &ms, rapid.SampledFrom(timeoutBehaviors).Draw(c.draw, "behavior")
	}
	cmd.ResumeDelayMS = rapid.SampledFrom([]base.Millis{0, 0, 300}).Draw(c.draw, "delay")
	return cmd
}

// drawConditionOver names every key.
func (c *waitChaos) drawConditionOver(keys map[string]bool) *condition.Condition {
	var sorted []string
	for _, key := range []string{"a", "b", "c"} {
		if keys[key] {
			sorted = append(sorted, key)
		}
	}
	count := condition.Condition{
		Kind: condition.Count, Waitpoints: sorted, N: rapid.IntRange(1, 2).Draw(c.draw, "n"),
		CountKind: rapid.SampledFrom([]condition.CountKind{condition.CountDistinctSignals, condition.CountDistinctSources}).Draw(c.draw, "count"),
	}
	all := condition.Condition{Kind: rapid.SampledFrom([]condition.Kind{condition.AllOf, condition.AnyOf}).Draw(c.draw, "kind")}
	for _, key := range sorted {
		matcher := rapid.SampledFrom([]condition.Matcher{{}, condition.ByName("approved")}).Draw(c.draw, "matcher")
		all.Members = append(all.Members, condition.Condition{Kind: condition.Single, Waitpoints: []string{key}, Matcher: matcher})
	}
	switch rapid.IntRange(0, 3).Draw(c.draw, "form") {
	case 0:
		return &count
	case 1:
		return &all
	case 2:
		return &condition.Condition{Kind: condition.AllOf, Members: []condition.Condition{all, count}}
	default:
		return &condition.Condition{Kind: condition.OperatorOnly}
	}
}

func (c *waitChaos) suspendRandomly() error {
	return c.worker(func(f Fence) (repeated, late bool, err error) {
		cmd := c.drawSuspend()
		cmd.Fence = f
		late = c.x.Lease == nil
		before := copyOfState(&c.d)
		a, err := c.suspendWith(cmd)
		if err != nil {
			return false, late, err
		}
		if !a.Repeated {
			c.wantEarlySeen(&before, a)
			c.asked = append(c.asked, askedSuspend{cmd, a, c.x.RunIndex()})
		}
		return a.Repeated, late, nil
	})
}

// wantEarlySeen holds a suspend to WI10: what was buffered is seen, as an oracle sees it.
func (c *waitChaos) wantEarlySeen(before *WaitState, a SuspendAnswer) {
	s := c.d.suspensionByID(a.SuspensionID)
	resume, err := condition.Decode(s.Condition)
	if err != nil {
		c.t.Fatalf("%v", err)
	}
	evidence := evidenceIn(before.signalsOf(s))
	if met := oracleMet(resume, evidence); met != a.Satisfied {
		c.t.Fatalf("WI10: satisfied %v, the oracle says %v of %s over %+v", a.Satisfied, met, s.Condition, evidence)
	}
	if a.Satisfied {
		return
	}
	var progress []int
	for _, leaf := range oracleLeaves(resume) {
		progress = append(progress, oracleProgress(leaf, evidence))
	}
	if diff := cmp.Diff(progress, c.progressOf()); diff != "" && len(progress) > 0 {
		c.t.Fatalf("WI10: %s", diff)
	}
}

// suspendAgain sends a suspend a second time under its own fence: the same outcome, and nothing happens (WI15).
func (c *waitChaos) suspendAgain() error {
	if len(c.asked) == 0 {
		return errIdle
	}
	asked := rapid.SampledFrom(c.asked).Draw(c.draw, "again")
	if asked.command.IdempotencyKey == "" || asked.run != c.x.RunIndex() {
		return errIdle
	}
	c.settle()
	before, told := c.x.Clone(), len(c.events)
	again, err := c.suspendWith(asked.command)
	if err != nil {
		c.t.Fatalf("WI15: refused with %v", err)
	}
	if again.SuspensionID != asked.answer.SuspensionID || again.Satisfied != asked.answer.Satisfied || again.TimeoutAt != asked.answer.TimeoutAt ||
		!slices.EqualFunc(again.Waitpoints, asked.answer.Waitpoints, func(x, y Waitpoint) bool { return x.ID == y.ID }) {
		c.t.Fatalf("WI15: %+v, first %+v", again, asked.answer)
	}
	if !reflect.DeepEqual(before, c.x) || told != len(c.events) {
		c.t.Fatalf("WI15: a repeat changed something: %s", cmp.Diff(before, c.x))
	}
	asked.command.ResumeDelayMS += 7
	_, err = c.suspendWith(asked.command)
	wantCode(c.t, err, base.CodeIdempotencyConflict)
	stranger := asked.command
	stranger.ResumeDelayMS -= 7
	stranger.Fence = Fence{base.UUID{0xee}, 99, base.UUID{0xee}}
	if a, err := c.suspendWith(stranger); err == nil || len(a.Waitpoints) > 0 {
		c.t.Fatalf("WI15: a stranger is shown %+v", a)
	}
	return nil
}

func (c *waitChaos) signalRandomly() error {
	id, ok := c.someWaitpoint()
	if !ok {
		return errIdle
	}
	c.settle()
	return c.takesIn(id, func() (SignalAnswer, error) {
		return c.signal(id, rapid.SampledFrom([]string{"approved", "rejected"}).Draw(c.draw, "name"),
			keyOf(rapid.SampledFrom([]string{"", "", "k1", "k2", "approval:ann:approved:"}).Draw(c.draw, "idempotency")),
			from("ci", rapid.SampledFrom([]string{"x", "y"}).Draw(c.draw, "source")))
	})
}

func (c *waitChaos) approveRandomly() error {
	id, ok := c.someWaitpoint()
	if !ok {
		return errIdle
	}
	c.settle()
	return c.takesIn(id, func() (SignalAnswer, error) {
		who := rapid.SampledFrom([]string{"ann", "bob"}).Draw(c.draw, "who")
		return c.approve(ApproveCommand{Principal: who, Name: "approved", WaitpointID: id})
	})
}

// takesIn holds the delivery of a signal to WI11, WI13 and the effects of W61, as an oracle tells them.
func (c *waitChaos) takesIn(id base.UUID, send func() (SignalAnswer, error)) error {
	before, stored := c.x.Clone(), len(c.d.Signals)
	open := before.openWaitpoint(id)
	a, err := send()
	switch {
	case err != nil:
		return err
	case a.Duplicate:
		if !reflect.DeepEqual(before, c.x) || stored != len(c.d.Signals) {
			c.t.Fatalf("WI11: a duplicate changed something: %s", cmp.Diff(before, c.x))
		}
		return errIdle
	case open == nil:
		c.t.Fatalf("W59: a closed waitpoint took a signal")
	case !open.Active:
		if a.Effect != condition.EffectBuffered || before.Status != c.x.Status || !reflect.DeepEqual(before.Waits.Suspension, c.x.Waits.Suspension) {
			c.t.Fatalf("WI13: a buffered signal did %s: %s", a.Effect, cmp.Diff(before, c.x))
		}
	default:
		s := c.d.suspension(before.Waits.Suspension.Seq)
		resume, _ := condition.Decode(s.Condition)
		all := evidenceIn(c.d.signalsOf(s))
		if effect := oracleEffect(resume, all[:len(all)-1], all[len(all)-1]); effect != a.Effect {
			c.t.Fatalf("W61: %s, the oracle says %s", a.Effect, effect)
		}
		if resumed := c.x.Status != Suspended; resumed != (a.Effect == condition.EffectSatisfied) {
			c.t.Fatalf("W62: %s after %s", c.x.Status, a.Effect)
		}
	}
	return nil
}

func (c *waitChaos) linkRandomly() error {
	id, ok := c.someWaitpoint()
	if !ok {
		return errIdle
	}
	_, err := c.createLink(CreateLinkCommand{WaitpointID: id, Approver: rapid.SampledFrom([]string{"ann", "eve"}).Draw(c.draw, "approver")})
	return err
}

func (c *waitChaos) someLink() (Link, bool) {
	if len(c.d.Links) == 0 {
		return Link{}, false
	}
	return rapid.SampledFrom(c.d.Links).Draw(c.draw, "link"), true
}

func (c *waitChaos) decideRandomly() error {
	link, ok := c.someLink()
	if !ok {
		return errIdle
	}
	c.settle()
	known := c.d.linkEnd(link.ID)
	return c.takesIn(link.WaitpointID, func() (SignalAnswer, error) {
		a, err := c.decide(link.ID, rapid.SampledFrom([]string{"approve", "reject"}).Draw(c.draw, "decision"), "")
		if known != nil && err == nil && (!a.Already || !reflect.DeepEqual(a.End, *known)) {
			c.t.Fatalf("WI20: %+v was decided, then %+v", known, a)
		}
		if err == nil && a.Already {
			return SignalAnswer{Duplicate: true}, nil
		}
		return a.Signal, err
	})
}

func (c *waitChaos) revokeRandomly() error {
	link, ok := c.someLink()
	if !ok {
		return errIdle
	}
	_, err := c.revokeLink(nil, link.ID)
	return err
}

func (c *waitChaos) reissueRandomly() error {
	id, ok := c.someWaitpoint()
	if !ok {
		return errIdle
	}
	before := c.d.Waitpoint(id).MintedAt
	w, err := c.reissue(id)
	if err == nil && w.MintedAt <= before {
		c.t.Fatalf("W32: minted at %s after %s", w.MintedAt, before)
	}
	return err
}

func (c *waitChaos) resumeRandomly() error {
	return c.rarely(func() error {
		c.settle()
		suspended := c.x.Status == Suspended
		_, err := c.resumeWith(ResumeCommand{By: "ann", DelayMS: rapid.SampledFrom([]base.Millis{0, 400}).Draw(c.draw, "delay")})
		if suspended != (err == nil) {
			return fmt.Errorf("resumed %v: %w", suspended, err)
		}
		return err
	})
}
