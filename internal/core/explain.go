package core

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
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

// Explanation states why an execution is not running (S57).
type Explanation struct {
	ExecutionID    base.ID
	Status         Status
	Reason         Reason
	Since          base.Time // of status and reason
	Summary        string    // one sentence
	Blockers       []Blocker
	NextEligibleAt base.Time // absent: unknown, or there is nothing to wait for (S58)
	Position       *Line
	Workers        CandidateWorkers
	History        []StatusChange
	Running        *RunningNow // while running
	Outcome        string      // once it has ended
}

// Blocker is one cause that keeps an execution from running.
type Blocker struct {
	Code    string
	Message string // one sentence with its numbers
	Since   base.Time
	Until   base.Time       // when it ends by itself, if known
	Data    json.RawMessage // its numbers, by name
	Key     string          // of budget, rate and concurrency: the key without room
}

// RunningNow states which worker runs an execution.
type RunningNow struct {
	Lease   Lease
	Epoch   int64
	Attempt int // its index
}

// Line is the place of an execution among the ready ones of its lane.
type Line struct {
	Ahead       int    // executions before it in order, counted up to a bound
	AtLeast     bool   // the bound was reached: there are more
	FairnessKey string // the key whose turns it shares; "" when fairness is off
	AheadOfKey  int    // the part of Ahead under its own key: served first regardless of the turns
	Keys        int    // keys with ready work, its own included: they take turns
	Weight      int    // of its key
}

// ExplainInput is the input of Explain: rows of one read, with the due timers applied.
type ExplainInput struct {
	Now       base.Time
	Execution *Execution
	Suspended *SuspendedView // what it waits for; nil unless it is suspended
	WaitedFor []WaitedFor    // upstreams or children, while it waits for those
	Subflow   *SubflowNow    // of a flow node; nil: not begun
	Lane      *Lane          // nil: not registered yet, open
	LaneInUse int64          // granted and running, if the lane has a cap; excludes a grant of its own
	Workers   []Worker       // that the caller may see, including dead ones
	Leases    map[string]int // held, by instance; absent: not counted
	Room      *Room          // with what the timers have given back
	Set       []base.UUID    // the budgets that apply
	Holders   map[string][]base.ID
	Line      Line
	Namespace NamespaceNow
	History   []StatusChange
}

// NamespaceNow is what the limits of its namespace have to do with an execution (U101).
type NamespaceNow struct {
	MaxPriority int // of a submit; 0: any
	Workers     int // instances that serve the namespace, without those that are dead
	MaxWorkers  int // 0: any number
}

// Explain states why the execution is not running. It calls the same functions that make the decisions (S56).
func Explain(in ExplainInput) Explanation {
	x := in.Execution
	e := Explanation{
		ExecutionID: x.ID, Status: x.Status, Reason: x.Reason, Since: x.StatusSince, History: in.History,
		Workers: in.candidateWorkers(),
	}
	switch {
	case x.Status.Terminal():
		e.Outcome = x.Status.Outcome()
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

// ending returns how x ended, and the reason if that is another word.
func (x *Execution) ending() string {
	how := map[Status]string{Succeeded: "It succeeded", Failed: "It failed", Cancelled: "It was cancelled", Expired: "It expired", Skipped: "It was skipped"}[x.Status]
	text := fmt.Sprintf("%s at %s", how, x.CompletedAt)
	if x.Status != Succeeded && x.Reason.String() != x.Status.String() {
		text += ": " + x.Reason.String()
	}
	return text + "."
}

// blockers lists every cause in the order of S57. There is always at least one. A flow node needs no lane, worker or room (F46).
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

// withoutGrant returns the execution as the end of its grant would leave it, and the room that it would then find.
func (in *ExplainInput) withoutGrant() (*Execution, *Room) {
	if in.Execution.Status != Granted {
		return in.Execution, in.Room
	}
	x, room := in.Execution.Clone(), *in.Room
	fx := &Effects{Now: in.Now, Actor: EngineActor(), Budgets: room.Budgets}
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

// Settled adjusts the room to what the timers of an execution have given back, for callers that only read.
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

// nextEligible returns the latest of the known times among delay, grant, budget and rate. It is absent if there is another cause before
// workers_busy, or if the end of one of them is unknown (S58).
func nextEligible(blockers []Blocker) (at base.Time) {
	for _, b := range blockers {
		switch b.Code {
		case BlockerWorkersBusy, BlockerInLine:
		case BlockerDelay, BlockerGrant, BlockerBudget, BlockerRate:
			if b.Until == 0 {
				return 0
			}
			at = base.Later(at, b.Until)
		default:
			return 0
		}
	}
	return at
}

// counted formats a number with its noun.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func ids(list []base.ID) []string {
	texts := make([]string, len(list))
	for i, id := range list {
		texts[i] = id.String()
	}
	return texts
}

// Differs reports whether status, reason or causes differ from those of o. Numbers are not compared, because they may change at any time.
func (e *Explanation) Differs(o *Explanation) bool {
	return e.Status != o.Status || e.Reason != o.Reason ||
		!slices.EqualFunc(e.Blockers, o.Blockers, func(a, b Blocker) bool { return a.Code == b.Code && a.Key == b.Key })
}
