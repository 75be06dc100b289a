package store

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
)

// runningExecution is a typical row of the hot path.
func runningExecution() *core.Execution {
	created := base.Time(1_790_000_000_000)
	attempt := base.UUID{1, 2, 3}
	return &core.Execution{
		ID: base.IDOf(base.UUID{9, 8, 7}), Class: &core.Class{ID: 3, Namespace: "default", Lane: "default", Kind: "charge"},
		Creator: "client-7", Policy: core.DefaultPolicy(),
		Input:  core.Payload{ContentType: "application/json", Data: []byte(`{"amount":12}`), Size: 13},
		Tags:   base.Tags{"customer": "4711", "region": "eu"},
		Status: core.Running, StatusSince: created + 5, QueuedAt: created, OrderKey: int64(created), LeaseEpoch: 1,
		Lease: &core.Lease{
			ID: base.UUID{5}, AttemptID: attempt, WorkerID: "worker-1", InstanceID: "worker-1@host-17-4242",
			AcquiredAt: created + 5, RenewedAt: created + 5, TTL: 30_000, ExpiresAt: created + 30_005, RequestKey: "r-1234567890",
		},
		TotalAttempts: 1,
		Attempt: &core.Attempt{
			ID: attempt, Type: core.AttemptInitial, State: core.AttemptStarted, StartedAt: created + 5,
			FirstEpoch: 1, LastEpoch: 1, WorkerID: "worker-1", InstanceID: "worker-1@host-17-4242",
		},
		CreatedAt: created, StartedAt: created + 5, RunStartedAt: created + 5, LastMutationAt: created + 5,
		WakeAt: created + 30_005, TimerAt: created + 30_050,
	}
}

// completions are the events of a commit that completes n executions.
func completions(n int) []core.Event {
	class := &core.Class{ID: 3, Namespace: "default", Lane: "default", Kind: "charge"}
	events := make([]core.Event, n)
	for i := range events {
		events[i] = core.Event{
			Kind: "execution.completed", At: 1_790_000_000_000, Namespace: "default", Class: class,
			ExecutionID: base.IDOf(base.UUID{byte(i), byte(i >> 8), 7}), InstanceID: "worker-1@host-17-4242",
			Tags: base.Tags{"customer": "4711"}, Actor: core.Actor{Type: "worker", ID: "worker-1"},
			Data: eventdata.OfJSON([]byte(`{"outcome":"success"}`)),
		}
	}
	return events
}

func drawTime(t *rapid.T, name string) base.Time {
	return base.Time(rapid.OneOf(
		rapid.SampledFrom([]int64{0, 1, -1, 1000, 999, 1 << 62, -1 << 63, 1<<63 - 1}),
		rapid.Int64Range(1_790_000_000_000, 1_790_000_100_000),
		rapid.Int64(),
	).Draw(t, name))
}

func drawText(t *rapid.T, name string) string {
	return rapid.OneOf(rapid.SampledFrom([]string{"", "default", "worker-1"}), rapid.StringN(0, 12, -1)).Draw(t, name)
}

func drawUUID(t *rapid.T, name string) (u base.UUID) {
	copy(u[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, name))
	return u
}

func drawID(t *rapid.T, name string) base.ID {
	if rapid.Bool().Draw(t, name+" absent") {
		return base.ID{}
	}
	return base.ID{N: rapid.Byte().Draw(t, name+" n"), UUID: drawUUID(t, name)}
}

// drawBytes draws nil, empty or some bytes.
func drawBytes(t *rapid.T, name string) []byte {
	switch rapid.IntRange(0, 2).Draw(t, name+" form") {
	case 0:
		return nil
	case 1:
		return []byte{}
	}
	return rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, name)
}

func drawMaybe[T any](t *rapid.T, name string, draw func(*rapid.T) T) *T {
	if rapid.Bool().Draw(t, name+" absent") {
		return nil
	}
	v := draw(t)
	return &v
}

func drawPayload(t *rapid.T) core.Payload {
	p := core.Payload{ContentType: rapid.SampledFrom([]string{"", "application/json", "text/csv"}).Draw(t, "content type")}
	p.Data = drawBytes(t, "data")
	if p.Data == nil {
		p.Data = []byte{}
	}
	p.Size = len(p.Data)
	return p
}

func drawFailure(t *rapid.T) core.Failure {
	f := core.Failure{
		Class: drawText(t, "class"), Category: drawText(t, "category"), Message: drawText(t, "message"),
		Detail: drawBytes(t, "detail"), At: drawTime(t, "failed at"),
	}
	if f.Detail != nil {
		f.DetailType = drawText(t, "content type of the detail")
	}
	return f
}

func drawLineage(t *rapid.T) core.Lineage {
	return core.Lineage{
		PreviousIndex: rapid.Int().Draw(t, "previous"), Class: drawText(t, "class"), Category: drawText(t, "category"),
		Cause: drawText(t, "cause"), Reason: drawText(t, "reason"), By: drawText(t, "by"), ReplayNumber: rapid.Int().Draw(t, "replay"),
	}
}

func drawAttempt(t *rapid.T) core.Attempt {
	return core.Attempt{
		ID: drawUUID(t, "attempt"), Index: rapid.Int().Draw(t, "index"),
		Type:      core.AttemptType(rapid.IntRange(0, int(core.AttemptReplay)).Draw(t, "type")),
		State:     core.AttemptState(rapid.IntRange(0, int(core.InterruptedReclaimed)).Draw(t, "state")),
		StartedAt: drawTime(t, "started"), EndedAt: drawTime(t, "ended"), RunningMS: rapid.Int64().Draw(t, "running"),
		FirstEpoch: rapid.Int64().Draw(t, "first"), LastEpoch: rapid.Int64().Draw(t, "last"),
		WorkerID: drawText(t, "worker"), InstanceID: drawText(t, "instance"), Failure: drawMaybe(t, "failure", drawFailure),
		Interruption: core.Interruption(rapid.IntRange(0, int(core.InterruptedLeaseRevoked)).Draw(t, "interruption")),
		InterruptAt:  drawTime(t, "interrupted"), Lineage: drawMaybe(t, "lineage", drawLineage), Usage: drawAmounts(t), UsageBefore: drawAmounts(t),
	}
}

// drawAmounts draws nil or some numbers by dimension.
func drawAmounts(t *rapid.T) map[string]int64 {
	dimension := rapid.OneOf(rapid.SampledFrom(dimensions[:]), rapid.StringN(0, 5, -1))
	amounts := rapid.MapOfN(dimension, rapid.Int64(), 0, 4).Draw(t, "amounts")
	if len(amounts) == 0 {
		return nil
	}
	return amounts
}

func drawUUIDs(t *rapid.T, name string) (ids []base.UUID) {
	for range rapid.IntRange(0, 3).Draw(t, name) {
		ids = append(ids, drawUUID(t, name))
	}
	return ids
}

func drawReservation(t *rapid.T) (r core.Reservation) {
	for _, budget := range drawUUIDs(t, "holds") {
		r.Holds = append(r.Holds, core.BudgetHold{Budget: budget, Remaining: drawAmounts(t)})
	}
	for range rapid.IntRange(0, 2).Draw(t, "rates") {
		r.Rates = append(r.Rates, core.RateAdmission{Key: drawText(t, "rate"), At: drawTime(t, "admitted")})
	}
	return r
}

func drawAdmission(t *rapid.T, x *core.Execution) {
	x.Reservation = drawMaybe(t, "reservation", drawReservation)
	for _, budget := range drawUUIDs(t, "budgets") {
		scope := rapid.SampledFrom([]string{core.ScopeExecution, core.ScopeFlow, "", "tomorrow's"}).Draw(t, "scope")
		depth := 0
		if scope == core.ScopeFlow {
			depth = rapid.IntRange(0, core.MaxFlowDepth).Draw(t, "depth")
		}
		x.Budgets = append(x.Budgets, core.ScopedBudget{ID: budget, Scope: scope, Depth: depth, Ancestors: drawUUIDs(t, "ancestors")})
	}
	x.Usage = drawAmounts(t)
	x.RetryAt, x.WallHoldAt = drawTime(t, "retry"), drawTime(t, "wall hold")
}

func drawTags(t *rapid.T) base.Tags {
	tags := rapid.MapOfN(rapid.StringN(1, 5, -1), rapid.StringN(0, 5, -1), 0, 4).Draw(t, "tags")
	if len(tags) == 0 {
		return nil
	}
	return tags
}

func drawLease(t *rapid.T) core.Lease {
	return core.Lease{
		ID: drawUUID(t, "lease"), AttemptID: drawUUID(t, "attempt"), WorkerID: drawText(t, "worker"),
		InstanceID: drawText(t, "instance"), AcquiredAt: drawTime(t, "acquired"), RenewedAt: drawTime(t, "renewed"),
		TTL: rapid.Int64().Draw(t, "ttl"), ExpiresAt: drawTime(t, "expires"), RequestKey: drawText(t, "request"),
		GrantHash: drawBytes(t, "grant"),
	}
}

func drawLeaseEnd(t *rapid.T) core.LeaseEnd {
	return core.LeaseEnd(rapid.IntRange(0, int(core.EndBudgetExceeded)).Draw(t, "end"))
}

func drawReason(t *rapid.T, name string) core.Reason {
	return core.Reason(rapid.IntRange(0, int(core.PausedByPolicy)).Draw(t, name))
}

func drawExecution(t *rapid.T) *core.Execution {
	x := &core.Execution{
		ID: base.ID{N: rapid.Byte().Draw(t, "n"), UUID: drawUUID(t, "id")}, Class: &core.Class{ID: 7},
		Creator: drawText(t, "creator"), CreatorKey: drawText(t, "creator key"), IdempotencyKey: drawText(t, "key"), FlowID: drawID(t, "flow"), ParentID: drawID(t, "parent"),
		Input: drawPayload(t), Policy: core.DefaultPolicy(), Tags: drawTags(t),
		Status: rapid.SampledFrom(core.Statuses()).Draw(t, "status"), Reason: drawReason(t, "reason"),
		Next: core.Next(rapid.IntRange(0, int(core.NextResume)).Draw(t, "next")), BlockingDetail: drawBytes(t, "detail"),
		StatusSince: drawTime(t, "since"), Priority: rapid.IntRange(0, 9000).Draw(t, "priority"), QueuedAt: drawTime(t, "queued"),
		DelayUntil: drawTime(t, "delay"), DelayReason: drawReason(t, "delay reason"), Dependency: drawReason(t, "dependency"),
		BlockedOn: drawText(t, "blocked on"), OrderKey: rapid.Int64().Draw(t, "order"),
		LeaseEpoch: rapid.Int64().Draw(t, "epoch"), Lease: drawMaybe(t, "lease", drawLease),
		TotalAttempts: rapid.Int().Draw(t, "attempts"), Attempt: drawMaybe(t, "attempt", drawAttempt),
		AttemptRemaining: rapid.Int64().Draw(t, "remaining"), AttemptDeadline: drawTime(t, "attempt deadline"),
		ReplayLineage: drawMaybe(t, "replay lineage", drawLineage),
		RetryCount:    rapid.Int().Draw(t, "retries"), ReclaimCount: rapid.Int().Draw(t, "reclaims"), ReplayCount: rapid.Int().Draw(t, "replays"),
		Result: drawMaybe(t, "result", drawPayload), ResultEpoch: rapid.Int64().Draw(t, "result epoch"),
		Failure:   drawMaybe(t, "failure", drawFailure),
		CreatedAt: drawTime(t, "created"), StartedAt: drawTime(t, "started"), RunStartedAt: drawTime(t, "run started"),
		CompletedAt: drawTime(t, "completed"), DeadlineAt: drawTime(t, "deadline"), LastMutationAt: drawTime(t, "mutated"),
		WakeAt: drawTime(t, "wake"), TimerAt: drawTime(t, "timer"),
	}
	drawRetries(t, x)
	drawColdParts(t, x)
	drawAdmission(t, x)
	drawFlowParts(t, x)
	if x.Attempt != nil && rapid.Bool().Draw(t, "shared failure") {
		x.Attempt.Failure = x.Failure
	}
	return x
}

// drawRetries draws where the retry policy comes from and what is remembered about retries.
func drawRetries(t *rapid.T, x *core.Execution) {
	x.RetryOrigin = core.RetryOrigin(rapid.IntRange(int(core.RetryGiven), int(core.RetryOfLane)).Draw(t, "retry origin"))
	x.RetryLeftOut = core.RetryMembers(rapid.IntRange(0, int(core.RetryCountLeftOut|core.RetryMaxLeftOut)).Draw(t, "left out"))
	worker, err := core.ParseDefaultPolicy([]byte(rapid.SampledFrom([]string{
		"", `{"retry_policy":{}}`, `{"retry_policy":{"max_retries":3,"by_category":{"net":{"max_retries":0},"timeout":{"backoff":{"initial_ms":5}}}}}`,
	}).Draw(t, "worker's default")))
	if err != nil {
		t.Fatal(err)
	}
	counts := rapid.SampledFrom([]map[string]int{nil, {"net": 1}, {"net": 2, "timeout": 10_000}}).Draw(t, "counts")
	if worker != nil || counts != nil {
		x.Retries = &core.Retries{Worker: worker.Filled(), Counts: counts}
	}
}

func drawColdParts(t *rapid.T, x *core.Execution) {
	x.Held = drawMaybe(t, "held", func(t *rapid.T) core.Hold {
		return core.Hold{By: drawText(t, "by"), At: drawTime(t, "at"), Reason: drawText(t, "reason")}
	})
	x.Grant = drawMaybe(t, "grant", func(t *rapid.T) core.Grant {
		return core.Grant{
			Hash: drawBytes(t, "hash"), Kid: drawText(t, "kid"), WorkerID: drawText(t, "worker"), InstanceID: drawText(t, "instance"),
			IssuedAt: drawTime(t, "issued"), ExpiresAt: drawTime(t, "expires"), RequestKey: drawText(t, "request"),
		}
	})
	x.LastLease = drawMaybe(t, "last lease", func(t *rapid.T) core.LastLease {
		return core.LastLease{
			ID: drawUUID(t, "id"), Epoch: rapid.Int64().Draw(t, "epoch"), AttemptID: drawUUID(t, "attempt"),
			EndedAt: drawTime(t, "ended"), End: drawLeaseEnd(t), Budgets: drawUUIDs(t, "budgets"),
		}
	})
	x.Cancellation = drawMaybe(t, "cancellation", func(t *rapid.T) core.Cancellation {
		return core.Cancellation{Source: drawText(t, "source"), By: drawText(t, "by"), Reason: drawText(t, "reason")}
	})
	x.Trace = drawMaybe(t, "trace", func(t *rapid.T) base.Trace {
		return base.Trace{Parent: drawText(t, "parent"), State: drawText(t, "state"), Baggage: drawText(t, "baggage")}
	})
	x.Retain = drawMaybe(t, "retain", func(t *rapid.T) core.Retain {
		return core.Retain{Until: drawTime(t, "until"), By: drawText(t, "by"), Reason: drawText(t, "reason")}
	})
	x.Progress = drawMaybe(t, "progress", func(t *rapid.T) core.Progress {
		return core.Progress{
			Percent: drawMaybe(t, "percent", func(t *rapid.T) int { return rapid.Int().Draw(t, "percent") }),
			Message: drawMaybe(t, "message", func(t *rapid.T) string { return drawText(t, "message") }), UpdatedAt: drawTime(t, "updated"),
		}
	})
	x.Waits = drawMaybe(t, "waits", drawWaits)
	if !rapid.Bool().Draw(t, "no holds") {
		x.Holds = rapid.SliceOfN(rapid.StringN(0, 5, -1), 0, 3).Draw(t, "holds")
	}
}

func drawWaits(t *rapid.T) core.Waits {
	w := core.Waits{
		Signals: rapid.Int().Draw(t, "signals"), TimeoutSignals: rapid.Int().Draw(t, "timeout signals"),
		Suspensions: rapid.Int().Draw(t, "suspensions"),
		Suspension: drawMaybe(t, "suspension", func(t *rapid.T) core.OpenSuspension {
			return core.OpenSuspension{
				Seq: rapid.Int().Draw(t, "seq"), ID: drawUUID(t, "suspension"), At: drawTime(t, "at"), TimeoutAt: drawTime(t, "timeout"),
				Behavior: drawText(t, "behavior"), ResumeDelay: rapid.Int64().Draw(t, "delay"), ReasonCode: drawText(t, "code"),
				PrimaryID: drawUUID(t, "primary"), PrimaryKey: drawText(t, "primary key"), EscalatedAt: drawTime(t, "escalated"),
			}
		}),
	}
	for range rapid.IntRange(0, 3).Draw(t, "open waitpoints") {
		w.Open = append(w.Open, core.OpenWaitpoint{
			ID: drawUUID(t, "waitpoint"), Key: drawText(t, "waitpoint key"), Active: rapid.Bool().Draw(t, "active"), ExpiresAt: drawTime(t, "expires"),
		})
	}
	return w
}

func drawRecord(t *rapid.T) core.LeaseRecord {
	rec := core.LeaseRecord{
		ExecutionID: base.ID{N: rapid.Byte().Draw(t, "n"), UUID: drawUUID(t, "id")}, Epoch: rapid.Int64().Draw(t, "epoch"),
		LeaseID: drawUUID(t, "lease"), RunIndex: rapid.Int().Draw(t, "run"), Attempt: drawAttempt(t),
		WorkerID: drawText(t, "worker"), InstanceID: drawText(t, "instance"), AcquiredAt: drawTime(t, "acquired"),
		EndedAt: drawTime(t, "ended"), End: drawLeaseEnd(t), Late: rapid.Bool().Draw(t, "late"),
		Answer: drawBytes(t, "answer"), Result: drawMaybe(t, "result", drawPayload), Replaces: rapid.Bool().Draw(t, "replaces"),
	}
	if rapid.Bool().Draw(t, "same worker") {
		rec.Attempt.WorkerID, rec.Attempt.InstanceID = rec.WorkerID, rec.InstanceID
	}
	return rec
}

// drawData draws no data, data that was JSON, or fields of every kind.
func drawData(t *rapid.T) eventdata.Data {
	switch rapid.IntRange(0, 4).Draw(t, "form of data") {
	case 0:
		return eventdata.Data{}
	case 1:
		return eventdata.OfJSON(drawBytes(t, "json"))
	}
	const open, kinds, names, longest = 2, 12, 40, 17
	var shape []byte
	depth := 1
	for range rapid.IntRange(0, 12).Draw(t, "fields") {
		kind := rapid.IntRange(open, kinds-1).Draw(t, "kind")
		shape = append(shape, byte(kind), byte(rapid.IntRange(0, names).Draw(t, "name")))
		if kind == open {
			depth++
		}
	}
	shape = append(shape, make([]byte, depth)...) // every object ends
	bytes := rapid.SliceOfN(rapid.ByteRange(0, 9), longest*len(shape), longest*len(shape)).Draw(t, "values")
	parsed, ok := eventdata.ParseShape(string(shape))
	if !ok {
		t.Fatalf("the shape %x is refused", shape)
	}
	values, count, ok := parsed.Cut(string(bytes))
	if !ok {
		t.Fatalf("the values %x of the shape %x are refused", bytes, shape)
	}
	var texts []string
	for range count {
		texts = append(texts, drawText(t, "text"))
	}
	return eventdata.Of(string(shape), string(bytes[:values]), texts)
}

func drawEvent(t *rapid.T) core.Event {
	e := core.Event{
		Kind: drawText(t, "kind"), At: drawTime(t, "at"), Namespace: drawText(t, "namespace"), ExecutionID: drawID(t, "execution"),
		FlowID: drawID(t, "flow"), RootFlowID: drawID(t, "root"), AttemptIndex: rapid.IntRange(-1, 3).Draw(t, "attempt"),
		InstanceID: drawText(t, "instance"), Tags: drawTags(t), Actor: core.Actor{Type: drawText(t, "type"), ID: drawText(t, "actor")},
		RequestID: drawText(t, "request"), Data: drawData(t),
	}
	e.Class = drawMaybe(t, "class", func(t *rapid.T) core.Class {
		return core.Class{ID: 5, Namespace: drawText(t, "namespace"), Lane: fmt.Sprint("lane", rapid.IntRange(0, 2).Draw(t, "lane")), Kind: drawText(t, "kind")}
	})
	return e
}

func drawJoin(t *rapid.T) core.Join {
	return core.Join{
		JoinSpec: core.JoinSpec{
			Policy: core.JoinPolicy(rapid.IntRange(0, int(core.Quorum)).Draw(t, "policy")), K: rapid.Int().Draw(t, "k"),
			OnSatisfied: core.OnSatisfied(rapid.IntRange(0, int(core.CancelRemaining)).Draw(t, "on satisfied")),
		},
		N: rapid.Int().Draw(t, "n"), Satisfied: rapid.Int().Draw(t, "satisfied"), Impossible: rapid.Int().Draw(t, "impossible"),
		State:     core.JoinState(rapid.IntRange(0, int(core.JoinOverridden)).Draw(t, "state")),
		DecidedAt: drawTime(t, "decided"), Passes: rapid.Bool().Draw(t, "passes"), Detail: drawText(t, "detail"),
	}
}

func drawFlowParts(t *rapid.T, x *core.Execution) {
	x.ResultOf = drawID(t, "result of")
	for range rapid.IntRange(0, 3).Draw(t, "earlier flows") {
		x.Earlier = append(x.Earlier, drawID(t, "earlier flow"))
	}
	x.Children = drawMaybe(t, "children", func(t *rapid.T) core.Children {
		return core.Children{FlowID: drawID(t, "children flow"), Waits: rapid.Int().Draw(t, "waits"), Wait: drawMaybe(t, "wait", func(t *rapid.T) core.ChildrenWait {
			return core.ChildrenWait{
				Number: rapid.Int().Draw(t, "number"), Join: drawJoin(t), Kind: core.EdgeKind(drawText(t, "kind")),
				Since: drawTime(t, "since"), TimeoutAt: drawTime(t, "timeout"), Cause: drawText(t, "cause"),
			}
		})}
	})
	x.Member = drawMaybe(t, "member", func(t *rapid.T) core.Membership {
		m := core.Membership{
			Name: drawText(t, "name"), Root: x.FlowID, MayFail: rapid.Bool().Draw(t, "may fail"), Output: rapid.Bool().Draw(t, "output"),
			Subflow: rapid.Bool().Draw(t, "subflow"), Late: rapid.Bool().Draw(t, "late"), Out: rapid.Int().Draw(t, "out"),
			Join: drawJoin(t), Inputs: rapid.Bool().Draw(t, "inputs"),
		}
		if rapid.Bool().Draw(t, "inner flow") {
			m.Root = drawID(t, "root")
		}
		return m
	})
}
