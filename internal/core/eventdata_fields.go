package core

// field is the name of a field of the data of events. Values are stored: only append.
type field uint8

// The names of all fields.
const (
	fieldStatus field = iota
	fieldReason
	fieldPriority
	fieldDelayUntil
	fieldDeadlineAt
	fieldParentID
	fieldInput
	fieldSize
	fieldContentType
	fieldCause
	fieldBlockedOn
	fieldBlockingDetail
	fieldLeaseEpoch
	fieldLease
	fieldLeaseID
	fieldWorkerID
	fieldInstanceID
	fieldHeldMS
	fieldLate
	fieldExpiresAt
	fieldAttemptID
	fieldAttemptIndex
	fieldAttemptType
	fieldHow
	fieldForced
	fieldBy
	fieldReclaimCount
	fieldState
	fieldClass
	fieldCategory
	fieldMessage
	fieldRetryCount
	fieldRetryAt
	fieldOutcome
	fieldFailure
	fieldCancellation
	fieldSource
	fieldEdges
	fieldResult
	fieldTotals
	fieldAttempts
	fieldRetries
	fieldReclaims
	fieldFromStatus
	fieldReplayCount
	fieldReopened
	fieldCascade
	fieldOld
	fieldNew
	fieldKeys
	fieldUntil
	fieldLane
	fieldLanes
	fieldCapabilities
	fieldDetail
	fieldLastSeen
	fieldOn
	fieldKid
	fieldPreviousKid
	fieldVerifyUntil
	fieldSuspensionID
	fieldReasonCode
	fieldTimeoutAt
	fieldTimeoutBehavior
	fieldWaitpoints
	fieldCloserSignalID
	fieldSignals
	fieldWaitpointID
	fieldWaitpointKey
	fieldTokenKid
	fieldTokenFingerprint
	fieldCloseReason
	fieldSignalID
	fieldName
	fieldSourceType
	fieldSourceIdentity
	fieldSourceVerified
	fieldEffect
	fieldMatched
	fieldPayload
	fieldLinkID
	fieldApprover
	fieldDecision
	fieldQuota
	fieldBudgetID
	fieldChanged
	fieldDimension
	fieldUsed
	fieldReserved
	fieldSoft
	fieldHard
	fieldAttempted
	fieldOverrun
	fieldAction
	fieldRaise
	fieldEpoch
	fieldNextResetAt
	fieldUsage
	fieldKind
	fieldGraphRevision
	fieldNodesAdded
	fieldEdgesAdded
	fieldPolicy
	fieldMembers
	fieldCounts
	fieldFailures
	fieldMember
	fieldCompleted
	fieldFailed
	fieldCancelled
	fieldExpired
	fieldSkipped
	fieldK
	fieldChildren
)

var fieldNames = [...]string{
	fieldStatus:           "status",
	fieldReason:           "reason",
	fieldPriority:         "priority",
	fieldDelayUntil:       "delay_until",
	fieldDeadlineAt:       "deadline_at",
	fieldParentID:         "parent_id",
	fieldInput:            "input",
	fieldSize:             "size",
	fieldContentType:      "content_type",
	fieldCause:            "cause",
	fieldBlockedOn:        "blocked_on",
	fieldBlockingDetail:   "blocking_detail",
	fieldLeaseEpoch:       "lease_epoch",
	fieldLease:            "lease",
	fieldLeaseID:          "lease_id",
	fieldWorkerID:         "worker_id",
	fieldInstanceID:       "worker_instance_id",
	fieldHeldMS:           "held_ms",
	fieldLate:             "late",
	fieldExpiresAt:        "expires_at",
	fieldAttemptID:        "attempt_id",
	fieldAttemptIndex:     "attempt_index",
	fieldAttemptType:      "attempt_type",
	fieldHow:              "how",
	fieldForced:           "forced",
	fieldBy:               "by",
	fieldReclaimCount:     "reclaim_count",
	fieldState:            "state",
	fieldClass:            "class",
	fieldCategory:         "category",
	fieldMessage:          "message",
	fieldRetryCount:       "retry_count",
	fieldRetryAt:          "retry_at",
	fieldOutcome:          "outcome",
	fieldFailure:          "failure",
	fieldCancellation:     "cancellation",
	fieldSource:           "source",
	fieldEdges:            "edges",
	fieldResult:           "result",
	fieldTotals:           "totals",
	fieldAttempts:         "attempts",
	fieldRetries:          "retries",
	fieldReclaims:         "reclaims",
	fieldFromStatus:       "from_status",
	fieldReplayCount:      "replay_count",
	fieldReopened:         "reopened",
	fieldCascade:          "cascade",
	fieldOld:              "old",
	fieldNew:              "new",
	fieldKeys:             "keys",
	fieldUntil:            "until",
	fieldLane:             "lane",
	fieldLanes:            "lanes",
	fieldCapabilities:     "capabilities",
	fieldDetail:           "detail",
	fieldLastSeen:         "last_seen",
	fieldOn:               "on",
	fieldKid:              "kid",
	fieldPreviousKid:      "previous_kid",
	fieldVerifyUntil:      "verify_until",
	fieldSuspensionID:     "suspension_id",
	fieldReasonCode:       "reason_code",
	fieldTimeoutAt:        "timeout_at",
	fieldTimeoutBehavior:  "timeout_behavior",
	fieldWaitpoints:       "waitpoints",
	fieldCloserSignalID:   "closer_signal_id",
	fieldSignals:          "signals",
	fieldWaitpointID:      "waitpoint_id",
	fieldWaitpointKey:     "waitpoint_key",
	fieldTokenKid:         "token_kid",
	fieldTokenFingerprint: "token_fingerprint",
	fieldCloseReason:      "close_reason",
	fieldSignalID:         "signal_id",
	fieldName:             "name",
	fieldSourceType:       "source_type",
	fieldSourceIdentity:   "source_identity",
	fieldSourceVerified:   "source_verified",
	fieldEffect:           "effect",
	fieldMatched:          "matched",
	fieldPayload:          "payload",
	fieldLinkID:           "link_id",
	fieldApprover:         "approver",
	fieldDecision:         "decision",
	fieldQuota:            "quota",
	fieldBudgetID:         "budget_id",
	fieldChanged:          "changed",
	fieldDimension:        "dimension",
	fieldUsed:             "used",
	fieldReserved:         "reserved",
	fieldSoft:             "soft",
	fieldHard:             "hard",
	fieldAttempted:        "attempted",
	fieldOverrun:          "overrun",
	fieldAction:           "action",
	fieldRaise:            "raise",
	fieldEpoch:            "epoch",
	fieldNextResetAt:      "next_reset_at",
	fieldUsage:            "usage",
	fieldKind:             "kind",
	fieldGraphRevision:    "graph_revision",
	fieldNodesAdded:       "nodes_added",
	fieldEdgesAdded:       "edges_added",
	fieldPolicy:           "policy",
	fieldMembers:          "members",
	fieldCounts:           "counts",
	fieldFailures:         "failures",
	fieldMember:           "member",
	fieldCompleted:        "completed",
	fieldFailed:           "failed",
	fieldCancelled:        "cancelled",
	fieldExpired:          "expired",
	fieldSkipped:          "skipped",
	fieldK:                "k",
	fieldChildren:         "children",
}
