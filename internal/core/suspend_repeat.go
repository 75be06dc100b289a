package core

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// suspendedBefore returns the answer to a wait of this run with the same idempotency key (W56). It is called before the fence check; nil means that
// the fence must be checked.
//
// A lapsed lease that was not taken over counts as the current one: otherwise its holder would wait a second time for what it already has.
func (x *Execution) suspendedBefore(d *Dossier, c *SuspendCommand) (*SuspendAnswer, error) {
	if c.IdempotencyKey == "" {
		return nil, nil
	}
	known := first(d.Suspensions, func(s *Suspension) bool {
		return s.RunIndex == x.RunIndex() && s.IdempotencyKey == c.IdempotencyKey
	})
	if known == nil {
		return nil, nil
	}
	end := d.suspensionEnd(known.Seq)
	maker := known.Fence == c.Fence
	if !maker && (end == nil || !end.Resumed || !x.holds(c.Fence)) {
		return nil, nil
	}
	if string(known.Fingerprint) != string(c.Fingerprint()) {
		return nil, base.Errorf(base.CodeIdempotencyConflict, "the idempotency key was used for another suspension").
			WithField("idempotency_key").With("suspension_id", known.ID.String())
	}
	if maker && !known.Early {
		return d.suspended(known), nil
	}
	return d.satisfied(known, end)
}

// holds reports whether the fence check would pass.
func (x *Execution) holds(f Fence) bool {
	if f.Validate() != nil {
		return false
	}
	_, err := x.checkFence(f)
	return err == nil
}

// repeatSuspend answers a repeat of the command that ended the lease (L34).
func (x *Execution) repeatSuspend(d *Dossier, record *LeaseRecord) (SuspendAnswer, error) {
	recorded, _, _, err := readAnswer(record)
	if err != nil {
		return SuspendAnswer{}, err
	}
	s := d.suspension(recorded.Suspension)
	if s == nil {
		return SuspendAnswer{}, x.lacks("suspension")
	}
	return *d.suspended(s), nil
}

// SuspendAnswered returns the answer that a suspend was given, for a repeat of the request (W4). Errors: corruption.
func (d *Dossier) SuspendAnswered(suspension base.UUID, satisfied bool) (SuspendAnswer, error) {
	s := d.suspensionByID(suspension)
	if s == nil || satisfied && d.suspensionEnd(s.Seq) == nil {
		return SuspendAnswer{}, sound("suspension", false)
	}
	if !satisfied {
		return *d.suspended(s), nil
	}
	answer, err := d.satisfied(s, d.suspensionEnd(s.Seq))
	return *answer, err
}

// suspended returns the answer that the suspension was given.
func (d *Dossier) suspended(s *Suspension) *SuspendAnswer {
	return &SuspendAnswer{SuspensionID: s.ID, Waitpoints: d.rowsOf(s), TimeoutAt: s.TimeoutAt, Late: s.Late, Repeated: true}
}

// satisfied returns the answer for a wait that was passed.
func (d *Dossier) satisfied(s *Suspension, end *SuspensionEnd) (*SuspendAnswer, error) {
	signals, err := d.judged(s)
	return &SuspendAnswer{
		Satisfied: true, SuspensionID: s.ID, Waitpoints: d.rowsOf(s), TimeoutAt: s.TimeoutAt, Cause: end.Cause, Signals: signals,
		Late: s.Early && s.Late, Repeated: true,
	}, err
}

// rowsOf returns the waitpoints of a suspension in the order of its bindings.
func (d *Dossier) rowsOf(s *Suspension) []Waitpoint {
	var rows []Waitpoint
	for _, bound := range s.Waitpoints {
		if w := d.Waitpoint(bound.ID); w != nil {
			rows = append(rows, *w)
		}
	}
	return rows
}

// Fingerprint returns the fingerprint of the arguments, without fence and idempotency key (W4). Commands with equal fingerprints are equal
// requests.
func (c *SuspendCommand) Fingerprint() []byte {
	o := base.NewObject(512)
	if p := c.Continuation; p != nil {
		digest := sha256.Sum256(p.Data)
		o.Str("continuation", hex.EncodeToString(digest[:]))
		o.Str("continuation_content_type", p.contentType())
	}
	o.Str("reason_code", c.reasonCode())
	o.Num("resume_delay_ms", c.ResumeDelayMS)
	o.Raw("resume_condition", c.Condition.Canonical())
	if !c.SuspensionID.IsZero() {
		o.UUID("suspension_id", c.SuspensionID)
	}
	o.Moment("timeout_at", c.TimeoutAt)
	o.StrIf("timeout_behavior", c.Behavior)
	if c.TimeoutMS != nil {
		o.Num("timeout_ms", *c.TimeoutMS)
	}
	if len(c.Usage) > 0 {
		o.Raw("usage", amountsText(c.Usage))
	}
	o.Raw(waitpointsField, bindingsText(c.Waitpoints))
	digest := sha256.Sum256(o.Done())
	return digest[:]
}

func bindingsText(bindings []Binding) []byte {
	text := []byte{'['}
	for i, b := range bindings {
		if i > 0 {
			text = append(text, ',')
		}
		o := base.NewObject(128)
		o.Flag("use_pending", b.UsePending)
		if !b.ID.IsZero() {
			o.UUID("waitpoint_id", b.ID)
		}
		if b.Key != nil {
			o.Str("waitpoint_key", *b.Key)
		}
		text = append(text, o.Done()...)
	}
	return append(text, ']')
}

// contentType returns the declared content type, or the default.
func (p *Payload) contentType() string {
	if p.ContentType == "" {
		return base.DefaultContentType
	}
	return p.ContentType
}

// sized returns a copy with content type and size filled in; nil for nil.
func (p *Payload) sized() *Payload {
	if p == nil {
		return nil
	}
	return &Payload{ContentType: p.contentType(), Data: p.Data, Size: len(p.Data)}
}
