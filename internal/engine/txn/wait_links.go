package txn

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

// CreateLink makes a link (W68), for an operator or, with cmd.Fence, for the holder of the lease.
func (e *Engine) CreateLink(ctx context.Context, c Caller, cmd core.CreateLinkCommand, op Operator) (IssuedLink, error) {
	if err := cmd.Check(); err != nil {
		return IssuedLink{}, err
	}
	var answer IssuedLink
	var recorded base.UUID
	args := cmd
	args.Fence = nil
	cmd.LinkID = e.Mint()
	err := e.operateAt(ctx, c, waitpointAtRef(cmd.WaitpointID), noWaitpoint(), operation{
		name: "create_link", op: op, args: args, answer: &recorded, held: cmd.Fence,
		act: func(u *Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			if cmd.Fence != nil {
				c.asWorker(x, fx)
			}
			d, ring, err := u.waitsOf(x)
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
		repeat: func(u *Tx, x *core.Execution) (err error) {
			answer, err = u.linkAgain(x, recorded)
			return err
		},
		told: func(*Tx, *core.Execution) toldChange {
			return toldChange{entity: "approval_link", id: recorded.String(), after: map[string]any{
				"waitpoint_id": answer.WaitpointID, "approver": answer.Approver, "expires_at": answer.ExpiresAt,
			}}
		},
	})
	return answered(&answer, err)
}

func issuedLink(ring *keyring.Ring, d *core.Dossier, link core.Link) IssuedLink {
	answer := IssuedLink{Link: link}
	if w := d.Waitpoint(link.WaitpointID); w != nil {
		answer.Token = tokenFor(ring, link.TokenFields(w.MintedAt))
	}
	return answer
}

// linkAgain shows a link to whom it was shown before.
func (u *Tx) linkAgain(x *core.Execution, id base.UUID) (IssuedLink, error) {
	d, ring, err := u.waitsOf(x)
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
func (e *Engine) ReadLink(ctx context.Context, c Caller, link base.UUID) (IssuedLink, error) {
	var answer IssuedLink
	err := e.operateAt(ctx, c, linkAtRef(link), noLink(), operation{
		name: "read_link_url", shows: true,
		act: func(u *Tx, x *core.Execution, _ *core.Effects) (_ bool, err error) {
			ring, err := u.ring()
			if err != nil {
				return false, err
			}
			if _, err := ring.ActiveKid(); err != nil {
				return false, err
			}
			answer, err = u.linkAgain(x, link)
			return false, err
		},
		told: func(*Tx, *core.Execution) toldChange { return toldChange{entity: "approval_link", id: link.String()} },
	})
	return answered(&answer, err)
}

// RevokeLink withdraws a link (W74).
func (e *Engine) RevokeLink(ctx context.Context, c Caller, link base.UUID, f *core.Fence, op Operator) error {
	return e.operateAt(ctx, c, linkAtRef(link), noLink(), operation{
		name: "revoke_link", op: op, held: f,
		act: func(u *Tx, x *core.Execution, fx *core.Effects) (bool, error) {
			if f != nil {
				c.asWorker(x, fx)
			}
			d, _, err := u.waitsOf(x)
			if err != nil {
				return false, err
			}
			already, err := x.RevokeLink(fx, d, core.RevokeLinkCommand{Fence: f, LinkID: link, By: fx.Actor.ID})
			return !already, err
		},
		told: func(*Tx, *core.Execution) toldChange {
			return toldChange{
				entity: "approval_link", id: link.String(),
				before: map[string]string{"state": core.LinkOpen}, after: map[string]string{"state": core.LinkRevoked},
			}
		},
	})
}
