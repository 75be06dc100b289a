package commands

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// executions are the columns of lists; execution has more.
func (s *session) executions() show.View[*flowfabric.Execution] {
	p := s.printer
	type x = *flowfabric.Execution
	return show.View[x]{ID: func(e x) string { return bareID(e.ID) }, None: "no executions", Columns: []show.Column[x]{
		{Name: "ID", Text: func(e x) string { return bareID(e.ID) }},
		{Name: "KIND", Text: func(e x) string { return e.Kind }},
		{Name: "LANE", Text: func(e x) string { return e.Lane }},
		{Name: "STATUS", Text: func(e x) string { return string(e.Status) }},
		{Name: "REASON", Text: func(e x) string { return e.Reason }},
		{Name: "ATTEMPTS", Text: func(e x) string { return strconv.Itoa(e.TotalAttempts) }},
		{Name: "CREATED", Text: func(e x) string { return p.Time(e.CreatedAt) }},
		{Name: "SINCE", Text: func(e x) string { return p.Time(e.StatusSince) }, Wide: true},
		{Name: "PRIORITY", Text: func(e x) string { return strconv.Itoa(e.Priority) }, Wide: true},
		{Name: "WORKER", Text: workerOf, Wide: true},
		{Name: "KEY", Text: func(e x) string { return e.IdempotencyKey }, Wide: true},
		{Name: "TAGS", Text: func(e x) string { return tagText(e.Tags) }, Wide: true},
	}}
}

func workerOf(e *flowfabric.Execution) string {
	if e.Lease == nil {
		return ""
	}
	return e.Lease.InstanceID
}

func tagText(tags map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, key+"="+tags[key])
	}
	return strings.Join(all, " ")
}

// execution shows one execution in full.
func (s *session) execution() show.View[*flowfabric.Execution] {
	p, view := s.printer, s.executions()
	type x = *flowfabric.Execution
	for i := range view.Columns {
		view.Columns[i].Wide = false
	}
	view.Columns = append(view.Columns, []show.Column[x]{
		{Name: "FLOW", Text: func(e x) string { return bareID(e.FlowID) }},
		{Name: "NAME", Text: func(e x) string { return e.Name }},
		{Name: "JOIN", Text: func(e x) string { return joinText(e.Join) }},
		{Name: "PARENT", Text: func(e x) string { return bareID(e.ParentID) }},
		{Name: "STARTED", Text: func(e x) string { return p.Time(e.StartedAt) }},
		{Name: "COMPLETED", Text: func(e x) string { return p.Time(e.CompletedAt) }},
		{Name: "DELAYED UNTIL", Text: func(e x) string { return p.Time(e.DelayUntil) }},
		{Name: "DEADLINE", Text: func(e x) string { return p.Time(e.DeadlineAt) }},
		{Name: "PROGRESS", Text: progressText},
		{Name: "HELD", Text: func(e x) string {
			if e.Held == nil {
				return ""
			}
			return byWhom(e.Held.By, e.Held.Reason)
		}},
		{Name: "FAILURE", Text: func(e x) string { return failureText(e.Failure) }},
		{Name: "CANCELLED", Text: func(e x) string {
			if e.Cancellation == nil {
				return ""
			}
			return byWhom(e.Cancellation.By, e.Cancellation.Reason)
		}},
		{Name: "INPUT", Text: func(e x) string { return payloadText(e.Input, e.Input.Size()) }},
		{Name: "RESULT", Text: func(e x) string {
			if !e.HasResult {
				return ""
			}
			return payloadText(e.Result, e.Result.Size())
		}},
	}...)
	return view
}

// byWhom says who did something, and the reason if there is one.
func byWhom(who, reason string) string { return strings.TrimSpace("by " + who + " " + reason) }

func progressText(e *flowfabric.Execution) string {
	if e.Progress == nil {
		return ""
	}
	var parts []string
	if e.Progress.Percent != nil {
		parts = append(parts, strconv.Itoa(*e.Progress.Percent)+"%")
	}
	if e.Progress.Message != nil {
		parts = append(parts, *e.Progress.Message)
	}
	return strings.Join(parts, " ")
}

func failureText(f *flowfabric.Failure) string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("%s (%s, %s)", f.Message, f.Class, f.Category)
}

// shownPayload is the maximum length of a payload among other fields.
const shownPayload = 200

func payloadText(p flowfabric.Payload, size int) string {
	if p.Data == nil || len(p.Data) > shownPayload || strings.HasPrefix(p.ContentType, "application/octet-stream") {
		if p.ContentType == "" && size == 0 {
			return ""
		}
		return fmt.Sprintf("%d bytes, %s", size, p.ContentType)
	}
	return string(p.Data)
}

// streamText says how much an attempt has written to its stream, which may be more than is kept.
func streamText(a *api.AttemptStream) string {
	if a == nil || a.FrameCount == 0 {
		return ""
	}
	unit := "frames"
	if a.FrameCount == 1 {
		unit = "frame"
	}
	return fmt.Sprintf("%d %s, %d bytes", a.FrameCount, unit, a.Bytes)
}

func (s *session) attemptView() show.View[api.Attempt] {
	p := s.printer
	type x = api.Attempt
	return show.View[x]{ID: func(a x) string { return a.ID }, None: "no attempts", Columns: []show.Column[x]{
		{Name: "INDEX", Text: func(a x) string { return strconv.Itoa(a.Index) }},
		{Name: "TYPE", Text: func(a x) string { return a.Type }},
		{Name: "STATE", Text: func(a x) string { return a.State }},
		{Name: "STARTED", Text: func(a x) string { return p.Time(a.StartedAt) }},
		{Name: "ENDED", Text: func(a x) string { return p.Time(a.EndedAt) }},
		{Name: "WORKER", Text: func(a x) string { return a.InstanceID }},
		{Name: "STREAM", Text: func(a x) string { return streamText(a.Stream) }},
		{Name: "FAILURE", Text: func(a x) string { return failureText(a.Failure) }},
		{Name: "USAGE", Text: func(a x) string { return amountText(a.Usage) }, Wide: true},
		{Name: "ID", Text: func(a x) string { return a.ID }, Wide: true},
	}}
}

func (s *session) leaseView() show.View[api.LeaseRecord] {
	p := s.printer
	type x = api.LeaseRecord
	return show.View[x]{ID: func(l x) string { return l.LeaseID }, None: "no leases", Columns: []show.Column[x]{
		{Name: "EPOCH", Text: func(l x) string { return strconv.FormatInt(l.Epoch, 10) }},
		{Name: "ATTEMPT", Text: func(l x) string { return strconv.Itoa(l.AttemptIndex) }},
		{Name: "WORKER", Text: func(l x) string { return l.InstanceID }},
		{Name: "ACQUIRED", Text: func(l x) string { return p.Time(l.AcquiredAt) }},
		{Name: "ENDED", Text: func(l x) string { return p.Time(l.EndedAt) }},
		{Name: "END", Text: func(l x) string { return l.End }},
		{Name: "LEASE", Text: func(l x) string { return l.LeaseID }, Wide: true},
	}}
}

func (s *session) stepView() show.View[api.StepRecord] {
	p := s.printer
	type x = api.StepRecord
	return show.View[x]{ID: func(r x) string { return r.Name }, None: "no steps", Columns: []show.Column[x]{
		{Name: "NAME", Text: func(r x) string { return r.Name }},
		{Name: "RUN", Text: func(r x) string { return strconv.Itoa(r.RunIndex) }},
		{Name: "ATTEMPT", Text: func(r x) string { return strconv.Itoa(r.AttemptIndex) }},
		{Name: "CREATED", Text: func(r x) string { return p.Time(r.CreatedAt) }},
		{Name: "RESULT", Text: func(r x) string { return payloadText(r.Result, len(r.Result.Data)) }},
	}}
}

func (s *session) eventView() show.View[flowfabric.Event] {
	p := s.printer
	type x = flowfabric.Event
	return show.View[x]{ID: func(e x) string { return e.ID }, Columns: []show.Column[x]{
		{Name: "AT", Text: func(e x) string { return p.Time(e.At) }},
		{Name: "EVENT", Text: func(e x) string { return e.Kind }},
		{Name: "EXECUTION", Text: func(e x) string { return bareID(e.ExecutionID) }},
		{Name: "KIND", Text: func(e x) string { return e.ExecKind }},
		{Name: "LANE", Text: func(e x) string { return e.Lane }},
		{Name: "BY", Text: func(e x) string { return strings.Trim(e.Actor.Type+" "+e.Actor.ID, " ") }},
		{Name: "CURSOR", Text: func(e x) string { return e.Cursor }, Wide: true},
		{Name: "DATA", Text: func(e x) string { return string(e.Data) }, Wide: true},
	}}
}

func (s *session) laneView() show.View[*api.Lane] {
	p := s.printer
	type x = *api.Lane
	of := func(status flowfabric.Status) func(x) string {
		return func(l x) string { return strconv.Itoa(l.Counts[status]) }
	}
	return show.View[x]{ID: func(l x) string { return l.Name }, None: "no lanes", Columns: []show.Column[x]{
		{Name: "LANE", Text: func(l x) string { return l.Name }},
		{Name: "STATE", Text: func(l x) string { return string(l.State) }},
		{Name: "READY", Text: of(flowfabric.StatusReady)},
		{Name: "RUNNING", Text: of(flowfabric.StatusRunning)},
		{Name: "FAILED", Text: of(flowfabric.StatusFailed)},
		{Name: "OLDEST READY", Text: func(l x) string { return p.Time(l.OldestReadyAt) }},
		{Name: "WORKERS", Text: func(l x) string { return strconv.Itoa(l.Workers) }},
		{Name: "DONE/S", Text: func(l x) string { return strconv.FormatFloat(l.Rates.Completed.OneMinute, 'f', 1, 64) }},
		{Name: "MAX", Text: func(l x) string { return strconv.Itoa(l.MaxConcurrent) }, Wide: true},
		{Name: "FAIRNESS", Text: func(l x) string { return l.Fairness }, Wide: true},
		{Name: "AGEING", Text: func(l x) string { return l.Ageing.String() }, Wide: true},
		{Name: "REVISION", Text: func(l x) string { return strconv.FormatInt(l.Revision, 10) }, Wide: true},
	}}
}

func (s *session) workerView() show.View[*api.Worker] {
	p := s.printer
	type x = *api.Worker
	return show.View[x]{ID: func(w x) string { return w.InstanceID }, None: "no workers", Columns: []show.Column[x]{
		{Name: "INSTANCE", Text: func(w x) string { return w.InstanceID }},
		{Name: "WORKER", Text: func(w x) string { return w.WorkerID }},
		{Name: "STATE", Text: func(w x) string { return w.State }},
		{Name: "LEASES", Text: func(w x) string { return fmt.Sprintf("%d of %d", w.Leases, w.MaxConcurrent) }},
		{Name: "LANES", Text: func(w x) string { return strings.Join(w.Lanes, ",") }},
		{Name: "SEEN", Text: func(w x) string { return p.Time(w.LastSeen) }},
		{Name: "KINDS", Text: func(w x) string { return strings.Join(w.Kinds, ",") }, Wide: true},
		{Name: "CAPABILITIES", Text: func(w x) string { return strings.Join(w.Capabilities, ",") }, Wide: true},
		{Name: "VERSION", Text: func(w x) string { return w.Version }, Wide: true},
	}}
}

func (s *session) jobView() show.View[*api.BulkJob] {
	p := s.printer
	type x = *api.BulkJob
	return show.View[x]{ID: func(j x) string { return j.ID }, None: "no bulk jobs", Columns: []show.Column[x]{
		{Name: "JOB", Text: func(j x) string { return j.ID }},
		{Name: "ACTION", Text: func(j x) string { return j.Action }},
		{Name: "STATE", Text: func(j x) string {
			if j.DryRun {
				return "dry run"
			}
			return j.State
		}},
		{Name: "TOTAL", Text: func(j x) string { return strconv.Itoa(max(j.Total, j.Matched)) }},
		{Name: "DONE", Text: func(j x) string { return strconv.Itoa(j.Done) }},
		{Name: "REFUSED", Text: func(j x) string { return refusedText(j.Refused) }},
		{Name: "FAILED", Text: func(j x) string { return strconv.Itoa(j.Failed) }},
		{Name: "STARTED", Text: func(j x) string { return p.Time(j.StartedAt) }},
		{Name: "ENDED", Text: func(j x) string { return p.Time(j.EndedAt) }},
	}}
}

func refusedText(refused map[string]int) string {
	var all []string
	for _, code := range slices.Sorted(maps.Keys(refused)) {
		all = append(all, fmt.Sprintf("%s %d", code, refused[code]))
	}
	return strings.Join(all, ", ")
}
