package core

import (
	"crypto/sha256"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Submission is a request for a new execution (L79). It is checked by Normalize and CheckTimes.
type Submission struct {
	ID             *base.GivenID // nil: the engine mints one
	Namespace      string        // "": default
	Lane           string        // "": default
	Kind           string
	Input          Payload
	Priority       int
	Creator        string // "": the engine fills in the principal and its key
	CreatorKey     string `json:",omitempty"` // see Submitter; not part of the fingerprint
	IdempotencyKey string // "": none
	Tags           base.Tags
	Policy         *Policy      // of ParsePolicy; nil: PolicyJSON is used
	PolicyJSON     []byte       // the caller's text, parsed by Normalize; empty: the default policy
	LaneRetry      *RetryPolicy `json:"-"` // of the lane at present: the default of a policy that does not state its retries
	DelayUntil     base.Time
	DelayMS        *base.Millis // instead of DelayUntil
	DeadlineAt     base.Time
	FlowID         base.ID
	ParentID       base.ID
	Member         *Membership    `json:"-"`          // its place in the flow; nil outside of one
	Budgets        []ScopedBudget `json:"-"`          // that apply to it by its flow or its parent (B6)
	Trace          *base.Trace    `json:",omitempty"` // not part of the fingerprint
}

// Normalize fills in defaults, clamps the priority and checks everything that needs neither a clock nor the store, in the order of L80: arguments
// (invalid_argument, invalid_id, payload_too_large), policy (invalid_policy), capabilities (invalid_capabilities), tags (invalid_tag_key,
// invalid_argument).
func (s *Submission) Normalize(limits base.Limits) error {
	s.fillDefaults()
	if err := s.checkArguments(limits); err != nil {
		return err
	}
	if s.Policy == nil {
		policy, err := ParsePolicy(s.PolicyJSON)
		if err != nil {
			return err
		}
		s.Policy = policy
	}
	return base.CheckTags(s.Tags)
}

func (s *Submission) fillDefaults() {
	if s.Namespace == "" {
		s.Namespace = base.DefaultNamespace
	}
	if s.Lane == "" {
		s.Lane = base.DefaultLane
	}
	if s.Input.ContentType == "" {
		s.Input.ContentType = base.DefaultContentType
	}
	s.Input.Size = len(s.Input.Data)
	s.Priority = base.ClampPriority(s.Priority)
}

// checkArguments follows the order of the fields in L79.
func (s *Submission) checkArguments(limits base.Limits) error {
	// The zero UUID means an absent id in every record, so no execution can have it.
	if s.ID != nil && s.ID.UUID.IsZero() {
		return base.Errorf(base.CodeInvalidID, "the zero UUID names no execution").WithField("execution_id")
	}
	checks := [...]error{
		base.CheckNamespace(s.Namespace),
		base.CheckLane(s.Lane),
		base.CheckKind(s.Kind),
		limits.CheckPayload("input", s.Input.Size),
		base.CheckContentType("content_type", s.Input.ContentType),
		base.CheckCreator(s.Creator),
		base.CheckIdempotencyKey(s.IdempotencyKey),
		s.checkDelay(),
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Submission) checkDelay() error {
	switch {
	case s.DelayMS == nil:
		return nil
	case s.DelayUntil != 0:
		return base.Invalid("delay_ms", "give delay_until or delay_ms, not both")
	case *s.DelayMS < 0 || *s.DelayMS > base.MaxAhead:
		return base.Invalid("delay_ms", "must be in 0..%d", base.MaxAhead)
	default:
		return nil
	}
}

// CheckTimes checks what depends on the present time: moments more than ten years ahead and a deadline in the past are invalid_argument (L6, L81).
func (s *Submission) CheckTimes(now base.Time) error {
	if err := base.CheckAhead("delay_until", s.DelayUntil, now); err != nil {
		return err
	}
	if s.DeadlineAt.Reached(now) {
		return base.Invalid("deadline_at", "has passed already")
	}
	return base.CheckAhead("deadline_at", s.DeadlineAt, now)
}

// StartAt returns the moment before which the execution must not start, given or relative to now; absent if it may start at once.
func (s *Submission) StartAt(now base.Time) base.Time {
	start := s.DelayUntil
	if s.DelayMS != nil {
		start = now.Add(*s.DelayMS)
	}
	if start <= now {
		return 0
	}
	return start
}

// Fingerprint distinguishes submissions under one key: SHA-256 over lane, kind, input, content type and canonical policy (L83). The submission must
// be normalized.
func (s *Submission) Fingerprint() []byte {
	h := sha256.New()
	base.AddPart(h, []byte(s.Lane))
	base.AddPart(h, []byte(s.Kind))
	base.AddPart(h, s.Input.Data)
	base.AddPart(h, []byte(s.Input.ContentType))
	base.AddPart(h, s.Policy.Canonical())
	return h.Sum(nil)
}

// Class returns the claim class of the submission (S13), without its number. The submission must be normalized.
func (s *Submission) Class() Class {
	return Class{
		Namespace:    s.Namespace,
		Lane:         s.Lane,
		Kind:         s.Kind,
		Capabilities: s.Policy.Capabilities,
		FairnessKey:  s.Policy.FairnessKey,
	}
}

// NewExecution makes the record of an accepted submission (L79..L81). s is normalized and its times are checked; class is
// s.Class() with the store's number.
func NewExecution(fx *Effects, s *Submission, id base.ID, class *Class) *Execution {
	now := fx.Now
	x := &Execution{
		ID: id, Class: class, Creator: s.Creator, CreatorKey: s.CreatorKey, IdempotencyKey: s.IdempotencyKey, FlowID: s.FlowID, ParentID: s.ParentID, Member: s.Member, Budgets: s.Budgets, Trace: s.Trace,
		Input: s.Input, Tags: s.Tags,
		Next: NextInitial, Priority: s.Priority, CreatedAt: now,
		DeadlineAt: s.DeadlineAt,
	}
	x.Policy, x.RetryOrigin, x.RetryLeftOut = s.frozenPolicy()
	if start := s.StartAt(now); start != 0 {
		x.DelayUntil, x.DelayReason = start, WaitingForDelay
	}
	x.QueuedAt = base.Later(now, x.DelayUntil)
	if relative := s.Policy.ExecutionDeadlineMS; relative > 0 {
		x.DeadlineAt = base.Earliest(x.DeadlineAt, now.Add(relative))
	}
	x.Dependency = s.Member.dependency()
	x.gate(now)
	x.emitSubmitted(fx)
	return x
}

// Submitter is the principal that submitted an execution or a flow. A submission with an API key is identified by the id of the key: names of keys
// are not unique, and a rotated key keeps its id. One with only a name was submitted without a key, or by an older version.
type Submitter struct {
	Name  string // of the principal
	KeyID string // of its API key; "": only the name is known
}

// Submitter returns who submitted the execution, or the parent that spawned it.
func (x *Execution) Submitter() Submitter { return Submitter{x.Creator, x.CreatorKey} }

// Submitter returns who submitted the flow, or what it belongs to.
func (f *Flow) Submitter() Submitter { return Submitter{f.Creator, f.CreatorKey} }

// Is reports whether it is the same principal: keys are compared by id, others by name.
func (s Submitter) Is(by Submitter) bool {
	if s.KeyID == "" {
		return s.Name == by.Name
	}
	return s.KeyID == by.KeyID
}
