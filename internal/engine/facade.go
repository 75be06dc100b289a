package engine

import (
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/bulk"
	"github.com/flowfabric/flowfabric/internal/engine/claims"
	"github.com/flowfabric/flowfabric/internal/engine/eventlog"
	"github.com/flowfabric/flowfabric/internal/engine/flows"
	"github.com/flowfabric/flowfabric/internal/engine/inspect"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/streams"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/waits"
	"github.com/flowfabric/flowfabric/internal/engine/webhooks"
	"github.com/flowfabric/flowfabric/internal/engine/work"
)

// The types that users of the engine name. Each is declared in the room that it belongs to.
//
//nolint:revive // the comment is about all of them
type (
	AdminAction         = admin.AdminAction
	AppendAnswer        = streams.AppendAnswer
	AppendRequest       = streams.AppendRequest
	AttemptStream       = streams.AttemptStream
	AuditCheck          = admin.AuditCheck
	AuditRequest        = admin.AuditRequest
	Bounds              = inspect.Bounds
	BudgetQuery         = limits.BudgetQuery
	BudgetRef           = limits.BudgetRef
	BudgetView          = limits.BudgetView
	BulkArgs            = bulk.BulkArgs
	BulkItem            = bulk.BulkItem
	BulkItemsRequest    = bulk.BulkItemsRequest
	BulkRequest         = bulk.BulkRequest
	BulkSignal          = bulk.BulkSignal
	BulkView            = bulk.BulkView
	Caller              = txn.Caller
	CancelFlowAnswer    = flows.CancelFlowAnswer
	CancelFlowRequest   = flows.CancelFlowRequest
	ChargeRequest       = limits.ChargeRequest
	Check               = inspect.Check
	CheckState          = inspect.CheckState
	ChildView           = txn.ChildView
	ChildrenWaitAnswer  = flows.ChildrenWaitAnswer
	ChildrenWaitRequest = flows.ChildrenWaitRequest
	ClaimAnswer         = txn.ClaimAnswer
	ClaimRequest        = txn.ClaimRequest
	CompleteItem        = work.CompleteItem
	Config              = txn.Config
	CountAnswer         = txn.CountAnswer
	DeleteFlowRequest   = flows.DeleteFlowRequest
	Derivation          = flows.Derivation
	Difference          = inspect.Difference
	EdgeQuery           = flows.EdgeQuery
	Ending              = work.Ending
	EventFilter         = eventlog.Filter
	EventPage           = eventlog.Page
	EventsRequest       = eventlog.Request
	Facts               = txn.Facts
	Feed                = txn.Feed
	Follow              = streams.Follow
	FollowPage          = streams.FollowPage
	FollowRequest       = streams.FollowRequest
	FramesPage          = streams.FramesPage
	FramesRequest       = streams.FramesRequest
	FlowAnswer          = flows.FlowAnswer
	FlowQuery           = flows.FlowQuery
	FlowView            = flows.FlowView
	Grant               = claims.Grant
	GrantClaim          = claims.GrantClaim
	Handoff             = claims.Handoff
	HeartbeatAnswer     = txn.HeartbeatAnswer
	Holder              = limits.Holder
	Hooks               = txn.Hooks
	IntegrityReport     = inspect.IntegrityReport
	Issued              = waits.Issued
	IssuedLink          = waits.IssuedLink
	KeptFrames          = streams.Kept
	JoinView            = flows.JoinView
	LaneView            = txn.LaneView
	LeaseRef            = txn.LeaseRef
	LeaseView           = txn.LeaseView
	LinkPage            = waits.LinkPage
	ListRequest         = txn.ListRequest
	LoggedEvent         = eventlog.Event
	MemberView          = flows.MemberView
	Operator            = txn.Operator
	Page                = txn.Page
	QuotaKeyView        = limits.QuotaKeyView
	QuotaView           = limits.QuotaView
	Rate                = txn.Rate
	Rates               = txn.Rates
	Refusal             = admin.Refusal
	RegisterAnswer      = txn.RegisterAnswer
	RenewItem           = txn.RenewItem
	ReplayRequest       = work.ReplayRequest
	RevokeRequest       = claims.RevokeRequest
	Revoked             = claims.Revoked
	Rollback            = admin.Rollback
	RotatedKey          = admin.RotatedKey
	Rotation            = admin.Rotation
	SignalQuery         = waits.SignalQuery
	Span                = txn.Span
	SpawnAnswer         = flows.SpawnAnswer
	SpawnRequest        = flows.SpawnRequest
	SpendQuery          = limits.SpendQuery
	SpendRow            = limits.SpendRow
	Standing            = waits.Standing
	StepAnswer          = txn.StepAnswer
	StepsPage           = work.StepsPage
	StepsRequest        = work.StepsRequest
	SubmitAnswer        = txn.SubmitAnswer
	SubmitItem          = txn.SubmitItem
	StreamItem          = streams.Item
	StreamSummary       = streams.Summary
	SuspendAnswer       = waits.SuspendAnswer
	SuspendedItem       = waits.SuspendedItem
	SuspendedQuery      = waits.SuspendedQuery
	TargetedRequest     = txn.TargetedRequest
	Task                = txn.Task
	Tracer              = txn.Tracer
	TxAnswer            = work.TxAnswer
	TxOutcome           = work.TxOutcome
	TxOutcomeAnswer     = work.TxOutcomeAnswer
	UsageRequest        = limits.UsageRequest
	View                = txn.View
	WaitpointQuery      = waits.WaitpointQuery
	WebhookSetup        = webhooks.Setup
	WebhookView         = webhooks.WebhookView
	WorkerQuery         = txn.WorkerQuery
	WorkerView          = txn.WorkerView
)

// NewestAttempt names the newest attempt of an execution.
const NewestAttempt = streams.Newest

// The states of a check of the doctor, and of a store.
const (
	CheckFail = inspect.CheckFail
	CheckOK   = inspect.CheckOK
	CheckWarn = inspect.CheckWarn
	StoreFull = txn.StoreFull
	StoreOK   = txn.StoreOK
)

// What a worker may do in a user's own transaction.
const (
	OutcomeComplete = work.OutcomeComplete
	OutcomeStep     = work.OutcomeStep
	OutcomeSuspend  = work.OutcomeSuspend
)
