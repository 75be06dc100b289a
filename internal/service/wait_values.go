package service

import (
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// uuidText returns the text of an id; "" if it is absent.
func uuidText(id base.UUID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

// The names of conditions and of what they count.
var (
	conditionKinds = map[string]condition.Kind{
		"": condition.Single, "single": condition.Single, "all_of": condition.AllOf, "any_of": condition.AnyOf,
		"count": condition.Count, "operator_only": condition.OperatorOnly, "timeout_only": condition.TimeoutOnly,
	}
	countKinds = map[string]condition.CountKind{
		"distinct_sources": condition.CountDistinctSources, "distinct_signals": condition.CountDistinctSignals, "distinct_waitpoints": condition.CountDistinctWaitpoints,
	}
)

// CoreCondition converts the condition for validation, which refuses unknown ones.
func CoreCondition(c api.Condition) *condition.Condition {
	node := condition.Condition{N: c.N, SourceTypes: c.SourceTypes, Waitpoints: c.Keys, Kind: conditionKinds[c.Type], CountKind: countKinds[c.CountKind]}
	key, name := c.Given()
	if key != nil {
		node.Waitpoints = append([]string{*key}, c.Keys...)
	}
	if name != nil {
		node.Matcher = condition.ByName(*name)
	}
	for _, member := range c.Members {
		node.Members = append(node.Members, *CoreCondition(member))
	}
	return &node
}

// conditionUnknown is the type of a stored condition that a newer program wrote.
const conditionUnknown = "unknown"

func conditionOf(c *condition.Condition) api.Condition {
	shown := api.Condition{Type: c.Kind.String(), Name: c.Matcher.Name, N: c.N, SourceTypes: c.SourceTypes, CountKind: c.CountKind.String()}
	switch c.Kind {
	case condition.Unknown:
		shown.Type = conditionUnknown
	case condition.Single:
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

// waitpointOf converts a waitpoint as it was made, without what derives from signals.
func waitpointOf(w *core.Waitpoint) api.Waitpoint {
	return api.Waitpoint{
		ID: w.ID.String(), ExecutionID: idOf(w.ExecutionID), Namespace: w.Namespace, Key: w.Key, RunIndex: w.RunIndex,
		SuspensionID: uuidText(w.SuspensionID), RequiredNames: w.RequiredNames, TokenKid: w.TokenKid, TokenFingerprint: w.TokenFingerprint,
		CreatedAt: w.CreatedAt.Std(), MintedAt: w.MintedAt.Std(), ActivatedAt: w.ActivatedAt.Std(), ExpiresAt: w.ExpiresAt.Std(),
	}
}

// waitpointViewOf converts a waitpoint without its token.
func waitpointViewOf(v core.WaitpointView) api.Waitpoint {
	shown := waitpointOf(&v.Waitpoint)
	shown.State, shown.CloseReason, shown.ClosedAt = v.State, string(v.CloseReason), v.ClosedAt.Std()
	shown.SignalCount, shown.MatchedSignals, shown.LastSignalAt, shown.Links = v.SignalCount, v.MatchedSignals, v.LastSignalAt.Std(), v.LinkCount
	return shown
}

// issuedWaitpointOf converts a waitpoint with its token and its address.
func (s *Service) issuedWaitpointOf(w *core.Waitpoint, now engine.Standing, t keyring.Token) api.Waitpoint {
	shown := waitpointOf(w)
	shown.State, shown.CloseReason, shown.ClosedAt = now.State, string(now.CloseReason), now.ClosedAt.Std()
	shown.SignalCount, shown.MatchedSignals, shown.LastSignalAt, shown.Links = now.SignalCount, now.MatchedSignals, now.LastSignalAt.Std(), now.LinkCount
	shown.Token, shown.CallbackURL = api.Token{Token: t}, s.address(callbackPath, shown.ID, t)
	return shown
}

// SignalOf shows a signal.
func SignalOf(s core.Signal) api.SignalRecord {
	return api.SignalRecord{
		ID: s.ID.String(), Ordinal: s.Ordinal, WaitpointID: uuidText(s.WaitpointID), WaitpointKey: s.WaitpointKey, Name: s.Name, Category: s.Category,
		SourceType: s.SourceType, SourceIdentity: s.SourceIdentity, SourceVerified: s.SourceVerified, CorrelationID: s.CorrelationID,
		SentAt: s.SentAt.Std(), AcceptedAt: s.AcceptedAt.Std(), Payload: PayloadOf(s.Payload), Matched: s.Matched, Effect: string(s.Effect),
	}
}

// receiptOf converts the answer to a signal.
func receiptOf(a core.SignalAnswer) api.SignalReceipt {
	receipt := api.SignalReceipt{Outcome: api.SignalAccepted, SignalID: a.SignalID.String(), Effect: string(a.Effect), SameRequest: a.SameRequest}
	if a.Duplicate {
		receipt.Outcome = api.SignalDuplicate
	}
	return receipt
}

// suspensionOf converts a suspension; corruption if its condition cannot be decoded.
func suspensionOf(o *core.Observation) (api.SuspensionRecord, error) {
	shown := api.SuspensionRecord{
		ID: o.ID.String(), RunIndex: o.RunIndex, AttemptIndex: o.AttemptIndex, SuspendedAt: o.At.Std(), ReasonCode: o.ReasonCode,
		TimeoutAt: o.TimeoutAt.Std(), OnTimeout: api.TimeoutBehavior(o.Behavior), Cause: string(o.Cause), ClosedAt: o.ClosedAt.Std(),
		CloserSignalID: uuidText(o.CloserSignalID), By: o.By, EscalatedAt: o.EscalatedAt.Std(), Signals: each(o.Signals, SignalOf),
	}
	for _, w := range o.Waitpoints {
		shown.Waitpoints = append(shown.Waitpoints, api.BoundWaitpoint{Key: w.Key, WaitpointID: w.ID.String()})
	}
	if o.Continuation != nil {
		shown.Continuation = PayloadOf(*o.Continuation)
	}
	condition, err := condition.Decode(o.Condition)
	if err != nil {
		return shown, err
	}
	shown.Until = conditionOf(condition)
	return shown, nil
}

func linkOf(l *core.Link) api.ApprovalLink {
	shown := api.ApprovalLink{
		ID: l.ID.String(), WaitpointID: l.WaitpointID.String(), ExecutionID: idOf(l.ExecutionID), Approver: l.Approver, Title: l.Title, Message: l.Message,
		CommentRequired: l.CommentRequired, CreatedAt: l.CreatedAt.Std(), ExpiresAt: l.ExpiresAt.Std(),
	}
	for _, decision := range l.Decisions {
		shown.Choices = append(shown.Choices, api.LinkChoice(decision))
	}
	return shown
}

// linkViewOf converts a link without its address.
func linkViewOf(v core.LinkView) api.ApprovalLink {
	shown := linkOf(&v.Link)
	shown.State = v.State
	if v.End != nil && !v.End.Revoked {
		shown.Decision, shown.Comment, shown.DecidedAt = v.End.Decision, v.End.Comment, v.End.At.Std()
	}
	return shown
}

// issuedLinkOf converts a link as it was made, with its address and without its later state.
func (s *Service) issuedLinkOf(l engine.IssuedLink) api.ApprovalLink {
	shown := linkOf(&l.Link)
	shown.URL = s.address(linkPath, shown.ID, l.Token)
	return shown
}

// suspendedOf converts a suspended execution.
func suspendedOf(i engine.SuspendedItem) api.Suspended {
	execution := ExecutionOf(i.View)
	shown := api.Suspended{
		ExecutionID: execution.ID, Execution: execution, SuspensionID: i.SuspensionID.String(), SuspendedAt: i.SuspendedAt.Std(), TimeoutAt: i.TimeoutAt.Std(),
		ExpiresAt: earlierOf(i.TimeoutAt.Std(), execution.DeadlineAt), ReasonCode: i.ReasonCode, Waitpoints: each(i.Waitpoints, waitpointViewOf),
		Links: each(i.Links, linkViewOf), Decisions: each(i.Decisions, decisionOf), Needed: i.Needed,
	}
	for _, node := range i.Progress {
		shown.Progress = append(shown.Progress, api.NodeProgress{Node: conditionOf(node.Node), Progress: node.Progress, Needed: node.Needed})
	}
	return shown
}

// earlierOf returns the earlier of two times, each of which may be absent.
func earlierOf(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func decisionOf(s core.Signal) api.PersonalDecision {
	return api.PersonalDecision{By: s.SourceIdentity, Decision: s.Name, Comment: wire.CommentIn(s.Payload.Data), At: s.AcceptedAt.Std()}
}
