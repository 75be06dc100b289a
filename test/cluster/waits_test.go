package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// stranger is a caller who has nothing but a token.
var stranger = engine.Caller{Principal: "missing", Actor: "client", Namespaces: []string{"nowhere"}}

// party is several engines on one store.
type party struct {
	t       *testing.T
	ctx     context.Context //nolint:containedctx // of one test
	engines []*engine.Engine
}

// onParties runs a test with three engines on one Postgres and with one on a SQLite file.
func onParties(t *testing.T, test func(p *party)) {
	t.Helper()
	for name, c := range map[string]struct {
		engines int
		at      func() string
	}{
		"three engines on one postgres": {3, func() string { return cluster.Database(t) }},
		"one engine on a sqlite file":   {1, func() string { return "sqlite:" + filepath.Join(t.TempDir(), "waits.db") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			t.Cleanup(cancel)
			p := &party{t: t, ctx: ctx}
			at := c.at()
			for range c.engines {
				e, _ := mustOpen(ctx, t, at)
				p.engines = append(p.engines, e)
			}
			test(p)
		})
	}
}

// of is one of the engines.
func (p *party) of(n int) *engine.Engine { return p.engines[n%len(p.engines)] }

// suspend has an execution wait for one signal go.
func (p *party) suspend(edit func(*core.SuspendCommand)) (base.GivenID, engine.SuspendAnswer) {
	p.t.Helper()
	made, err := p.of(0).Submit(p.ctx, client, core.Submission{Lane: "waits", Kind: "k"})
	if err != nil {
		p.t.Fatal(err)
	}
	id := made.ID.Given()
	task, err := p.of(1).OperatorClaim(p.ctx, operator, id, engine.TargetedRequest{WorkerID: "w", InstanceID: "i", TTL: base.Hour})
	if err != nil {
		p.t.Fatal(err)
	}
	x, key := task.Execution, "a"
	cmd := core.SuspendCommand{
		Fence: core.Fence{LeaseID: x.Lease.ID, Epoch: x.LeaseEpoch, AttemptID: x.Lease.AttemptID}, Waitpoints: []core.Binding{{Key: &key}},
		Condition: &condition.Condition{Kind: condition.Single, Waitpoints: []string{key}, Matcher: condition.ByName("go")},
	}
	if edit != nil {
		edit(&cmd)
	}
	answer, err := p.of(2).Suspend(p.ctx, client, id, cmd)
	if err != nil || answer.Satisfied {
		p.t.Fatalf("satisfied %v, %v", answer.Satisfied, err)
	}
	return id, answer
}

func TestWI9_WI14_of_64_signals_a_timeout_a_resume_and_a_cancel_one_ends_the_wait(t *testing.T) {
	t.Parallel()
	onParties(t, func(p *party) {
		causes := map[core.SuspensionCause]int{}
		for round := range 12 {
			timeout := base.Millis(10 * (round % 6))
			id, s := p.suspend(func(c *core.SuspendCommand) { c.TimeoutMS, c.Behavior = &timeout, core.BehaviorAutoResume })
			accepted, satisfied := p.race(round, id, s)
			p.ends(id)
			cause := p.endedOnce(id, accepted, satisfied)
			causes[cause]++
		}
		p.t.Logf("ended by %v", causes)
	})
}

// race lets 64 signals, a resume and a cancel loose at once, beside the timeout, and counts the signals that were accepted and those
// that met the condition.
func (p *party) race(round int, id base.GivenID, s engine.SuspendAnswer) (accepted, satisfied int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	gun := make(chan struct{})
	run := func(act func() error) {
		wg.Go(func() {
			<-gun
			switch code := base.CodeOf(act()); code {
			case "", base.CodeWaitpointClosed, base.CodeExecutionNotSuspended, base.CodeExecutionNotActive:
			default:
				p.t.Errorf("round %d: refused with %s", round, code)
			}
		})
	}
	for n := range 64 {
		run(func() error {
			got, err := p.of(n).Signal(p.ctx, stranger, nil, s.Tokens[0], core.SignalCommand{WaitpointID: s.Waitpoints[0].ID, Name: "go"})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				accepted++
			}
			if got.Effect == condition.EffectSatisfied {
				satisfied++
			}
			return err
		})
	}
	run(func() error {
		_, _, err := p.of(round+1).Resume(p.ctx, operator, id, core.ResumeCommand{ExpectedSuspensionID: s.SuspensionID}, engine.Operator{})
		return err
	})
	if round%3 == 0 {
		run(func() error {
			_, err := p.of(round+2).Cancel(p.ctx, operator, id, nil, "", engine.Operator{})
			return err
		})
	}
	close(gun)
	wg.Wait()
	return accepted, satisfied
}

// ends waits until the suspension is over: its timeout comes at the latest.
func (p *party) ends(id base.GivenID) {
	p.t.Helper()
	for {
		view, err := p.of(0).Describe(p.ctx, client, id)
		if err != nil {
			p.t.Fatal(err)
		}
		if view.Execution.Status != core.Suspended {
			return
		}
		select {
		case <-p.ctx.Done():
			p.t.Fatalf("WI18: still suspended")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// endedOnce looks at what the race left and tells the cause.
func (p *party) endedOnce(id base.GivenID, accepted, satisfied int) core.SuspensionCause {
	p.t.Helper()
	history, err := p.of(1).Suspensions(p.ctx, client, id, "", nil)
	if err != nil || len(history.Items) != 1 {
		p.t.Fatalf("%d suspensions, %v", len(history.Items), err)
	}
	o := history.Items[0]
	signals := 0
	for i := range o.Signals {
		if o.Signals[i].SourceType != condition.SourceEngine {
			signals++
		}
	}
	bySignal := o.Cause == core.CauseSignal
	if o.Cause == "" || signals != accepted || bySignal != (satisfied == 1) || satisfied > 1 || bySignal == o.CloserSignalID.IsZero() {
		p.t.Errorf("WI9: ended by %q, %d signals stored of %d accepted, %d met the condition, closer %s", o.Cause, signals, accepted, satisfied, o.CloserSignalID)
	}
	if o.Cause == core.CauseTimeout && o.ClosedAt < o.TimeoutAt {
		p.t.Errorf("WI14, WI18: timed out at %s, due at %s", o.ClosedAt, o.TimeoutAt)
	}
	told := p.told(id)
	resumed := 1
	if o.Cause == core.CauseCancelled {
		resumed = 0
	}
	if told["execution.resumed"] != resumed || told["waitpoint.closed"] != 1 || told["execution.suspended"] != 1 {
		p.t.Errorf("I6: ended by %s and told %v", o.Cause, told)
	}
	return o.Cause
}

// told counts the events of an execution by kind.
func (p *party) told(id base.GivenID) map[string]int {
	p.t.Helper()
	log, err := readAll(p.ctx, p.of(2))
	if err != nil {
		p.t.Fatal(err)
	}
	counts := map[string]int{}
	for _, ev := range log {
		if ev.ExecutionID.UUID == id.UUID {
			counts[ev.Kind]++
		}
	}
	return counts
}

func TestW16_W27_WI2_tokens_stay_good_while_keys_are_rotated_under_the_signals(t *testing.T) {
	t.Parallel()
	onParties(t, func(p *party) {
		id, s := p.suspend(func(c *core.SuspendCommand) {
			c.Condition = &condition.Condition{Kind: condition.Count, N: 100_000, CountKind: condition.CountDistinctSignals, Waitpoints: []string{"a"}}
		})
		waitpoint := s.Waitpoints[0].ID
		done := make(chan struct{})
		var wg sync.WaitGroup
		for n := range 6 {
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-done:
						return
					default:
					}
					token := s.Tokens[0] // the first one, whose key verifies on
					if n%2 == 0 {
						read, err := p.of(n).ReadToken(p.ctx, operator, id, waitpoint)
						if err != nil {
							p.t.Errorf("read the token: %v", err)
							return
						}
						token = read.Token
					}
					if _, err := p.of(n+i).Signal(p.ctx, stranger, nil, token, core.SignalCommand{WaitpointID: waitpoint, Name: "go"}); err != nil {
						p.t.Errorf("a token that is good: %v", err)
						return
					}
				}
			})
		}
		for n := range 12 {
			if _, err := p.of(n).RotateSigningKey(p.ctx, operator, engine.Rotation{Kid: fmt.Sprintf("k%d", n)}, engine.AdminAction{}); err != nil {
				p.t.Errorf("rotate: %v", err)
			}
		}
		close(done)
		wg.Wait()
	})
}

func TestW18_W21_a_revoked_key_is_dead_in_every_process_at_once(t *testing.T) {
	t.Parallel()
	onParties(t, func(p *party) {
		id, s := p.suspend(nil)
		waitpoint, token := s.Waitpoints[0].ID, s.Tokens[0]
		deliver := func(e *engine.Engine, token keyring.Token) base.Code {
			_, err := e.Signal(p.ctx, stranger, nil, token, core.SignalCommand{WaitpointID: waitpoint, Name: "not yet"})
			return base.CodeOf(err)
		}
		for n := range 8 {
			kid, _, _ := strings.Cut(token.Reveal(), ":")
			next := fmt.Sprintf("next%d", n)
			if _, err := p.of(n).RotateSigningKey(p.ctx, operator, engine.Rotation{Kid: next}, engine.AdminAction{}); err != nil {
				p.t.Fatal(err)
			}
			if code := deliver(p.of(n+1), token); code != "" {
				p.t.Errorf("within its grace the token of %s is answered %s", kid, code)
			}
			if _, err := p.of(n).RevokeSigningKey(p.ctx, operator, kid, false, engine.AdminAction{}); err != nil {
				p.t.Fatal(err)
			}
			for other := range p.engines {
				if code := deliver(p.of(other), token); code != base.CodeInvalidToken {
					p.t.Errorf("after the revoke of %s engine %d answers %q", kid, other, code)
				}
			}
			read, err := p.of(n+2).ReadToken(p.ctx, operator, id, waitpoint)
			if err != nil {
				p.t.Fatal(err)
			}
			if token = read.Token; deliver(p.of(n), token) != "" {
				p.t.Errorf("the token of %s is not good", next)
			}
		}
	})
}
