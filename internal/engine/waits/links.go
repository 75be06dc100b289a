package waits

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
)

// CreateLink makes a link (W68), for an operator or, with cmd.Fence, for the holder of the lease.
func (e *Waits) CreateLink(ctx context.Context, c txn.Caller, cmd core.CreateLinkCommand, op txn.Operator) (IssuedLink, error) {
	if err := cmd.Check(); err != nil {
		return IssuedLink{}, err
	}
	var answer IssuedLink
	var recorded base.UUID
	args := cmd
	args.Fence = nil
	cmd.LinkID = e.Mint()
	err := e.operateAt(ctx, c, waitpointAtRef(cmd.WaitpointID), noWaitpoint(), admin.Operation{
		Name: "create_link", Op: op, Args: args, Answer: &recorded, Held: cmd.Fence,
		Act: func(u *txn.Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			if cmd.Fence != nil {
				c.AsWorker(x, fx)
			}
			d, ring, err := waitsOf(u, x)
			if err != nil {
				return false, err
			}
			command := cmd
			command.Keys = ring
			link, err := x.CreateLink(fx, d, command)
			if err != nil {
				return false, err
			}
			recorded = link.ID
			answer = issuedLink(ring, d, link)
			return true, nil
		},
		Repeat: func(u *txn.Tx, x *core.Execution) (err error) {
			answer, err = linkAgain(u, x, recorded)
			return err
		},
		Audited: func(*txn.Tx, *core.Execution) admin.AuditedChange {
			return admin.AuditedChange{Entity: "approval_link", ID: recorded.String(), After: map[string]any{
				"waitpoint_id": answer.WaitpointID, "approver": answer.Approver, "expires_at": answer.ExpiresAt,
			}}
		},
	})
	return txn.Answered(&answer, err)
}

func issuedLink(ring *keyring.Ring, d *core.WaitState, link core.Link) IssuedLink {
	answer := IssuedLink{Link: link}
	if w := d.Waitpoint(link.WaitpointID); w != nil {
		answer.Token = tokenFor(ring, link.TokenFields(w.MintedAt))
	}
	return answer
}

// linkAgain shows a link to whom it was shown before.
func linkAgain(u *txn.Tx, x *core.Execution, id base.UUID) (IssuedLink, error) {
	d, ring, err := waitsOf(u, x)
	if err != nil {
		return IssuedLink{}, err
	}
	link := d.Link(id)
	if link == nil {
		return IssuedLink{}, noLink()
	}
	return issuedLink(ring, d, *link), nil
}

// ReadLink shows a link with its token to an operator, and audits that (W68).
func (e *Waits) ReadLink(ctx context.Context, c txn.Caller, link base.UUID) (IssuedLink, error) {
	var answer IssuedLink
	err := e.operateAt(ctx, c, linkAtRef(link), noLink(), admin.Operation{
		Name: "read_link_url", Shows: true,
		Act: func(u *txn.Tx, x *core.Execution, _ *core.Effects) (_ bool, err error) {
			ring, err := admin.Ring(u)
			if err != nil {
				return false, err
			}
			if _, err := ring.ActiveKid(); err != nil {
				return false, err
			}
			answer, err = linkAgain(u, x, link)
			return false, err
		},
		Audited: func(*txn.Tx, *core.Execution) admin.AuditedChange {
			return admin.AuditedChange{Entity: "approval_link", ID: link.String()}
		},
	})
	return txn.Answered(&answer, err)
}

// RevokeLink withdraws a link (W74).
func (e *Waits) RevokeLink(ctx context.Context, c txn.Caller, link base.UUID, f *core.Fence, op txn.Operator) error {
	return e.operateAt(ctx, c, linkAtRef(link), noLink(), admin.Operation{
		Name: "revoke_link", Op: op, Held: f,
		Act: func(u *txn.Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			if f != nil {
				c.AsWorker(x, fx)
			}
			d, _, err := waitsOf(u, x)
			if err != nil {
				return false, err
			}
			already, err := x.RevokeLink(fx, d, core.RevokeLinkCommand{Fence: f, LinkID: link, By: fx.Actor.ID})
			return !already, err
		},
		Audited: func(*txn.Tx, *core.Execution) admin.AuditedChange {
			return admin.AuditedChange{
				Entity: "approval_link", ID: link.String(),
				Before: map[string]string{"state": core.LinkOpen}, After: map[string]string{"state": core.LinkRevoked},
			}
		},
	})
}
