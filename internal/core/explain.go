package core

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// The blockers of S57, in their order.
const (
	BlockerSuspended       = "suspended"
	BlockerDependencies    = "dependencies"
	BlockerChildren        = "children"
	BlockerSubflow         = "subflow"
	BlockerDelay           = "delay"
	BlockerOperatorHold    = "operator_hold"
	BlockerGrant           = "grant"
	BlockerLaneState       = "lane_state"
	BlockerLaneCap         = "lane_cap"
	BlockerNoLiveWorker    = "no_live_worker"
	BlockerNoCapableWorker = "no_capable_worker"
	BlockerBudget          = "budget"
	BlockerRate            = "rate"
	BlockerConcurrency     = "concurrency"
	BlockerWorkersBusy     = "workers_busy"
	BlockerInLine          = "in_line"
)

// Explanation says why an execution is not running (S57).
type Explanation struct {
	ExecutionID    ID
	Status         Status
	Reason         Reason
	Since          Time   // of status and reason
	Summary        string // one sentence
	Blockers       []Blocker
	NextEligibleAt Time // absent: nobody knows, or nothing is to be waited for (S58)
	Position       *Line
	Workers        NearWorkers
	History        []StatusChange
	Running        *RunningNow // of what runs
	Outcome        string      // of what is over
}

// Blocker is one cause that keeps an execution from running.
type Blocker struct {
	Code    string
	Message string // one sentence with its numbers
	Since   Time
	Until   Time            // when it ends by itself, if that is known
	Data    json.RawMessage // its numbers, by name
	Key     string          // of budget, rate and concurrency: the key that has no room
}

// RunningNow is who runs an execution.
type RunningNow struct {
	Lease   Lease
	Epoch   int64
	Attempt int // its index
}

// Line is the place of an execution among the ready ones of its lane.
type Line struct {
	Ahead       int    // that come before it in order, counted up to a bound
	AtLeast     bool   // there are more
	FairnessKey string // whose turns it shares; "" when fairness is off
	AheadOfKey  int    // those of them under its own key: they come first whatever the turns are
	Keys        int    // with ready work, its own included: they take turns
	Weight      int    // of its key
}

// ExplainInput is what Explain looks at: rows of one read, after the timers that are due have acted on them.
type ExplainInput struct {
	Now       Time
	Execution *Execution
	Suspended *SuspendedView // what it waits for; nil unless it is suspended
	WaitedFor []WaitedFor    // upstreams or children, while it waits for those
	Subflow   *SubflowNow    // of a flow node; nil: it has not begun
	Lane      *Lane          // nil: not registered yet, open
	LaneInUse int64          // granted and running, where the lane has a cap, without a grant of its own
	Workers   []Worker       // that the caller may know of, dead ones among them
	Leases    map[string]int // held, by instance; absent: not counted
	Room      *Room          // after what the timers have given back
	Set       []UUID         // the budgets that apply
	Holders   map[string][]ID
	Line      Line
	History   []StatusChange
}

// Explain says why the execution is not running, by the functions that decide (S56).
func Explain(in ExplainInput) Explanation {
	x := in.Execution
	e := Explanation{
		ExecutionID: x.ID, Status: x.Status, Reason: x.Reason, Since: x.StatusSince, History: in.History,
		Workers: in.nearWorkers(),
	}
	switch {
	case x.Status.Terminal():
		e.Outcome = terminalOutcome(x.Status)
		e.Summary = x.ending()
		return e
	case x.Status == Running:
		e.Running = &RunningNow{Lease: *x.Lease, Epoch: x.LeaseEpoch, Attempt: x.Attempt.Index}
		e.Summary = fmt.Sprintf("It runs since %s on worker %s, instance %s: attempt %d, lease until %s.",
			x.Lease.AcquiredAt, x.Lease.WorkerID, x.Lease.InstanceID, x.Attempt.Index, x.Lease.ExpiresAt)
		return e
	}
	e.Blockers = in.blockers()
	e.NextEligibleAt = nextEligible(e.Blockers)
	if x.Queued() {
		e.Position = &in.Line
	}
	e.Summary = e.Blockers[0].Message
	if n := len(e.Blockers) - 1; n > 0 {
		e.Summary += fmt.Sprintf(" And %s.", counted(n, "other cause keeps", "other causes keep")+" it waiting")
	}
	return e
}

// ending tells how x ended, and why if that is not the same word.
func (x *Execution) ending() string {
	how := map[Status]string{Succeeded: "It succeeded", Failed: "It failed", Cancelled: "It was cancelled", Expired: "It expired", Skipped: "It was skipped"}[x.Status]
	text := fmt.Sprintf("%s at %s", how, x.CompletedAt)
	if x.Status != Succeeded && x.Reason.String() != x.Status.String() {
		text += ": " + x.Reason.String()
	}
	return text + "."
}

// blockers lists every cause, in the order of S57. There is always one. A flow node needs no lane, worker or room (F46).
func (in *ExplainInput) blockers() (list []Blocker) {
	list = append(list, in.gateBlockers()...)
	if m := in.Execution.Member; m != nil && m.Subflow {
		return list
	}
	list = append(list, in.laneBlockers()...)
	list = append(list, in.missingWorkers()...)
	list = append(list, in.roomBlockers()...)
	list = append(list, in.busyWorkers()...)
	if in.Execution.Queued() && (len(list) == 0 || in.Line.Ahead > 0) {
		list = append(list, in.inLine())
	}
	return list
}

// withoutGrant is the execution as the end of its grant would leave it, and the room that it would find then.
func (in *ExplainInput) withoutGrant() (*Execution, *Room) {
	if in.Execution.Status != Granted {
		return in.Execution, in.Room
	}
	x, room := in.Execution.Clone(), *in.Room
	fx := &Effects{Now: in.Now, Actor: EngineActor(), Books: room.Books}
	x.endGrant(fx, "expired")
	room.Slots, room.Rates = maps.Clone(room.Slots), maps.Clone(room.Rates)
	for _, a := range fx.RatesBack {
		if window := room.Rates[a.Key]; window != nil {
			room.Rates[a.Key] = &RateWindow{entries: slices.Clone(window.entries)}
		}
	}
	room.Settled(in.Execution.Holds, x.Holds, fx.RatesBack)
	return x, &room
}

// Settled brings the room in step with what timers of an execution have given back, for whoever only looks.
func (r *Room) Settled(before, now []string, back []RateAdmission) {
	for _, key := range before {
		if !slices.Contains(now, key) && r.Slots[key] > 0 {
			r.Slots[key]--
		}
	}
	for _, a := range back {
		if window := r.Rates[a.Key]; window != nil {
			window.GiveBack(a.At)
		}
	}
}

// nextEligible is the latest of the known times among delay, grant, budget and rate; absent if another of the causes before
// workers_busy stands, or if nobody knows when one of them ends (S58).
func nextEligible(blockers []Blocker) (at Time) {
	for _, b := range blockers {
		switch b.Code {
		case BlockerWorkersBusy, BlockerInLine:
		case BlockerDelay, BlockerGrant, BlockerBudget, BlockerRate:
			if b.Until == 0 {
				return 0
			}
			at = later(at, b.Until)
		default:
			return 0
		}
	}
	return at
}

// counted is a number with the word for it.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func ids(list []ID) []string {
	texts := make([]string, len(list))
	for i, id := range list {
		texts[i] = id.String()
	}
	return texts
}

// Differs reports whether status, reason or the causes are others than those of o. Numbers may differ all the time.
func (e *Explanation) Differs(o *Explanation) bool {
	return e.Status != o.Status || e.Reason != o.Reason ||
		!slices.EqualFunc(e.Blockers, o.Blockers, func(a, b Blocker) bool { return a.Code == b.Code && a.Key == b.Key })
}
