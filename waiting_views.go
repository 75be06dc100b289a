package flowfabric

import (
	"encoding/json"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/service"
)

// uuidText is the text of an id; "" when it is absent.
func uuidText(id core.UUID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

// uuidOf parses an id that may be left out; invalid_id.
func uuidOf(field, text string) (core.UUID, error) {
	if text == "" {
		return core.UUID{}, nil
	}
	return uuidGiven(field, text)
}

// uuidGiven parses an id that must be there; invalid_id.
func uuidGiven(field, text string) (core.UUID, error) {
	id, ok := core.ParseUUID(text)
	if !ok {
		return id, newError(core.CodeInvalidID, "%s is not a UUID", core.QuoteID(text)).At(field, "give it as it was shown")
	}
	return id, nil
}

// span is a duration that may be left out; nil: it was.
func span(d time.Duration) *core.Millis {
	if d == 0 {
		return nil
	}
	ms := millis(d)
	return &ms
}

// core is the condition as the rules read it. What they do not know they refuse.
func (c Condition) core() *core.Condition {
	node := core.Condition{N: c.N, SourceTypes: c.SourceTypes, Waitpoints: c.Keys, Kind: conditionKinds[c.Type], CountKind: countKinds[c.CountKind]}
	if c.Key != "" || c.emptyKey {
		node.Waitpoints = append([]string{c.Key}, c.Keys...)
	}
	if c.Name != "" || c.emptyName {
		node.Matcher = core.ByName(c.Name)
	}
	for _, member := range c.Members {
		node.Members = append(node.Members, *member.core())
	}
	return &node
}

var (
	conditionKinds = map[string]core.ConditionKind{
		"": core.ConditionSingle, conditionSingle: core.ConditionSingle, conditionAllOf: core.ConditionAllOf, conditionAnyOf: core.ConditionAnyOf,
		conditionCount: core.ConditionCount, conditionOperatorOnly: core.ConditionOperatorOnly, conditionTimeoutOnly: core.ConditionTimeoutOnly,
	}
	countKinds = map[string]core.CountKind{
		DistinctSources: core.CountDistinctSources, DistinctSignals: core.CountDistinctSignals, DistinctWaitpoints: core.CountDistinctWaitpoints,
	}
)

// conditionUnknown is the type of a stored condition that a newer program wrote.
const conditionUnknown = "unknown"

func conditionOf(c *core.Condition) Condition {
	shown := Condition{Type: c.Kind.String(), Name: c.Matcher.Name, N: c.N, SourceTypes: c.SourceTypes, CountKind: c.CountKind.String()}
	switch c.Kind {
	case core.ConditionUnknown:
		shown.Type = conditionUnknown
	case core.ConditionSingle:
		if len(c.Waitpoints) > 0 {
			shown.Key = c.Waitpoints[0]
		}
	default:
		shown.Keys = c.Waitpoints
	}
	for i := range c.Members {
		shown.Members = append(shown.Members, conditionOf(&c.Members[i]))
	}
	return shown
}

// core is the command that suspends under a lease.
func (s *Suspension) core(fence core.Fence) (core.SuspendCommand, error) {
	cmd := core.SuspendCommand{
		Fence: fence, Condition: s.Until.core(), ReasonCode: s.ReasonCode, TimeoutAt: core.TimeOf(s.TimeoutAt), TimeoutMS: span(s.Timeout),
		Behavior: string(s.OnTimeout), ResumeDelayMS: millis(s.ResumeDelay), IdempotencyKey: s.Key,
	}
	var err error
	if cmd.SuspensionID, err = uuidOf("suspension_id", s.ID); err != nil {
		return cmd, err
	}
	for _, b := range s.Waitpoints {
		binding := core.Binding{UsePending: b.Pending, Key: textGiven(b.Key, b.emptyKey)}
		if binding.ID, err = uuidOf("waitpoint_id", b.WaitpointID); err != nil {
			return cmd, err
		}
		cmd.Waitpoints = append(cmd.Waitpoints, binding)
	}
	if err := s.Continuation.Problem("continuation"); err != nil {
		return cmd, err
	}
	if !s.Continuation.IsNothing() {
		continuation := service.CorePayload(s.Continuation)
		cmd.Continuation = &continuation
	}
	return cmd, nil
}

// waitpointOf shows a waitpoint as it was made, without what derives from signals.
func waitpointOf(w *core.Waitpoint) Waitpoint {
	return Waitpoint{
		ID: w.ID.String(), ExecutionID: idOf(w.ExecutionID), Namespace: w.Namespace, Key: w.Key, RunIndex: w.RunIndex,
		SuspensionID: uuidText(w.SuspensionID), RequiredNames: w.RequiredNames, TokenKid: w.TokenKid, TokenFingerprint: w.TokenFingerprint,
		CreatedAt: w.CreatedAt.Std(), MintedAt: w.MintedAt.Std(), ActivatedAt: w.ActivatedAt.Std(), ExpiresAt: w.ExpiresAt.Std(),
	}
}

func waitpointViewOf(v core.WaitpointView) Waitpoint {
	shown := waitpointOf(&v.Waitpoint)
	shown.State, shown.CloseReason, shown.ClosedAt = v.State, string(v.CloseReason), v.ClosedAt.Std()
	shown.SignalCount, shown.MatchedSignals, shown.LastSignalAt, shown.Links = v.SignalCount, v.MatchedSignals, v.LastSignalAt.Std(), v.LinkCount
	return shown
}

// issued shows a waitpoint with its token and its address.
func (e *embedded) issued(w *core.Waitpoint, s engine.Standing, t core.Token) Waitpoint {
	shown := waitpointOf(w)
	shown.State, shown.CloseReason, shown.ClosedAt = s.State, string(s.CloseReason), s.ClosedAt.Std()
	shown.SignalCount, shown.MatchedSignals, shown.LastSignalAt, shown.Links = s.SignalCount, s.MatchedSignals, s.LastSignalAt.Std(), s.LinkCount
	shown.Token, shown.CallbackURL = Token{t}, e.callbackURL(shown.ID, t)
	return shown
}

func signalOf(s core.Signal) SignalRecord {
	return SignalRecord{
		ID: s.ID.String(), Ordinal: s.Ordinal, WaitpointID: uuidText(s.WaitpointID), WaitpointKey: s.WaitpointKey, Name: s.Name, Category: s.Category,
		SourceType: s.SourceType, SourceIdentity: s.SourceIdentity, SourceVerified: s.SourceVerified, CorrelationID: s.CorrelationID,
		SentAt: s.SentAt.Std(), AcceptedAt: s.AcceptedAt.Std(), Payload: service.PayloadOf(s.Payload), Size: s.Payload.Size,
		Omitted: s.Payload.Data == nil && s.Payload.Size > 0, Matched: s.Matched, Effect: string(s.Effect),
	}
}

// The outcomes of commands about waits.
const (
	outcomeAccepted       = "accepted"
	outcomeSuspended      = "suspended"
	outcomeSatisfied      = "already_satisfied"
	outcomeClosed         = "closed"
	outcomeAlreadyClosed  = "already_closed"
	outcomeDecided        = "decided"
	outcomeAlreadyDecided = "already_decided"
)

func receiptOf(a core.SignalAnswer) SignalReceipt {
	receipt := SignalReceipt{Outcome: outcomeAccepted, SignalID: a.SignalID.String(), Effect: string(a.Effect), SameRequest: a.SameRequest}
	if a.Duplicate {
		receipt.Outcome = outcomeDuplicate
	}
	return receipt
}

// resumeOf is what whoever goes on is told of the wait; nil when there was none.
func resumeOf(o *core.Observation) *Resume {
	if o == nil {
		return nil
	}
	resume := &Resume{SuspensionID: o.ID.String(), Cause: string(o.Cause), Signals: each(o.Signals, signalOf)}
	if o.Continuation != nil {
		resume.Continuation = service.PayloadOf(*o.Continuation)
	}
	return resume
}

// suspensionOf shows a suspension; corruption when its condition cannot be read.
func suspensionOf(o *core.Observation) (SuspensionRecord, error) {
	shown := SuspensionRecord{
		ID: o.ID.String(), RunIndex: o.RunIndex, AttemptIndex: o.AttemptIndex, SuspendedAt: o.At.Std(), ReasonCode: o.ReasonCode,
		TimeoutAt: o.TimeoutAt.Std(), OnTimeout: TimeoutBehavior(o.Behavior), Cause: string(o.Cause), ClosedAt: o.ClosedAt.Std(),
		CloserSignalID: uuidText(o.CloserSignalID), By: o.By, EscalatedAt: o.EscalatedAt.Std(), Signals: each(o.Signals, signalOf),
	}
	for _, w := range o.Waitpoints {
		shown.Waitpoints = append(shown.Waitpoints, Binding{Key: w.Key, WaitpointID: w.ID.String()})
	}
	if o.Continuation != nil {
		shown.Continuation = service.PayloadOf(*o.Continuation)
	}
	condition, err := core.DecodeCondition(o.Condition)
	if err != nil {
		return shown, publicError(err)
	}
	shown.Until = conditionOf(condition)
	return shown, nil
}

func (l LinkOptions) core(waitpoint core.UUID) core.CreateLinkCommand {
	cmd := core.CreateLinkCommand{
		WaitpointID: waitpoint, Approver: l.Approver, ExpiresInMS: span(l.ExpiresIn), Title: l.Title, Message: l.Message, CommentRequired: l.CommentRequired,
	}
	for _, choice := range l.Decisions {
		cmd.Decisions = append(cmd.Decisions, core.Decision(choice))
	}
	return cmd
}

func linkOf(l *core.Link) ApprovalLink {
	shown := ApprovalLink{
		ID: l.ID.String(), WaitpointID: l.WaitpointID.String(), ExecutionID: idOf(l.ExecutionID), Approver: l.Approver, Title: l.Title, Message: l.Message,
		CommentRequired: l.CommentRequired, CreatedAt: l.CreatedAt.Std(), ExpiresAt: l.ExpiresAt.Std(),
	}
	for _, decision := range l.Decisions {
		shown.Choices = append(shown.Choices, LinkChoice(decision))
	}
	return shown
}

func linkViewOf(v core.LinkView) ApprovalLink {
	shown := linkOf(&v.Link)
	shown.State = v.State
	if v.End != nil && !v.End.Revoked {
		shown.Decision, shown.Comment, shown.DecidedAt = v.End.Decision, v.End.Comment, v.End.At.Std()
	}
	return shown
}

// issuedLink shows a link with its address, and nothing of what became of it.
func (e *embedded) issuedLink(l engine.IssuedLink) ApprovalLink {
	shown := linkOf(&l.Link)
	shown.URL = e.linkURL(shown.ID, l.Token)
	return shown
}

func linkPageOf(p engine.LinkPage) *LinkPage {
	return &LinkPage{
		Link: linkViewOf(p.LinkView), Kind: p.Kind, Tags: p.Tags, Asker: p.Asker, Needed: p.Needed, Counted: p.Counted, Progress: p.Progress,
		TimeoutAt: p.TimeoutAt.Std(), Refused: publicError(p.Undecided), Now: p.Now.Std(),
	}
}

func suspendedOf(i engine.SuspendedItem) Suspended {
	shown := Suspended{
		Execution: service.ExecutionOf(i.View), SuspensionID: i.SuspensionID.String(), SuspendedAt: i.SuspendedAt.Std(), TimeoutAt: i.TimeoutAt.Std(),
		ReasonCode: i.ReasonCode, Waitpoints: each(i.Waitpoints, waitpointViewOf), Links: each(i.Links, linkViewOf),
		Decisions: each(i.Decisions, decisionOf), Needed: i.Needed,
	}
	for _, node := range i.Progress {
		shown.Progress = append(shown.Progress, NodeProgress{Node: conditionOf(node.Node), Progress: node.Progress, Needed: node.Needed})
	}
	return shown
}

func decisionOf(s core.Signal) PersonalDecision {
	return PersonalDecision{By: s.SourceIdentity, Decision: s.Name, Comment: commentIn(s.Payload.Data), At: s.AcceptedAt.Std()}
}

// commentIn is what somebody wrote with a decision (W65, W71); "" when there is nothing.
func commentIn(payload []byte) string {
	var said struct {
		Comment string `json:"comment"`
	}
	if json.Unmarshal(payload, &said) != nil {
		return ""
	}
	return said.Comment
}
