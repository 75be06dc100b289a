package core

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
)

// Bounds of a suspend (section 5).
const (
	MaxBindings        = 64
	MaxContinuation    = 64 << 10
	maxSuspendTimeout  = base.Year
	waitpointsField    = "waitpoints"
	waitpointKeyMember = ".fresh.waitpoint_key"
)

// The reason codes of a suspend (W52).
const (
	ReasonCodeSignal         = "waiting_for_signal"
	ReasonCodeOperatorReview = "waiting_for_operator_review"
)

// reasonCodes is the table of W52: the status reason for each code.
var reasonCodes = map[string]Reason{
	ReasonCodeSignal:          WaitingForSignal,
	"step_boundary":           WaitingForSignal,
	"waiting_for_approval":    WaitingForApproval,
	"waiting_for_callback":    WaitingForCallback,
	"waiting_for_tool_result": WaitingForToolResult,
	"paused_by_policy":        PausedByPolicy,
	ReasonCodeOperatorReview:  PausedByOperator,
	"manual_pause":            PausedByOperator,
	ReasonCodeBudget:          WaitingForBudget,
}

// CheckReasonCode refuses an unknown reason code: invalid_argument.
func CheckReasonCode(code string) error {
	if _, known := reasonCodes[code]; !known {
		return base.Invalid("reason_code", "%q is no reason of a suspension", code).
			WithHint("use one of %s", strings.Join(slices.Sorted(maps.Keys(reasonCodes)), ", "))
	}
	return nil
}

func (c *SuspendCommand) reasonCode() string {
	if c.ReasonCode == "" {
		return ReasonCodeSignal
	}
	return c.ReasonCode
}

// Check returns the first fault of the arguments in the order of W46: invalid_suspend with a reason. Before these comes the handle of a suspension,
// which is not a lease handle (W44): already_suspended. After them come checks outside the table: an unknown timeout behavior, texts that W11
// forbids (reserved_name for names of the engine), an invalid idempotency key (invalid_suspend), a continuation above its limit
// (payload_too_large), invalid amounts (invalid_usage, reserved_dimension).
func (c *SuspendCommand) Check() error {
	if c.SpentHandle {
		return base.Errorf(base.CodeAlreadySuspended, "the handle is that of a suspension, which serves only to observe").
			WithHint("claim the execution when it has resumed, and use the handle of that claim")
	}
	for _, check := range [...]func(*SuspendCommand) error{
		(*SuspendCommand).checkBindings, (*SuspendCommand).checkKeyLengths, (*SuspendCommand).checkCondition,
		(*SuspendCommand).checkTimeout, (*SuspendCommand).checkRest,
	} {
		if err := check(c); err != nil {
			return err
		}
	}
	return nil
}

func (c *SuspendCommand) checkBindings() error {
	switch {
	case len(c.Waitpoints) == 0 && (c.Condition == nil || !c.Condition.BindsNothing()):
		return condition.InvalidSuspend("waitpoints_empty", waitpointsField, "must not be empty: the condition waits for signals")
	case len(c.Waitpoints) > MaxBindings:
		return condition.InvalidSuspend("too_many_waitpoints", waitpointsField, "%d waitpoints, at most %d are allowed", len(c.Waitpoints), MaxBindings).
			With("limit", MaxBindings)
	}
	ids, keys := map[base.UUID]bool{}, map[string]bool{}
	for i, b := range c.Waitpoints {
		if ids[b.ID] && !b.ID.IsZero() || b.Key != nil && keys[*b.Key] {
			return condition.InvalidSuspend("duplicate_binding", base.Element(waitpointsField, i), "has the id or the key of another")
		}
		ids[b.ID] = true
		if b.Key != nil {
			keys[*b.Key] = true
		}
	}
	return nil
}

// checkKeyLengths checks for empty keys before long ones, each in the bindings and then in the condition.
func (c *SuspendCommand) checkKeyLengths() error {
	if at := c.keyAt(func(key string) bool { return key == "" }); at != "" {
		return condition.InvalidSuspend("waitpoint_key_empty", at, "must not be empty: leave it out to have one made")
	}
	var inCondition error
	if c.Condition != nil {
		inCondition = c.Condition.CheckKeys()
	}
	if reasonOf(inCondition) == "waitpoint_key_empty" {
		return inCondition
	}
	if at := c.keyAt(func(key string) bool { return len(key) > condition.MaxWaitpointKey }); at != "" {
		return condition.InvalidSuspend("waitpoint_key_too_long", at, "is too long: at most %d bytes are allowed", condition.MaxWaitpointKey)
	}
	return inCondition
}

// reasonOf returns the reason of an invalid_suspend.
func reasonOf(err error) string {
	var refused *base.Error
	if !errors.As(err, &refused) {
		return ""
	}
	reason, _ := refused.Details["reason"].(string)
	return reason
}

// keyAt returns the field of the first binding key for which is holds.
func (c *SuspendCommand) keyAt(is func(string) bool) string {
	for i, b := range c.Waitpoints {
		if b.Key != nil && is(*b.Key) {
			return base.Element(waitpointsField, i) + waitpointKeyMember
		}
	}
	return ""
}

func (c *SuspendCommand) checkCondition() error {
	if c.Condition == nil {
		return condition.InvalidSuspend(condition.Malformed, condition.FieldName, "is required")
	}
	return c.Condition.Check()
}

func (c *SuspendCommand) checkTimeout() error {
	switch {
	case c.TimeoutAt != 0 && c.TimeoutMS != nil:
		return condition.InvalidSuspend("timeout_ambiguous", "timeout_at", "give timeout_at or timeout_ms, not both")
	case c.TimeoutAt < 0:
		return condition.InvalidSuspend("bad_number", "timeout_at", "lies before 1970")
	case c.TimeoutMS != nil && (*c.TimeoutMS < 0 || *c.TimeoutMS > maxSuspendTimeout):
		return condition.InvalidSuspend("bad_number", "timeout_ms", "must be in 0..%d", maxSuspendTimeout)
	case c.ResumeDelayMS < 0 || c.ResumeDelayMS > maxResumeDelay:
		return condition.InvalidSuspend("bad_number", "resume_delay_ms", "must be in 0..%d", maxResumeDelay)
	}
	if _, known := reasonCodes[c.reasonCode()]; !known {
		return condition.InvalidSuspend("unknown_reason_code", "reason_code", "%q is not a reason code", base.CutText(c.ReasonCode, 80))
	}
	return nil
}

func (c *SuspendCommand) checkRest() error {
	if c.Behavior != "" && !slices.Contains(timeoutBehaviors, c.Behavior) {
		return condition.InvalidSuspend("unknown_timeout_behavior", "timeout_behavior", "%q is not a behavior", base.CutText(c.Behavior, 80)).
			WithHint("use %s", strings.Join(timeoutBehaviors, ", "))
	}
	for i, b := range c.Waitpoints {
		at := base.Element(waitpointsField, i)
		if b.UsePending && b.ID.IsZero() {
			return condition.InvalidSuspend("binding_malformed", at, "names no pending waitpoint")
		}
		if b.Key == nil {
			continue
		}
		if b.UsePending {
			return condition.InvalidSuspend("binding_malformed", at, "a pending waitpoint has its key already")
		}
		if why := base.CheckPlain(*b.Key, 1, condition.MaxWaitpointKey); why != "" {
			return condition.InvalidSuspend("waitpoint_key_malformed", at+waitpointKeyMember, "%s", why)
		}
		if err := checkReserved(at+waitpointKeyMember, *b.Key); err != nil {
			return err
		}
	}
	if why := base.CheckPlain(c.IdempotencyKey, 0, base.MaxIdempotencyKey); why != "" {
		return condition.InvalidSuspend("bad_idempotency_key", "idempotency_key", "%s", why)
	}
	if err := c.checkContinuation(); err != nil {
		return err
	}
	return CheckUsage(c.Usage)
}

func (c *SuspendCommand) checkContinuation() error {
	if c.Continuation == nil {
		return nil
	}
	if err := base.CheckSize("continuation", len(c.Continuation.Data), MaxContinuation); err != nil {
		return err
	}
	if c.Continuation.ContentType == "" {
		return nil
	}
	return base.CheckContentType("continuation_content_type", c.Continuation.ContentType)
}

// checkReserved refuses a name that belongs to the engine (W11).
func checkReserved(field, name string) error {
	if strings.HasPrefix(name, condition.ReservedPrefix) {
		return base.Errorf(base.CodeReservedName, "names that begin with %s belong to the engine", condition.ReservedPrefix).WithField(field)
	}
	return nil
}
