package storetest

import (
	"encoding/json"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// policies returns the policies of drawn executions.
func policies() []string {
	return []string{
		`{}`,
		`{"lease_grace_ms":5000,"max_reclaim_count":3,"max_replay_count":0}`,
		`{"retry_policy":{"max_retries":7,"backoff":{"strategy":"exponential","initial_ms":5,"max_ms":60,"multiplier":1.5,"jitter":0.25},"retryable_categories":["io","net.reset"]}}`,
		`{"retry_policy":{"max_retries":0,"backoff":{"strategy":"fixed","delay_ms":0}},"timeout_policy":{"attempt_timeout_ms":1,"execution_deadline_ms":315360000000}}`,
		`{"slots_while_waiting":"hold","dedup_window_ms":1000,"retention_ms":-1}`,
	}
}

func drawPolicy(t *rapid.T) *core.Policy {
	text := rapid.SampledFrom(policies()).Draw(t, "policy")
	policy, err := core.ParsePolicy([]byte(text))
	if err != nil {
		t.Fatalf("policy %s: %v", text, err)
	}
	return policy
}

func drawText(t *rapid.T, name string) string {
	return rapid.SampledFrom([]string{"", "a", "Grüße", "日本語 text", `quote ' " \ %_`, "emoji 🙂", "line\nbreak\ttab", "{\"json\":1}"}).Draw(t, name)
}

func drawBytes(t *rapid.T, name string) []byte {
	return rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, name)
}

func drawTime(t *rapid.T, name string, now base.Time) base.Time {
	if rapid.Bool().Draw(t, name+" present") {
		return now.Add(rapid.Int64Range(-10*base.Day, 10*base.Year).Draw(t, name))
	}
	return 0
}

func drawMoment(t *rapid.T, name string, now base.Time) base.Time {
	return now.Add(rapid.Int64Range(-base.Year, base.Year).Draw(t, name))
}

func drawUUID(t *rapid.T, name string) base.UUID {
	var u base.UUID
	copy(u[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, name))
	u[0] |= 1 // never the zero UUID
	return u
}

func drawOptionalID(t *rapid.T, name string) base.ID {
	if rapid.Bool().Draw(t, name+" present") {
		return base.ID{N: rapid.Byte().Draw(t, name+" n"), UUID: drawUUID(t, name)}
	}
	return base.ID{}
}

func drawTags(t *rapid.T) base.Tags {
	keys := rapid.SampledFrom([]string{"team", "tier.level", "a", "z_9"})
	return rapid.MapOfN(keys, rapid.Map(rapid.IntRange(0, 3), func(i int) string { return []string{"", "gold", "ümlaut", "x'y"}[i] }), 0, 4).Draw(t, "tags")
}

func drawJSON(t *rapid.T, name string) json.RawMessage {
	if rapid.Bool().Draw(t, name+" present") {
		return json.RawMessage(fmt.Sprintf(`{"n":%d,"a":"\u0000 é"}`, rapid.IntRange(-5, 5).Draw(t, name)))
	}
	return nil
}

// maybe draws a pointer that is nil half of the time.
func maybe[V any](t *rapid.T, name string, draw func() V) *V {
	if !rapid.Bool().Draw(t, name+" present") {
		return nil
	}
	v := draw()
	return &v
}

// drawExecution draws every field of an execution within the constraints of L13 and LI1: lease iff running, grant iff
// granted, completed_at iff terminal, the last lease is that of the current epoch and of the current attempt.
func (w *world) drawExecution(t *rapid.T) *core.Execution {
	x := &core.Execution{
		ID:    base.ID{N: rapid.Byte().Draw(t, "n"), UUID: newUUID(w.now)},
		Class: w.class, Creator: drawText(t, "creator"), CreatorKey: drawText(t, "creator key"), IdempotencyKey: drawText(t, "idempotency key"),
		FlowID: drawOptionalID(t, "flow"), ParentID: drawOptionalID(t, "parent"),
		Input:  payload(rapid.SampledFrom([]string{"application/octet-stream", "text/plain; charset=utf-8"}).Draw(t, "content type"), drawBytes(t, "input")),
		Policy: drawPolicy(t), CreatedAt: drawMoment(t, "created", w.now),
		RetryOrigin: core.RetryOrigin(rapid.IntRange(int(core.RetryGiven), int(core.RetryOfLane)).Draw(t, "retry origin")),
		Trace: maybe(t, "trace", func() base.Trace {
			return base.Trace{Parent: drawText(t, "traceparent"), State: drawText(t, "tracestate"), Baggage: drawText(t, "baggage")}
		}),
	}
	w.drawState(t, x)
	return x
}

// drawState draws every field that may change.
func (w *world) drawState(t *rapid.T, x *core.Execution) {
	w.drawQueue(t, x)
	w.drawLease(t, x)
	w.drawOutcome(t, x)
	w.drawAdmission(t, x)
	x.LastMutationAt, x.StatusSince = drawMoment(t, "mutated", w.now), drawMoment(t, "since", w.now)
	x.StartedAt, x.RunStartedAt = drawTime(t, "started", w.now), drawTime(t, "run started", w.now)
	x.DeadlineAt = drawTime(t, "deadline", w.now)
	x.WakeAt, x.TimerAt = drawTime(t, "wake", w.now), drawTime(t, "timer", w.now)
}

func (w *world) drawQueue(t *rapid.T, x *core.Execution) {
	x.Tags = drawTags(t)
	x.Status = rapid.SampledFrom(core.Statuses()).Draw(t, "status")
	x.Reason = rapid.SampledFrom(core.ReasonsOf(x.Status)).Draw(t, "reason")
	x.Next = core.NextNone
	if x.Status != core.Running && !x.Status.Terminal() {
		x.Next = core.Next(rapid.IntRange(int(core.NextInitial), int(core.NextResume)).Draw(t, "next"))
	}
	x.BlockingDetail = drawJSON(t, "blocking detail")
	x.Priority = rapid.IntRange(0, 9000).Draw(t, "priority")
	x.QueuedAt = drawMoment(t, "queued", w.now)
	x.DelayUntil = drawTime(t, "delay until", w.now)
	x.DelayReason = rapid.SampledFrom(append([]core.Reason{core.ReasonNone}, core.ReasonsOf(core.Delayed)...)).Draw(t, "delay reason")
	x.Dependency = rapid.SampledFrom([]core.Reason{core.ReasonNone, core.WaitingForChildren, core.WaitingForSubflow}).Draw(t, "dependency")
	x.Held = maybe(t, "held", func() core.Hold {
		return core.Hold{By: drawText(t, "held by"), At: drawMoment(t, "held at", w.now), Reason: drawText(t, "held why")}
	})
	x.BlockedOn = drawText(t, "blocked on")
	x.OrderKey = rapid.Int64().Draw(t, "order key")
	x.Grant = nil
	if x.Status == core.Granted {
		x.Grant = &core.Grant{
			Hash: drawBytes(t, "grant hash"), Kid: "k1", WorkerID: "w", InstanceID: drawText(t, "grant instance"),
			IssuedAt: drawMoment(t, "issued", w.now), ExpiresAt: drawMoment(t, "grant expires", w.now), RequestKey: drawText(t, "grant key"),
		}
	}
}

func (w *world) drawLease(t *rapid.T, x *core.Execution) {
	x.LeaseEpoch = rapid.Int64Range(0, 1<<40).Draw(t, "epoch")
	x.TotalAttempts = rapid.IntRange(0, 20000).Draw(t, "attempts")
	x.Lease, x.LastLease, x.Attempt = nil, nil, nil
	if x.Status == core.Running || rapid.Bool().Draw(t, "attempt present") {
		attempt := w.drawAttempt(t)
		x.Attempt, x.LeaseEpoch = &attempt, max(x.LeaseEpoch, 1)
	}
	switch {
	case x.Status == core.Running:
		x.Lease = &core.Lease{
			ID: drawUUID(t, "lease"), AttemptID: x.Attempt.ID, WorkerID: drawText(t, "worker"), InstanceID: drawText(t, "instance"),
			AcquiredAt: drawMoment(t, "acquired", w.now), RenewedAt: drawMoment(t, "renewed", w.now),
			TTL: rapid.Int64Range(500, base.Day).Draw(t, "ttl"), ExpiresAt: drawMoment(t, "expires", w.now),
			RequestKey: drawText(t, "lease key"), GrantHash: drawBytes(t, "lease grant"),
		}
	case x.Attempt != nil && rapid.Bool().Draw(t, "last lease present"):
		x.LastLease = &core.LastLease{
			ID: drawUUID(t, "last lease"), Epoch: x.LeaseEpoch, AttemptID: x.Attempt.ID, EndedAt: drawMoment(t, "ended", w.now),
			End: core.LeaseEnd(rapid.IntRange(int(core.EndComplete), int(core.EndBudgetExceeded)).Draw(t, "end")),
		}
	}
	x.AttemptRemaining = rapid.Int64Range(0, base.Year).Draw(t, "remaining")
	x.AttemptDeadline = drawTime(t, "attempt deadline", w.now)
	x.ReplayLineage = maybe(t, "replay lineage", func() core.Lineage { return drawLineage(t) })
	if rapid.Bool().Draw(t, "retries counted") {
		x.Retries = &core.Retries{Counts: map[string]int{"net": rapid.IntRange(1, 10000).Draw(t, "net")}}
	}
	x.RetryCount = rapid.IntRange(0, 10000).Draw(t, "retries")
	x.ReclaimCount = rapid.IntRange(0, 10000).Draw(t, "reclaims")
	x.ReplayCount = rapid.IntRange(0, 1000).Draw(t, "replays")
	x.Holds = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"lane:1", "quota:a:b", "quota:ü"}), 0, 3, rapid.ID[string]).Draw(t, "holds")
	slices.Sort(x.Holds)
}

func (w *world) drawAttempt(t *rapid.T) core.Attempt {
	return core.Attempt{
		ID: drawUUID(t, "attempt"), Index: rapid.IntRange(0, 20000).Draw(t, "index"),
		Type:      core.AttemptType(rapid.IntRange(int(core.AttemptInitial), int(core.AttemptReplay)).Draw(t, "attempt type")),
		State:     core.AttemptState(rapid.IntRange(int(core.AttemptStarted), int(core.InterruptedReclaimed)).Draw(t, "attempt state")),
		StartedAt: drawMoment(t, "attempt started", w.now), EndedAt: drawTime(t, "attempt ended", w.now),
		RunningMS: rapid.Int64Range(0, base.Year).Draw(t, "running ms"), FirstEpoch: rapid.Int64Range(1, 1<<40).Draw(t, "first epoch"),
		LastEpoch: rapid.Int64Range(1, 1<<40).Draw(t, "last epoch"), WorkerID: drawText(t, "attempt worker"), InstanceID: drawText(t, "attempt instance"),
		Failure:      maybe(t, "attempt failure", func() core.Failure { return w.drawFailure(t) }),
		Interruption: core.Interruption(rapid.IntRange(0, int(core.InterruptedLeaseRevoked)).Draw(t, "interruption")),
		InterruptAt:  drawTime(t, "interrupted", w.now),
		Lineage:      maybe(t, "lineage", func() core.Lineage { return drawLineage(t) }),
		Usage:        drawAmounts(t, "attempt usage"),
	}
}

func drawLineage(t *rapid.T) core.Lineage {
	return core.Lineage{
		PreviousIndex: rapid.IntRange(0, 20000).Draw(t, "previous"), Class: drawText(t, "lineage class"), Category: drawText(t, "lineage category"),
		Cause: drawText(t, "cause"), Reason: drawText(t, "lineage reason"), By: drawText(t, "lineage by"), ReplayNumber: rapid.IntRange(0, 1000).Draw(t, "replay number"),
	}
}

func (w *world) drawFailure(t *rapid.T) core.Failure {
	f := core.Failure{
		Class: "transient", Category: drawText(t, "category"), Message: drawText(t, "message"),
		Detail: drawBytes(t, "detail"), At: drawMoment(t, "failed at", w.now),
	}
	if f.Detail != nil {
		f.DetailType = drawText(t, "content type of the detail")
	}
	return f
}

func (w *world) drawOutcome(t *rapid.T, x *core.Execution) {
	x.CompletedAt = 0
	if x.Status.Terminal() {
		x.CompletedAt = drawMoment(t, "completed", w.now)
	}
	x.Result, x.ResultEpoch = nil, 0
	if x.Status == core.Succeeded && rapid.Bool().Draw(t, "result present") {
		result := payload("application/json", drawBytes(t, "result"))
		x.Result, x.ResultEpoch = &result, rapid.Int64Range(0, 1<<40).Draw(t, "result epoch")
	}
	x.Failure = maybe(t, "failure", func() core.Failure { return w.drawFailure(t) })
	x.Cancellation = maybe(t, "cancellation", func() core.Cancellation {
		return core.Cancellation{Source: "operator", By: drawText(t, "cancelled by"), Reason: drawText(t, "cancelled why")}
	})
	x.Retain = maybe(t, "retain", func() core.Retain {
		return core.Retain{Until: drawTime(t, "retain until", w.now), By: drawText(t, "retained by"), Reason: drawText(t, "retained why")}
	})
	x.Progress = maybe(t, "progress", func() core.Progress {
		return core.Progress{
			Percent:   maybe(t, "percent", func() int { return rapid.IntRange(0, 100).Draw(t, "percent") }),
			Message:   maybe(t, "progress message", func() string { return drawText(t, "progress message") }),
			UpdatedAt: drawMoment(t, "progress at", w.now),
		}
	})
}

func drawAmounts(t *rapid.T, name string) map[string]int64 {
	dimension := rapid.SampledFrom([]string{core.InputTokens, core.CostMicros, core.WallMS, "pages.ü"})
	return rapid.MapOfN(dimension, rapid.Int64Range(0, 1<<62), 0, 3).Draw(t, name)
}

// drawAdmission draws the admission fields of an execution.
func (w *world) drawAdmission(t *rapid.T, x *core.Execution) {
	budgets := func(name string) []base.UUID {
		return rapid.SliceOfN(rapid.Map(rapid.Byte(), func(b byte) base.UUID { return base.UUID{b, 1} }), 0, 2).Draw(t, name)
	}
	x.Reservation = maybe(t, "reservation", func() (r core.Reservation) {
		for _, budget := range budgets("holds") {
			r.Holds = append(r.Holds, core.BudgetHold{Budget: budget, Remaining: drawAmounts(t, "remaining")})
		}
		for range rapid.IntRange(0, 2).Draw(t, "rates") {
			r.Rates = append(r.Rates, core.RateAdmission{Key: drawText(t, "rate"), At: drawMoment(t, "admitted", w.now)})
		}
		return r
	})
	x.Budgets = nil
	for _, budget := range budgets("budgets") {
		scope := rapid.SampledFrom([]string{core.ScopeExecution, core.ScopeFlow}).Draw(t, "scope")
		depth := 0
		if scope == core.ScopeFlow {
			depth = rapid.IntRange(0, core.MaxFlowDepth).Draw(t, "depth")
		}
		x.Budgets = append(x.Budgets, core.ScopedBudget{ID: budget, Scope: scope, Depth: depth, Ancestors: budgets("ancestors")})
	}
	x.Usage = drawAmounts(t, "usage")
	x.RetryAt, x.WallHoldAt = drawTime(t, "retry", w.now), drawTime(t, "wall hold", w.now)
}

// drawRecord draws an entry of the lease history of x.
func (w *world) drawRecord(t *rapid.T, x *core.Execution, epoch int64) core.LeaseRecord {
	return core.LeaseRecord{
		ExecutionID: x.ID, Epoch: epoch, LeaseID: drawUUID(t, "record lease"), RunIndex: rapid.IntRange(0, 1000).Draw(t, "run index"),
		Attempt: w.drawAttempt(t), WorkerID: drawText(t, "record worker"), InstanceID: drawText(t, "record instance"),
		AcquiredAt: drawMoment(t, "record acquired", w.now), EndedAt: drawMoment(t, "record ended", w.now),
		End:  core.LeaseEnd(rapid.IntRange(int(core.EndComplete), int(core.EndBudgetExceeded)).Draw(t, "record end")),
		Late: rapid.Bool().Draw(t, "late"), Answer: drawJSON(t, "answer"),
		Result: maybe(t, "record result", func() core.Payload { return payload("a/b", drawBytes(t, "record result")) }),
	}
}

// resultRecord returns the entry of the lease history that holds the bytes of the result of x.
func (w *world) resultRecord(x *core.Execution) core.LeaseRecord {
	return core.LeaseRecord{
		ExecutionID: x.ID, Epoch: x.ResultEpoch, LeaseID: newUUID(w.now), AcquiredAt: w.now, EndedAt: w.now,
		Attempt: core.Attempt{ID: newUUID(w.now), Type: core.AttemptInitial, State: core.EndedSuccess, StartedAt: w.now},
		End:     core.EndComplete, Result: x.Result,
	}
}
