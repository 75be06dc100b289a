package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

// walk drives an engine by random work, workers, holds and lane settings, and knows from the records alone what each claim must find.
type walk struct {
	*world
	random  *rand.Rand
	lanes   map[string]core.LaneSettings
	work    []base.GivenID
	running []engine.Task
	empty   int // claims that found nothing
	found   int
	passed  int // candidates that a claim had to leave, because the worker did not match
}

var (
	walkKinds      = []string{"resize", "render"}
	walkNamespaces = []string{"red", "blue"}
	walkTokens     = []string{"gpu", "eu"}
)

// some are a random part of the texts.
func (w *walk) some(texts []string) []string {
	var part []string
	for _, text := range texts {
		if w.random.IntN(2) == 0 {
			part = append(part, text)
		}
	}
	return part
}

func (w *walk) oneOf(texts []string) string { return texts[w.random.IntN(len(texts))] }

func (w *walk) lane() string { return w.oneOf([]string{"a", "b"}) }

func (w *walk) submitSome() {
	s := core.Submission{
		Kind: w.oneOf(walkKinds), Namespace: w.oneOf(walkNamespaces), Lane: w.lane(), Priority: w.random.IntN(3),
	}
	if tokens := w.some(walkTokens); len(tokens) > 0 {
		s.PolicyJSON = fmt.Appendf(nil, `{"routing_requirements":{"required_capabilities":["%s"]}}`, strings.Join(tokens, `","`))
	}
	if w.random.IntN(4) == 0 {
		s.DelayMS = ptr(w.random.Int64N(500))
	}
	w.work = append(w.work, w.submit(s))
}

// records reads everything that the walk has submitted.
func (w *walk) records() []*core.Execution {
	all := make([]*core.Execution, len(w.work))
	for i, id := range w.work {
		all[i] = w.get(id)
	}
	return all
}

// serves reports whether the worker of the claim may take the execution (S11, S15).
func serves(r engine.ClaimRequest, x *core.Execution) bool {
	for _, token := range x.Class.Capabilities {
		if !slices.Contains(r.Capabilities, token) {
			return false
		}
	}
	return (r.Kinds == nil || slices.Contains(r.Kinds, x.Class.Kind)) && (r.Namespaces == nil || slices.Contains(r.Namespaces, x.Class.Namespace))
}

// best is what the claim must get: the first in order of what may be taken, nil when there is none.
func (w *walk) best(r engine.ClaimRequest, all []*core.Execution) (best *core.Execution) {
	settings, held := w.lanes[r.Lanes[0]], 0
	for _, x := range all {
		if x.Status == core.Running && x.Class.Lane == r.Lanes[0] {
			held++
		}
	}
	if settings.State == core.LanePaused || settings.State == core.LaneDisabled || settings.MaxConcurrent > 0 && held >= settings.MaxConcurrent {
		return nil
	}
	for _, x := range all {
		if x.Status != core.Ready || x.Class.Lane != r.Lanes[0] {
			continue
		}
		if !serves(r, x) {
			w.passed++
			continue
		}
		if best == nil || x.RankKey(0) < best.RankKey(0) || x.RankKey(0) == best.RankKey(0) && string(x.ID.UUID[:]) < string(best.ID.UUID[:]) {
			best = x
		}
	}
	return best
}

func (w *walk) claimSome() {
	r := engine.ClaimRequest{WorkerID: "w", InstanceID: "w1", Lanes: []string{w.lane()}, Capabilities: w.some(walkTokens)}
	if w.random.IntN(3) == 0 {
		r.Kinds = []string{w.oneOf(walkKinds)}
	}
	if w.random.IntN(3) == 0 {
		r.Namespaces = []string{w.oneOf(walkNamespaces)}
	}
	before := w.records()
	want, tasks := w.best(r, before), w.take(r)
	if want == nil {
		w.empty++
		same(w.t, "what a claim that may take nothing finds", len(tasks), 0)
		same(w.t, "the records after a claim that took nothing", w.records(), before)
		return
	}
	w.found++
	if len(tasks) != 1 || tasks[0].Execution.ID != want.ID {
		w.t.Fatalf("the claim %+v found %v, want %s", r, tasks, want.ID)
	}
	w.running = append(w.running, tasks[0])
}

func (w *walk) leaveSome() {
	if len(w.running) == 0 {
		return
	}
	at := w.random.IntN(len(w.running))
	task := w.running[at]
	w.running = slices.Delete(w.running, at, at+1)
	if w.random.IntN(2) == 0 {
		w.release(task)
	} else {
		w.complete(task)
	}
}

func (w *walk) holdSome() {
	if len(w.work) == 0 {
		return
	}
	switch x := w.get(w.work[w.random.IntN(len(w.work))]); {
	case x.Status.Terminal():
	case x.Held != nil:
		w.releaseHold(x.ID.Given())
	default:
		w.hold(x.ID.Given())
	}
}

func (w *walk) setSome() {
	name := w.lane()
	w.set(name, core.LaneSettings{
		State:         []core.LaneState{core.LaneActive, core.LaneActive, core.LaneActive, core.LanePaused, core.LaneDraining, core.LaneDisabled}[w.random.IntN(6)],
		MaxConcurrent: w.random.IntN(5),
	})
	if state := w.lanes[name].State; state == core.LaneDraining || state == core.LaneDisabled {
		_, err := w.e.Submit(w.ctx(), client, core.Submission{Kind: "k", Lane: name})
		refused(w.t, err, base.CodeLaneNotAccepting)
		w.set(name, core.LaneSettings{State: core.LanePaused, MaxConcurrent: w.lanes[name].MaxConcurrent})
	}
}

// set states the settings of a lane and waits until what runs in it is counted.
func (w *walk) set(name string, s core.LaneSettings) {
	s.Fairness = core.FairnessOff // else namespaces take turns
	w.world.lane(name, s)
	w.lanes[name] = s
	eventually(w.t, "the count of "+name, func() bool { return !must(w.e.GetLane(w.ctx(), client, name))(w.t).Lane.Counting })
}

// wait lets time pass, and delays end.
func (w *walk) wait() {
	w.pass(w.random.Int64N(100))
	for _, id := range w.work {
		eventually(w.t, "the delay is over", func() bool {
			x := w.get(id)
			return x.Status != core.Delayed || x.DelayUntil > w.now()
		})
	}
}

func TestSI1_SI2_SI3_SI9_SI11_SI12_random_workers_get_the_first_that_they_may_take_and_in_the_end_everything(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, world *world) {
		w := &walk{world: world, random: testseed.New(t), lanes: map[string]core.LaneSettings{}}
		for _, name := range []string{"a", "b"} {
			w.set(name, core.LaneSettings{State: core.LaneActive})
		}
		for range 300 {
			switch w.random.IntN(12) {
			case 0, 1, 2:
				w.submitSome()
			case 3:
				w.holdSome()
			case 4:
				w.wait()
			case 5:
				w.setSome()
			case 6, 7:
				w.leaveSome()
			default:
				w.claimSome()
			}
		}
		if w.found == 0 || w.empty == 0 || w.passed == 0 {
			t.Fatalf("%d claims found something, %d nothing, %d rows did not match: the walk proves nothing", w.found, w.empty, w.passed)
		}
		for name := range w.lanes {
			w.set(name, core.LaneSettings{State: core.LaneActive}) // no execution needs to change for that
		}
		for len(w.running) > 0 {
			w.leaveSome()
		}
		for _, x := range w.records() {
			if x.Held != nil && !x.Status.Terminal() {
				w.releaseHold(x.ID.Given())
			}
		}
		w.turn(1000)
		w.wait()
		for _, task := range w.all() {
			w.complete(task)
		}
		for _, x := range w.records() {
			same(t, "in the end", x.Status, core.Succeeded)
		}
	})
}

// all is everything that a worker of all capabilities gets.
func (w *walk) all() (all []engine.Task) {
	r := engine.ClaimRequest{WorkerID: "w", InstanceID: "w1", Lanes: []string{"a", "b"}, Capabilities: walkTokens, Max: 10}
	for tasks := w.take(r); len(tasks) > 0; tasks = w.take(r) {
		all = append(all, tasks...)
	}
	return all
}
