package core

import (
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

// Bounds and defaults of links (W68).
const (
	MinLinkExpiry     = base.Minute
	MaxLinkExpiry     = base.MaxLinkExpiry
	DefaultLinkExpiry = 7 * base.Day
	MaxDecisions      = 8
	MaxApprover       = 256

	maxDecisionID = 64
	maxLinkLabel  = 128
	maxLinkTitle  = 256
	maxLinkText   = 4096
)

// DefaultDecisions returns the decisions of a link that names none.
func DefaultDecisions() []Decision {
	return []Decision{
		{ID: "approve", Label: "Approve", SignalName: "approved"},
		{ID: "reject", Label: "Reject", SignalName: "rejected"},
	}
}

// defaultDecisions returns the default decisions of a link at the waitpoint: approve and reject, or those of a budget if it waits there (B29).
func (d *WaitState) defaultDecisions(waitpoint base.UUID) []Decision {
	bound := first(d.Suspensions, func(s *Suspension) bool { return s.binds(waitpoint) })
	if bound != nil && !bound.Budget.IsZero() {
		return BudgetDecisions()
	}
	return DefaultDecisions()
}

// CreateLinkCommand is the command create_link (W68). Fence is that of the lease holder, nil for an operator.
type CreateLinkCommand struct {
	Fence           *Fence
	WaitpointID     base.UUID
	Approver        string
	Decisions       []Decision   // empty: DefaultDecisions, at a budget's waitpoint BudgetDecisions
	ExpiresInMS     *base.Millis // nil: DefaultLinkExpiry
	Title           string
	Message         string
	CommentRequired bool
	LinkID          base.UUID // minted
	Keys            *keyring.Ring
}

// Check checks the arguments: invalid_argument, reserved_name.
func (c *CreateLinkCommand) Check() error {
	if err := base.RefuseText("approver", base.CheckPerson(c.Approver, MaxApprover)); err != nil {
		return err
	}
	if len(c.Decisions) > MaxDecisions {
		return base.Invalid("decisions", "%d decisions, at most %d are allowed", len(c.Decisions), MaxDecisions)
	}
	seen := map[string]bool{}
	for i, decision := range c.Decisions {
		at := base.Element("decisions", i)
		if err := decision.check(at); err != nil {
			return err
		}
		if seen[decision.ID] {
			return base.Invalid(at+".id", "is the id of another")
		}
		seen[decision.ID] = true
	}
	if ms := c.ExpiresInMS; ms != nil && (*ms < MinLinkExpiry || *ms > MaxLinkExpiry) {
		return base.Invalid("expires_in_ms", "must be in %d..%d", MinLinkExpiry, MaxLinkExpiry)
	}
	if err := base.RefuseText("title", base.CheckPlain(c.Title, 0, maxLinkTitle)); err != nil {
		return err
	}
	return base.RefuseText("message", base.CheckText(c.Message, 0, maxLinkText))
}

func (d *Decision) check(at string) error {
	if err := base.RefuseText(at+".id", base.CheckPlain(d.ID, 1, maxDecisionID)); err != nil {
		return err
	}
	if err := base.RefuseText(at+".label", base.CheckPlain(d.Label, 1, maxLinkLabel)); err != nil {
		return err
	}
	if err := base.RefuseText(at+".signal_name", base.CheckPlain(d.SignalName, 1, condition.MaxSignalName)); err != nil {
		return err
	}
	return checkReserved(at+".signal_name", d.SignalName)
}

// CreateLink makes a link for an open waitpoint; its address is made from the row. Errors: those of Check, with a fence those of the fence,
// waitpoint_not_found, waitpoint_expired, waitpoint_closed, signing_key_missing.
func (x *Execution) CreateLink(fx *Effects, d *WaitState, c CreateLinkCommand) (Link, error) {
	if err := c.Check(); err != nil {
		return Link{}, err
	}
	if err := x.checkHolder(fx, c.Fence); err != nil {
		return Link{}, err
	}
	if d.Waitpoint(c.WaitpointID) == nil {
		return Link{}, waitpointNotFound()
	}
	if end := d.waitpointEnd(c.WaitpointID); end != nil {
		return Link{}, closedError(end)
	}
	if _, err := c.Keys.ActiveKid(); err != nil {
		return Link{}, err
	}
	expires := DefaultLinkExpiry
	if c.ExpiresInMS != nil {
		expires = *c.ExpiresInMS
	}
	link := Link{
		ID: c.LinkID, WaitpointID: c.WaitpointID, ExecutionID: x.ID, Namespace: x.Class.Namespace, Approver: c.Approver,
		Decisions: c.Decisions, ExpiresAt: fx.Now.Add(expires), Title: c.Title, Message: c.Message,
		CommentRequired: c.CommentRequired, CreatedAt: fx.Now,
	}
	if len(link.Decisions) == 0 {
		link.Decisions = d.defaultDecisions(link.WaitpointID)
	}
	x.noteWait(fx, &link)
	x.emitLink(fx, "approval_link.created", &link, link.ExpiresAt, "")
	return link, nil
}

// DecideCommand is what the approver chose (W71). The caller of Decide has verified the token of the link.
type DecideCommand struct {
	LinkID   base.UUID
	Decision string
	Comment  string
	MintedID base.UUID // of the signal
}

// DecideAnswer is the recorded decision. Already reports that it was made before; then Signal is empty.
type DecideAnswer struct {
	Already bool
	End     LinkEnd
	Signal  SignalAnswer
}

// Decide records the only decision of a link and delivers its signal; if the signal is refused, the link stays undecided. Errors: link_not_found,
// link_revoked, link_expired, waitpoint_expired, waitpoint_closed, invalid_decision, signal_limit_exceeded.
func (x *Execution) Decide(fx *Effects, d *WaitState, c DecideCommand) (DecideAnswer, error) {
	link := d.Link(c.LinkID)
	if link == nil {
		return DecideAnswer{}, linkNotFound()
	}
	if end := d.linkEnd(c.LinkID); end != nil && !end.Revoked {
		return DecideAnswer{Already: true, End: *end}, nil
	}
	if err := d.CheckDecidable(fx.Now, c.LinkID); err != nil {
		return DecideAnswer{}, err
	}
	decision, err := link.choose(&c)
	if err != nil {
		return DecideAnswer{}, err
	}
	s := Signal{
		WaitpointID: link.WaitpointID, Name: decision.SignalName, Category: categoryOfApproval, SourceType: condition.SourceApprover,
		SourceIdentity: link.Approver, SourceVerified: true, Principal: link.Approver, IdempotencyKey: "link:" + link.ID.String(),
	}
	s.carry(decisionPayload(&c))
	answer, err := x.accept(fx, d, s, c.MintedID)
	if err != nil {
		return DecideAnswer{}, err
	}
	end := LinkEnd{LinkID: link.ID, Decision: c.Decision, Comment: c.Comment, SignalID: answer.SignalID, At: fx.Now}
	x.noteWait(fx, &end)
	x.emitLink(fx, "approval_link.decided", link, 0, c.Decision)
	return DecideAnswer{End: end, Signal: answer}, nil
}

// CheckDecidable returns why an undecided link cannot be decided (W73): link_revoked, link_expired, or how its waitpoint closed.
func (d *WaitState) CheckDecidable(now base.Time, id base.UUID) error {
	link := d.Link(id)
	switch end := d.linkEnd(id); {
	case link == nil:
		return linkNotFound()
	case end != nil && end.Revoked:
		return base.Errorf(base.CodeLinkRevoked, "the link was withdrawn").With("revoked_at", end.At.String())
	case link.ExpiresAt.Reached(now):
		return base.Errorf(base.CodeLinkExpired, "the link has expired").With("expires_at", link.ExpiresAt.String())
	}
	if end := d.waitpointEnd(link.WaitpointID); end != nil {
		return closedError(end)
	}
	return nil
}

func linkNotFound() *base.Error { return base.Errorf(base.CodeLinkNotFound, "there is no such link") }

// choose finds the decision: invalid_decision for one that the link does not have, or for a comment that is missing or too long.
func (l *Link) choose(c *DecideCommand) (*Decision, error) {
	decision := first(l.Decisions, func(d *Decision) bool { return d.ID == c.Decision })
	switch {
	case decision == nil:
		return nil, base.Errorf(base.CodeInvalidDecision, "the link has no such decision").WithField("decision")
	case l.CommentRequired && strings.TrimSpace(c.Comment) == "":
		return nil, base.Errorf(base.CodeInvalidDecision, "a comment is required").WithField("comment")
	}
	if why := base.CheckText(c.Comment, 0, MaxComment); why != "" {
		return nil, base.Errorf(base.CodeInvalidDecision, "%s", why).WithField("comment")
	}
	return decision, nil
}

func decisionPayload(c *DecideCommand) Payload {
	o := base.NewObject(256)
	o.Str("decision", c.Decision)
	o.StrIf("comment", c.Comment)
	o.UUID("link_id", c.LinkID)
	return Payload{ContentType: contentTypeJSON, Data: o.Done()}
}

// RevokeLinkCommand is the command revoke_link (W74). Fence is that of the lease holder, nil for an operator.
type RevokeLinkCommand struct {
	Fence  *Fence
	LinkID base.UUID
	By     string
}

// RevokeLink withdraws an undecided link. already reports that it was withdrawn before. Errors: with a fence those of the fence, link_not_found,
// link_already_decided.
func (x *Execution) RevokeLink(fx *Effects, d *WaitState, c RevokeLinkCommand) (already bool, err error) {
	if err := x.checkHolder(fx, c.Fence); err != nil {
		return false, err
	}
	link := d.Link(c.LinkID)
	switch end := d.linkEnd(c.LinkID); {
	case link == nil:
		return false, linkNotFound()
	case end != nil && end.Revoked:
		return true, nil
	case end != nil:
		return false, base.Errorf(base.CodeLinkAlreadyDecided, "the link was decided").With("decision", end.Decision).With("decided_at", end.At.String())
	}
	x.noteWait(fx, &LinkEnd{LinkID: link.ID, Revoked: true, At: fx.Now, By: c.By})
	x.emitLink(fx, "approval_link.revoked", link, 0, "")
	return false, nil
}
