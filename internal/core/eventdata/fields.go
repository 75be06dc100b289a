package eventdata

// Field is the name of a field of the data of events. Values are stored: only append.
type Field uint8

// The names of all fields.
const (
	FieldStatus Field = iota
	FieldReason
	FieldPriority
	FieldDelayUntil
	FieldDeadlineAt
	FieldParentID
	FieldInput
	FieldSize
	FieldContentType
	FieldCause
	FieldBlockedOn
	FieldBlockingDetail
	FieldLeaseEpoch
	FieldLease
	FieldLeaseID
	FieldWorkerID
	FieldInstanceID
	FieldHeldMS
	FieldLate
	FieldExpiresAt
	FieldAttemptID
	FieldAttemptIndex
	FieldAttemptType
	FieldHow
	FieldForced
	FieldBy
	FieldReclaimCount
	FieldState
	FieldClass
	FieldCategory
	FieldMessage
	FieldRetryCount
	FieldRetryAt
	FieldOutcome
	FieldFailure
	FieldCancellation
	FieldSource
	FieldEdges
	FieldResult
	FieldTotals
	FieldAttempts
	FieldRetries
	FieldReclaims
	FieldFromStatus
	FieldReplayCount
	FieldReopened
	FieldCascade
	FieldOld
	FieldNew
	FieldKeys
	FieldUntil
	FieldLane
	FieldLanes
	FieldCapabilities
	FieldDetail
	FieldLastSeen
	FieldOn
	FieldKid
	FieldPreviousKid
	FieldVerifyUntil
	FieldSuspensionID
	FieldReasonCode
	FieldTimeoutAt
	FieldTimeoutBehavior
	FieldWaitpoints
	FieldCloserSignalID
	FieldSignals
	FieldWaitpointID
	FieldWaitpointKey
	FieldTokenKid
	FieldTokenFingerprint
	FieldCloseReason
	FieldSignalID
	FieldName
	FieldSourceType
	FieldSourceIdentity
	FieldSourceVerified
	FieldEffect
	FieldMatched
	FieldPayload
	FieldLinkID
	FieldApprover
	FieldDecision
	FieldQuota
	FieldBudgetID
	FieldChanged
	FieldDimension
	FieldUsed
	FieldReserved
	FieldSoft
	FieldHard
	FieldAttempted
	FieldOverrun
	FieldAction
	FieldRaise
	FieldEpoch
	FieldNextResetAt
	FieldUsage
	FieldKind
	FieldGraphRevision
	FieldNodesAdded
	FieldEdgesAdded
	FieldPolicy
	FieldMembers
	FieldCounts
	FieldFailures
	FieldMember
	FieldCompleted
	FieldFailed
	FieldCancelled
	FieldExpired
	FieldSkipped
	FieldK
	FieldChildren
	FieldEndpointID
	FieldEventID
	FieldLastStatus
	FieldHandTo
)

var fieldNames = [...]string{
	FieldStatus:           "status",
	FieldReason:           "reason",
	FieldPriority:         "priority",
	FieldDelayUntil:       "delay_until",
	FieldDeadlineAt:       "deadline_at",
	FieldParentID:         "parent_id",
	FieldInput:            "input",
	FieldSize:             "size",
	FieldContentType:      "content_type",
	FieldCause:            "cause",
	FieldBlockedOn:        "blocked_on",
	FieldBlockingDetail:   "blocking_detail",
	FieldLeaseEpoch:       "lease_epoch",
	FieldLease:            "lease",
	FieldLeaseID:          "lease_id",
	FieldWorkerID:         "worker_id",
	FieldInstanceID:       "worker_instance_id",
	FieldHeldMS:           "held_ms",
	FieldLate:             "late",
	FieldExpiresAt:        "expires_at",
	FieldAttemptID:        "attempt_id",
	FieldAttemptIndex:     "attempt_index",
	FieldAttemptType:      "attempt_type",
	FieldHow:              "how",
	FieldForced:           "forced",
	FieldBy:               "by",
	FieldReclaimCount:     "reclaim_count",
	FieldState:            "state",
	FieldClass:            "class",
	FieldCategory:         "category",
	FieldMessage:          "message",
	FieldRetryCount:       "retry_count",
	FieldRetryAt:          "retry_at",
	FieldOutcome:          "outcome",
	FieldFailure:          "failure",
	FieldCancellation:     "cancellation",
	FieldSource:           "source",
	FieldEdges:            "edges",
	FieldResult:           "result",
	FieldTotals:           "totals",
	FieldAttempts:         "attempts",
	FieldRetries:          "retries",
	FieldReclaims:         "reclaims",
	FieldFromStatus:       "from_status",
	FieldReplayCount:      "replay_count",
	FieldReopened:         "reopened",
	FieldCascade:          "cascade",
	FieldOld:              "old",
	FieldNew:              "new",
	FieldKeys:             "keys",
	FieldUntil:            "until",
	FieldLane:             "lane",
	FieldLanes:            "lanes",
	FieldCapabilities:     "capabilities",
	FieldDetail:           "detail",
	FieldLastSeen:         "last_seen",
	FieldOn:               "on",
	FieldKid:              "kid",
	FieldPreviousKid:      "previous_kid",
	FieldVerifyUntil:      "verify_until",
	FieldSuspensionID:     "suspension_id",
	FieldReasonCode:       "reason_code",
	FieldTimeoutAt:        "timeout_at",
	FieldTimeoutBehavior:  "timeout_behavior",
	FieldWaitpoints:       "waitpoints",
	FieldCloserSignalID:   "closer_signal_id",
	FieldSignals:          "signals",
	FieldWaitpointID:      "waitpoint_id",
	FieldWaitpointKey:     "waitpoint_key",
	FieldTokenKid:         "token_kid",
	FieldTokenFingerprint: "token_fingerprint",
	FieldCloseReason:      "close_reason",
	FieldSignalID:         "signal_id",
	FieldName:             "name",
	FieldSourceType:       "source_type",
	FieldSourceIdentity:   "source_identity",
	FieldSourceVerified:   "source_verified",
	FieldEffect:           "effect",
	FieldMatched:          "matched",
	FieldPayload:          "payload",
	FieldLinkID:           "link_id",
	FieldApprover:         "approver",
	FieldDecision:         "decision",
	FieldQuota:            "quota",
	FieldBudgetID:         "budget_id",
	FieldChanged:          "changed",
	FieldDimension:        "dimension",
	FieldUsed:             "used",
	FieldReserved:         "reserved",
	FieldSoft:             "soft",
	FieldHard:             "hard",
	FieldAttempted:        "attempted",
	FieldOverrun:          "overrun",
	FieldAction:           "action",
	FieldRaise:            "raise",
	FieldEpoch:            "epoch",
	FieldNextResetAt:      "next_reset_at",
	FieldUsage:            "usage",
	FieldKind:             "kind",
	FieldGraphRevision:    "graph_revision",
	FieldNodesAdded:       "nodes_added",
	FieldEdgesAdded:       "edges_added",
	FieldPolicy:           "policy",
	FieldMembers:          "members",
	FieldCounts:           "counts",
	FieldFailures:         "failures",
	FieldMember:           "member",
	FieldCompleted:        "completed",
	FieldFailed:           "failed",
	FieldCancelled:        "cancelled",
	FieldExpired:          "expired",
	FieldSkipped:          "skipped",
	FieldK:                "k",
	FieldChildren:         "children",
	FieldEndpointID:       "endpoint_id",
	FieldEventID:          "event_id",
	FieldLastStatus:       "last_status",
	FieldHandTo:           "hand_to",
}
