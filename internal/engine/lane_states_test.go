package engine_test

import (
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// laneCell is a cell of the table of S3 with what a lane had before its state was set.
type laneCell struct {
	*world
	lane  string
	state core.LaneState
}

func (c *laneCell) submission() core.Submission { return core.Submission{Kind: "k", Lane: c.lane} }

func (c *laneCell) request() engine.ClaimRequest {
	r := ask()
	r.Lanes = []string{c.lane}
	return r
}

// one starts an execution of the lane.
func (c *laneCell) one() engine.Task { return c.started(c.submission()) }

// set puts the lane into the state of the cell.
func (c *laneCell) set() { c.world.lane(c.lane, core.LaneSettings{State: c.state}) }

// refusedUnless expects the code unless the state allows what was asked.
func (c *laneCell) refusedUnless(allowed bool, err error, code base.Code) {
	c.t.Helper()
	if allowed {
		ok(c.t, err)
		return
	}
	refused(c.t, err, code)
}

// laneRows are the rows of the table of S3, with each operation that a row names.
var laneRows = map[string]func(c *laneCell){
	"submit": func(c *laneCell) {
		c.set()
		_, err := c.e.Submit(c.ctx(), client, c.submission())
		c.refusedUnless(c.state.Accepting(), err, base.CodeLaneNotAccepting)
	},
	"submit of a flow": func(c *laneCell) {
		c.set()
		_, err := c.e.SubmitFlow(c.ctx(), client, core.FlowSubmission{Kind: "f", Nodes: []core.FlowNode{{Name: "a", Kind: "k", Lane: c.lane}}})
		c.refusedUnless(c.state.Accepting(), err, base.CodeLaneNotAccepting)
	},
	"replay": func(c *laneCell) {
		task := c.one()
		c.complete(task)
		c.set()
		_, err := c.e.Replay(c.ctx(), operator, given(task), engine.ReplayRequest{}, engine.Operator{})
		c.refusedUnless(c.state.Accepting(), err, base.CodeLaneNotAccepting)
	},
	"retry": func(c *laneCell) {
		s := c.submission()
		s.PolicyJSON = []byte(`{"retry_policy":{"backoff":{"strategy":"fixed","delay_ms":100}}}`)
		task := c.started(s)
		c.set()
		c.fail(task, "")
		c.pass(100)
		c.becomes(given(task), core.Ready)
	},
	"resume": func(c *laneCell) {
		task := c.one()
		c.suspend(task, atA)
		c.set()
		_, _, err := c.resume(given(task), core.ResumeCommand{})
		ok(c.t, err)
		c.becomes(given(task), core.Ready)
	},
	"reclaim": func(c *laneCell) {
		task := c.one()
		c.set()
		c.pass(30_000)
		c.becomes(given(task), core.Ready)
	},
	"delay": func(c *laneCell) {
		task := c.one()
		c.set()
		c.delay(task, c.now()+100)
		c.pass(100)
		c.becomes(given(task), core.Ready)
	},
	"dependency": func(c *laneCell) {
		flow := c.submitFlow(core.FlowSubmission{Kind: "f", Nodes: []core.FlowNode{
			{Name: "a", Kind: "first", Lane: "elsewhere"}, {Name: "b", Kind: "second", Lane: c.lane, After: []string{"a"}},
		}})
		c.set()
		r := ask()
		r.Lanes = []string{"elsewhere"}
		c.complete(c.claimAs(r))
		c.becomes(flow.Members["b"].Given(), core.Ready)
	},
	"claim": func(c *laneCell) {
		c.submit(c.submission())
		c.set()
		same(c.t, "claimed", len(c.take(c.request())) == 1, c.state.Claimable())
	},
	"grant": func(c *laneCell) {
		c.submit(c.submission())
		c.set()
		same(c.t, "granted", len(c.grants(c.request())) == 1, c.state.Claimable())
	},
	"targeted claim of what was resumed": func(c *laneCell) {
		task := c.one()
		c.suspend(task, atA)
		_, _, err := c.resume(given(task), core.ResumeCommand{})
		ok(c.t, err)
		c.becomes(given(task), core.Ready)
		c.set()
		_, err = c.e.ClaimResumed(c.ctx(), client, given(task), worker2())
		c.refusedUnless(c.state.Claimable(), err, base.CodeLaneNotClaimable)
	},
	"targeted reclaim": func(c *laneCell) {
		task := c.one()
		c.pass(30_000)
		c.becomes(given(task), core.Ready)
		c.set()
		_, err := c.e.Reclaim(c.ctx(), client, given(task), worker2())
		c.refusedUnless(c.state.Claimable(), err, base.CodeLaneNotClaimable)
	},
	"targeted claim of an operator": func(c *laneCell) {
		id := c.submit(c.submission())
		c.set()
		_, err := c.e.OperatorClaim(c.ctx(), operator, id, engine.TargetedRequest{})
		c.refusedUnless(c.state.Claimable(), err, base.CodeLaneNotClaimable)
	},
	"targeted grant": func(c *laneCell) {
		id := c.submit(c.submission())
		c.set()
		_, err := c.e.GrantOne(c.ctx(), client, id, worker2())
		c.refusedUnless(c.state.Claimable(), err, base.CodeLaneNotClaimable)
	},
	"claim of a live grant": func(c *laneCell) {
		c.submit(c.submission())
		g := c.grantAs(c.request())
		c.set()
		ok(c.t, c.verify(g))
		c.complete(c.claimGrant(g))
	},
	"commands of a holder": func(c *laneCell) {
		renewed, failed, released, suspended, parent := c.one(), c.one(), c.one(), c.one(), c.one()
		c.set()
		c.renewed(renewed)
		c.step(renewed, "s", "done")
		c.complete(renewed)
		c.fail(failed, "permanent")
		c.release(released)
		c.suspend(suspended, atA)
		_, err := c.e.Spawn(c.ctx(), client, engine.SpawnRequest{ID: given(parent), Fence: fence(parent), Children: []core.FlowNode{{Name: "c", Kind: "k", Lane: "children"}}})
		ok(c.t, err)
		for _, want := range []struct {
			of     engine.Task
			status core.Status
		}{{renewed, core.Succeeded}, {failed, core.Failed}, {released, core.Ready}, {suspended, core.Suspended}, {parent, core.Running}} {
			same(c.t, "status", c.get(given(want.of)).Status, want.status)
		}
	},
	"timers": func(c *laneCell) {
		s := c.submission()
		s.DelayMS = ptr(int64(100))
		delayed := c.submit(s)
		s.DelayMS, s.DeadlineAt = nil, c.now()+100
		expires := c.submit(s)
		c.set()
		c.pass(100)
		c.becomes(delayed, core.Ready)
		c.becomes(expires, core.Expired)
	},
	"cancel, reads and commands of operators": func(c *laneCell) {
		id := c.submit(c.submission())
		c.set()
		c.hold(id)
		same(c.t, "held", c.get(id).Status, core.Blocked)
		c.releaseHold(id)
		must(c.e.SetPriority(c.ctx(), operator, id, 7, engine.Operator{}))(c.t)
		must(c.e.GetLane(c.ctx(), client, c.lane))(c.t)
		same(c.t, "forced", must(c.e.OperatorClaim(c.ctx(), operator, id, engine.TargetedRequest{Force: true}))(c.t).Execution.ID, id.ID())
		c.revoke(id)
		c.cancel(id)
		same(c.t, "cancelled", c.get(id).Status, core.Cancelled)
	},
}

func TestS3_each_operation_of_each_row_in_each_lane_state(t *testing.T) {
	t.Parallel()
	onSigning(t, func(t *testing.T, w *world) {
		made := 0
		for name, row := range laneRows {
			for _, state := range []core.LaneState{core.LaneActive, core.LanePaused, core.LaneDraining, core.LaneDisabled} {
				made++
				t.Logf("%s in a lane that is %s", name, state)
				row(&laneCell{world: w, lane: fmt.Sprint("lane", made), state: state})
			}
		}
	})
}
