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
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// chaos drives one execution by random commands under a random clock. The story holds it to the invariants after every step.
type chaos struct {
	*story
	draw   *rapid.T
	fences []Fence // every lease there was
	done   map[string]int
}

var chaosPolicies = []string{
	`{}`,
	`{"max_reclaim_count":1,"max_replay_count":2,"lease_grace_ms":300}`,
	`{"retry_policy":{"max_retries":2,"backoff":{"initial_ms":400,"jitter":0.5}},"slots_while_waiting":"hold"}`,
	`{"retry_policy":{"max_retries":1,"backoff":{"strategy":"fixed","delay_ms":0},"max_elapsed_ms":5000},"timeout_policy":{"attempt_timeout_ms":900}}`,
	`{"timeout_policy":{"attempt_timeout_ms":700,"execution_deadline_ms":4000},"max_reclaim_count":0,"lease_grace_ms":100}`,
}

func TestLI1_LI2_LI3_LI4_LI5_LI6_LI7_LI8_LI9_LI10_LI11_LI12_LI14_LI17_hold_after_every_step_of_random_lives(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	done := map[string]int{}
	life := func(t *rapid.T) {
		c := &chaos{draw: t, done: map[string]int{}}
		c.story = begin(t, rapid.SampledFrom(chaosPolicies).Draw(t, "policy"))
		names, actions := c.actions()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
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
	}
	names, _ := (&chaos{}).actions()
	never := func() []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return done[name] > 0 })
	}
	testseed.Rounds(t, 1, 20, never, life)
}

// errIdle says that an action found nothing to do.
var errIdle = fmt.Errorf("nothing to do")

// actions lists what may happen, in a fixed order.
func (c *chaos) actions() ([]string, map[string]func() error) {
	type action struct {
		name string
		run  func() error
	}
	fenced := func(run func(Fence) (repeated, late bool, err error)) func() error {
		return func() error { return c.worker(run) }
	}
	list := []action{
		{"clock", c.moveClock},
		{"claim", c.acquire},
		{"renew", fenced(func(f Fence) (bool, bool, error) { return false, false, c.renew(f, 800) })},
		{"progress", fenced(func(f Fence) (bool, bool, error) { return false, false, c.run("progress", f) })},
		{"complete", fenced(func(f Fence) (bool, bool, error) {
			a, err := c.complete(f, &Payload{Size: 1, Data: []byte("r")})
			return a.Repeated, a.Late, err
		})},
		{"fail", fenced(func(f Fence) (bool, bool, error) {
			a, err := c.fail(f, rapid.SampledFrom([]string{"", "timeout", "permanent"}).Draw(c.draw, "class"))
			return a.Repeated, a.Late, err
		})},
		{"delay", fenced(func(f Fence) (bool, bool, error) {
			a, err := c.delay(f, c.now.Add(rapid.Int64Range(-200, 900).Draw(c.draw, "until")))
			return a.Repeated, a.Late, err
		})},
		{"release", fenced(func(f Fence) (bool, bool, error) { a, err := c.release(f); return a.Repeated, a.Late, err })},
		{"cancel by the holder", fenced(func(f Fence) (bool, bool, error) {
			already, err := c.cancel(&f)
			return already, true, err
		})},
		{"cancel", func() error { return c.rarely(func() error { _, err := c.cancel(nil); return err }) }},
		{"hold", func() error { _, err := c.hold(); return err }},
		{"release_hold", func() error { _, err := c.releaseHold(); return err }},
		{"revoke", func() error {
			_, err := c.revoke(rapid.Bool().Draw(c.draw, "hold"))
			return err
		}},
		{"replay", func() error { return c.replay(ReplayCommand{By: "ann"}) }},
		{"priority", func() error { return c.run("set_priority", Fence{}) }},
		{"tags", func() error { return c.run("set_tags", Fence{}) }},
		{"worker dead", c.when(Running, func() { _ = c.do(func(fx *Effects) error { c.x.LapseNow(fx); return nil }) })},
		{"grant", c.when(Ready, func() { c.grant(600) })},
		{"suspend", c.when(Running, func() { c.suspend() })},
		{"resume", c.when(Suspended, func() { c.resume() })},
		{"wait for children", c.when(Running, func() { c.waitForChildren() })},
		{"children done", func() error {
			if c.x.Dependency == ReasonNone || c.x.Status.Terminal() {
				return errIdle
			}
			c.satisfy()
			return nil
		}},
		{"admission block", c.when(Ready, func() { c.blockByQuota() })},
	}
	names, byName := make([]string, len(list)), map[string]func() error{}
	for i, a := range list {
		names[i], byName[a.name] = a.name, a.run
	}
	return names, byName
}

// when runs an action that the engine takes only in a status, after settling.
func (c *chaos) when(status Status, run func()) func() error {
	return func() error {
		c.settle()
		if c.x.Status != status {
			return errIdle
		}
		run()
		return nil
	}
}

// rarely keeps the ends from crowding out the rest.
func (c *chaos) rarely(run func() error) error {
	if rapid.IntRange(0, 3).Draw(c.draw, "rarely") > 0 {
		return errIdle
	}
	return run()
}

// moveClock goes forward, sometimes back (L5), and sometimes sweeps.
func (c *chaos) moveClock() error {
	c.now = c.now.Add(rapid.Int64Range(-100, 1200).Draw(c.draw, "ms"))
	if rapid.Bool().Draw(c.draw, "sweep") {
		c.settle()
	}
	return nil
}

func (c *chaos) acquire() error {
	c.settle()
	if !c.x.Queued() && c.x.Status != Granted {
		return errIdle
	}
	next, before := c.x.Next, c.x.Clone()
	if before.DelayUntil > c.now && before.DelayUntil > before.Latest() || before.Dependency != ReasonNone {
		c.t.Fatalf("LI12: %s until %s, waits for %s, is claimed at %s", before.Status, before.DelayUntil, before.Dependency, c.now)
	}
	f := c.claimFor(500)
	c.x.Holds = []string{"lane:default", "slots:api"}
	c.fences = append(c.fences, f)
	if f.Epoch != before.LeaseEpoch+1 {
		c.t.Fatalf("L31: epoch %d after %d", f.Epoch, before.LeaseEpoch)
	}
	if next == NextResume && (c.x.Attempt.ID != before.Attempt.ID || c.x.Attempt.Index != before.Attempt.Index) {
		c.t.Fatalf("LI8: a resume made attempt %d", c.x.Attempt.Index)
	}
	if next != NextResume && c.x.Attempt.Index != before.TotalAttempts {
		c.t.Fatalf("L27: attempt %d after %d", c.x.Attempt.Index, before.TotalAttempts)
	}
	return nil
}

// worker runs a command with a fence out of all that ever were, sometimes with one part of another (LI3).
func (c *chaos) worker(run func(Fence) (repeated, late bool, err error)) error {
	if len(c.fences) == 0 {
		return errIdle
	}
	f := c.fences[len(c.fences)-1]
	switch rapid.IntRange(0, 9).Draw(c.draw, "fence") {
	case 0:
		f = rapid.SampledFrom(c.fences).Draw(c.draw, "old")
	case 1:
		f.AttemptID = base.UUID{0xee}
	case 2:
		f.LeaseID = base.UUID{0xee}
	case 3:
		f.Epoch += 1000
	}
	c.settle()
	current := c.x.Lease != nil && !c.x.NeedsRecord(f)
	before, told := c.x.Clone(), len(c.events)
	repeated, late, err := run(f)
	if err != nil {
		return err
	}
	if repeated && (!reflect.DeepEqual(before, c.x) || len(c.events) != told) {
		c.t.Fatalf("LI14: a repeat changed something: %s", cmp.Diff(before, c.x))
	}
	if !current && !repeated && !late {
		c.t.Fatalf("LI3: a command with fence %+v acted on %+v", f, before)
	}
	return nil
}
