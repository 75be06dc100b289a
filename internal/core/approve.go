package core

import (
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
)

// ApproveCommand is a signal sent by an operator, which needs no token (W65, W66).
type ApproveCommand struct {
	Principal   string
	WaitpointID base.UUID // absent: the one that is active
	Name        string
	Suffix      string
	Lane        string   // "": not compared
	Payload     *Payload // nil: the comment, if there is one
	Comment     string
	MintedID    base.UUID
}

// MaxComment bounds the comment of a decision (W71).
const MaxComment = 4096

// Check checks the arguments: invalid_signal, reserved_name, payload_too_large.
func (c *ApproveCommand) Check() error {
	if err := checkSignalName(c.Name); err != nil {
		return err
	}
	if err := invalidSignal("suffix", base.CheckPlain(c.Suffix, 0, maxCorrelationID)); err != nil {
		return err
	}
	if c.Payload != nil {
		if err := checkSignalPayload(c.Payload); err != nil {
			return err
		}
	}
	return invalidSignal("comment", base.CheckText(c.Comment, 0, MaxComment))
}

// Approve delivers an operator's signal. Its source is the name of the principal, so that each person counts once. Errors: principal_required,
// lane_mismatch, waitpoint_not_found, waitpoint_ambiguous, those of Check, then those of Deliver.
func (x *Execution) Approve(fx *Effects, d *Dossier, c ApproveCommand) (SignalAnswer, error) {
	if c.Principal == "" {
		return SignalAnswer{}, base.Errorf(base.CodePrincipalRequired, "an approval needs somebody who approves").
			WithHint("use a credential that has a name")
	}
	if c.Lane != "" && c.Lane != x.Class.Lane {
		return SignalAnswer{}, base.Errorf(base.CodeLaneMismatch, "the execution is in lane %q", x.Class.Lane).WithField("lane").With("lane", x.Class.Lane)
	}
	waitpoint, err := x.approved(d, &c)
	if err != nil {
		return SignalAnswer{}, err
	}
	if err := c.Check(); err != nil {
		return SignalAnswer{}, err
	}
	s := Signal{
		WaitpointID: waitpoint, Name: c.Name, Category: categoryOfApproval, SourceType: condition.SourceOperator, SourceIdentity: c.Principal,
		SourceVerified: true, Principal: c.Principal, IdempotencyKey: c.key(),
	}
	s.carry(c.payload())
	return x.accept(fx, d, s, c.MintedID)
}

// partOfKey escapes a name so that it cannot contain the separator of a key.
var partOfKey = strings.NewReplacer("%", "%25", ":", "%3A")

// key returns the idempotency key of the vote (W66). It differs for another person, another signal name or another suffix.
func (c *ApproveCommand) key() string {
	return "approval:" + partOfKey.Replace(c.Principal) + ":" + partOfKey.Replace(c.Name) + ":" + c.Suffix
}

// approved returns the waitpoint that the approval is for.
func (x *Execution) approved(d *Dossier, c *ApproveCommand) (base.UUID, error) {
	if !c.WaitpointID.IsZero() {
		if d.Waitpoint(c.WaitpointID) == nil {
			return base.UUID{}, waitpointNotFound()
		}
		return c.WaitpointID, nil
	}
	var active []base.UUID
	for _, w := range x.openWaitpoints() {
		if w.Active {
			active = append(active, w.ID)
		}
	}
	switch len(active) {
	case 0:
		if voted := x.votedAt(d, c.key()); len(voted) == 1 {
			return voted[0], nil
		}
		return base.UUID{}, base.Errorf(base.CodeWaitpointAmbiguous, "the execution waits at no waitpoint: it is %s", x.Status).WithField("waitpoint_id").
			With("active", 0).With("status", x.Status.String()).WithHint("name a pending waitpoint, or look at what has become of the execution")
	case 1:
		return active[0], nil
	default:
		return base.UUID{}, base.Errorf(base.CodeWaitpointAmbiguous, "%d waitpoints are active", len(active)).WithField("waitpoint_id").
			With("active", len(active)).WithHint("name the waitpoint")
	}
}

// votedAt lists the waitpoints of the last wait of this run at which the vote was given. An approval that is repeated because its answer was lost
// refers to the waitpoint that it has closed.
func (x *Execution) votedAt(d *Dossier, key string) (voted []base.UUID) {
	var last *Suspension
	for i := range d.Suspensions {
		if s := &d.Suspensions[i]; s.RunIndex == x.RunIndex() && (last == nil || s.Seq > last.Seq) {
			last = s
		}
	}
	if last == nil {
		return nil
	}
	for i := range d.Signals {
		s := &d.Signals[i]
		bound := slices.ContainsFunc(last.Waitpoints, func(w BoundWaitpoint) bool { return w.ID == s.WaitpointID })
		if bound && s.SourceType == condition.SourceOperator && s.IdempotencyKey == key {
			voted = append(voted, s.WaitpointID)
		}
	}
	return voted
}

// payload returns the payload that was sent, else the comment as JSON.
func (c *ApproveCommand) payload() Payload {
	switch {
	case c.Payload != nil:
		return *c.Payload
	case c.Comment != "":
		o := base.NewObject(64 + len(c.Comment))
		o.Str("comment", c.Comment)
		return Payload{ContentType: contentTypeJSON, Data: o.Done()}
	default:
		return Payload{}
	}
}
