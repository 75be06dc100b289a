package commands

import (
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

func (s *session) waitpointView() show.View[flowfabric.Waitpoint] {
	p := s.printer
	type x = flowfabric.Waitpoint
	return show.View[x]{ID: func(w x) string { return w.ID }, None: "no waitpoints", Columns: []show.Column[x]{
		{Name: "WAITPOINT", Text: func(w x) string { return w.ID }},
		{Name: "KEY", Text: func(w x) string { return w.Key }},
		{Name: "STATE", Text: func(w x) string { return w.State }},
		{Name: "EXECUTION", Text: func(w x) string { return bareID(w.ExecutionID) }},
		{Name: "WANTS", Text: func(w x) string { return strings.Join(w.RequiredNames, ",") }},
		{Name: "SIGNALS", Text: func(w x) string { return strconv.Itoa(w.SignalCount) }},
		{Name: "EXPIRES", Text: func(w x) string { return p.Time(w.ExpiresAt) }},
		{Name: "CREATED", Text: func(w x) string { return p.Time(w.CreatedAt) }, Wide: true},
		{Name: "LAST SIGNAL", Text: func(w x) string { return p.Time(w.LastSignalAt) }, Wide: true},
		{Name: "CLOSED", Text: func(w x) string { return strings.TrimSpace(p.Time(w.ClosedAt) + " " + w.CloseReason) }, Wide: true},
		{Name: "LINKS", Text: func(w x) string { return strconv.Itoa(w.Links) }, Wide: true},
		{Name: "SUSPENSION", Text: func(w x) string { return w.SuspensionID }, Wide: true},
		{Name: "TOKEN", Text: func(w x) string { return strings.TrimSpace(w.TokenKid + " " + w.TokenFingerprint) }, Wide: true},
	}}
}

func (s *session) linkView() show.View[flowfabric.ApprovalLink] {
	p := s.printer
	type x = flowfabric.ApprovalLink
	return show.View[x]{ID: func(l x) string { return l.ID }, None: "no links", Columns: []show.Column[x]{
		{Name: "LINK", Text: func(l x) string { return l.ID }},
		{Name: "APPROVER", Text: func(l x) string { return l.Approver }},
		{Name: "STATE", Text: func(l x) string { return l.State }},
		{Name: "EXPIRES", Text: func(l x) string { return p.Time(l.ExpiresAt) }},
		{Name: "DECISION", Text: func(l x) string { return l.Decision }},
		{Name: "DECIDED", Text: func(l x) string { return p.Time(l.DecidedAt) }},
		{Name: "COMMENT", Text: func(l x) string { return l.Comment }},
		{Name: "TITLE", Text: func(l x) string { return l.Title }, Wide: true},
		{Name: "CREATED", Text: func(l x) string { return p.Time(l.CreatedAt) }, Wide: true},
	}}
}

func (s *session) signalView() show.View[flowfabric.SignalRecord] {
	p := s.printer
	type x = flowfabric.SignalRecord
	return show.View[x]{ID: func(r x) string { return r.ID }, None: "no signals", Columns: []show.Column[x]{
		{Name: "N", Text: func(r x) string { return strconv.Itoa(r.Ordinal) }},
		{Name: "NAME", Text: func(r x) string { return r.Name }},
		{Name: "WAITPOINT", Text: func(r x) string { return r.WaitpointKey }},
		{Name: "FROM", Text: sourceText},
		{Name: "AT", Text: func(r x) string { return p.Time(r.AcceptedAt) }},
		{Name: "EFFECT", Text: func(r x) string { return r.Effect }},
		{Name: "PAYLOAD", Text: func(r x) string { return payloadText(r.Payload, len(r.Payload.Data)) }},
		{Name: "SIGNAL", Text: func(r x) string { return r.ID }, Wide: true},
		{Name: "CATEGORY", Text: func(r x) string { return r.Category }, Wide: true},
		{Name: "CORRELATION", Text: func(r x) string { return r.CorrelationID }, Wide: true},
	}}
}

// sourceText is the sender of a signal. It is marked as claimed, because the holder of a token can claim any identity.
func sourceText(r flowfabric.SignalRecord) string {
	text := strings.TrimSpace(r.SourceType + " " + r.SourceIdentity)
	if r.SourceIdentity != "" && !r.SourceVerified {
		text += " (unverified)"
	}
	return text
}

func (s *session) suspensionView() show.View[api.SuspensionRecord] {
	p := s.printer
	type x = api.SuspensionRecord
	return show.View[x]{ID: func(r x) string { return r.ID }, None: "no suspensions", Columns: []show.Column[x]{
		{Name: "SUSPENSION", Text: func(r x) string { return r.ID }},
		{Name: "REASON", Text: func(r x) string { return r.ReasonCode }},
		{Name: "SUSPENDED", Text: func(r x) string { return p.Time(r.SuspendedAt) }},
		{Name: "WAITS FOR", Text: func(r x) string { return waitText(p, r) }},
		{Name: "ENDED", Text: func(r x) string { return p.Time(r.ClosedAt) }},
		{Name: "CAUSE", Text: func(r x) string { return r.Cause }},
		{Name: "BY", Text: func(r x) string { return r.By }},
		{Name: "ATTEMPT", Text: func(r x) string { return strconv.Itoa(r.AttemptIndex) }, Wide: true},
		{Name: "ESCALATED", Text: func(r x) string { return p.Time(r.EscalatedAt) }, Wide: true},
		{Name: "WAITPOINTS", Text: func(r x) string { return bindingsText(r.Waitpoints) }, Wide: true},
		{Name: "SIGNALS", Text: func(r x) string { return signalsText(r.Signals) }, Wide: true},
		{Name: "CONTINUATION", Text: func(r x) string { return payloadText(r.Continuation, len(r.Continuation.Data)) }, Wide: true},
	}}
}

func bindingsText(bindings []api.BoundWaitpoint) string {
	var all []string
	for _, b := range bindings {
		all = append(all, b.Key+"="+b.WaitpointID)
	}
	return strings.Join(all, " ")
}

func signalsText(signals []flowfabric.SignalRecord) string {
	var all []string
	for _, r := range signals {
		all = append(all, r.Name+" by "+sourceText(r))
	}
	return strings.Join(all, "; ")
}

func (s *session) suspendedView() show.View[api.Suspended] {
	p := s.printer
	type x = api.Suspended
	return show.View[x]{ID: func(w x) string { return bareID(w.Execution.ID) }, None: "no suspended executions", Columns: []show.Column[x]{
		{Name: "ID", Text: func(w x) string { return bareID(w.Execution.ID) }},
		{Name: "KIND", Text: func(w x) string { return w.Execution.Kind }},
		{Name: "REASON", Text: func(w x) string { return w.ReasonCode }},
		{Name: "SUSPENDED", Text: func(w x) string { return p.Time(w.SuspendedAt) }},
		{Name: "TIMES OUT", Text: func(w x) string { return p.Time(w.TimeoutAt) }},
		{Name: "WAITS FOR", Text: func(w x) string { return progressOf(w.Progress) }},
		{Name: "LANE", Text: func(w x) string { return w.Execution.Lane }, Wide: true},
		{Name: "WAITPOINTS", Text: openWaitpoints, Wide: true},
		{Name: "TAGS", Text: func(w x) string { return tagText(w.Execution.Tags) }, Wide: true},
	}}
}

func (s *session) approvalView() show.View[api.Suspended] {
	p := s.printer
	type x = api.Suspended
	return show.View[x]{ID: func(w x) string { return bareID(w.Execution.ID) }, None: "no open approvals", Columns: []show.Column[x]{
		{Name: "ID", Text: func(w x) string { return bareID(w.Execution.ID) }},
		{Name: "KIND", Text: func(w x) string { return w.Execution.Kind }},
		{Name: "SINCE", Text: func(w x) string { return p.Time(w.SuspendedAt) }},
		{Name: "TIMES OUT", Text: func(w x) string { return p.Time(w.TimeoutAt) }},
		{Name: "APPROVED", Text: approvedText},
		{Name: "ASKED", Text: askedText},
		{Name: "SAID", Text: saidText},
		{Name: "LANE", Text: func(w x) string { return w.Execution.Lane }, Wide: true},
		{Name: "REASON", Text: func(w x) string { return w.ReasonCode }, Wide: true},
		{Name: "WAITPOINTS", Text: openWaitpoints, Wide: true},
		{Name: "TAGS", Text: func(w x) string { return tagText(w.Execution.Tags) }, Wide: true},
	}}
}

func openWaitpoints(w api.Suspended) string {
	var all []string
	for _, waitpoint := range w.Waitpoints {
		all = append(all, waitpoint.Key+"="+waitpoint.ID)
	}
	return strings.Join(all, " ")
}
