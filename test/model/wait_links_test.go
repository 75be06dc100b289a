package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// closeCommand closes a pending waitpoint, for an operator or under a fence.
type closeCommand struct {
	C         engine.Caller
	Waitpoint base.UUID
	Fence     *core.Fence
	O         engine.Operator
}

func (c closeCommand) op() string { return "close_waitpoint" }

func (c closeCommand) onModel(m *reference) (any, error) {
	r := m.ofWaitpoint(c.Waitpoint)
	return m.operateAt(c.C, r, base.CodeWaitpointNotFound, "close_waitpoint "+c.Waitpoint.String(), c.O, nil, func(r *record, fx *core.Effects) (any, error) {
		if c.Fence != nil {
			byWorker(r, fx)
		}
		return r.x.CloseWaitpoint(fx, &r.d, core.CloseWaitpointCommand{Fence: c.Fence, WaitpointID: c.Waitpoint, Reason: c.O.Reason})
	})
}

func (c closeCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	return on.e.CloseWaitpoint(ctx, c.C, c.Waitpoint, c.Fence, c.O)
}

// tokenCommand shows the token of a waitpoint, or issues it anew.
type tokenCommand struct {
	Op        string // read_waitpoint_token, reissue_token
	C         engine.Caller
	ID        base.GivenID // of a read
	Waitpoint base.UUID
	O         engine.Operator // of a reissue
}

func (c tokenCommand) op() string { return c.Op }

func (c tokenCommand) onModel(m *reference) (any, error) {
	ring := m.signing.ring()
	var row *core.Waitpoint
	var kept any
	var err error
	if c.Op == "read_waitpoint_token" {
		_, err = m.operate(c.C, c.Op, c.ID, engine.Operator{}, nil, func(r *record, fx *core.Effects) (any, error) {
			got, err := r.x.ReadToken(fx, &r.d, c.Waitpoint, ring)
			row = &got
			return nil, err
		})
	} else {
		r := m.ofWaitpoint(c.Waitpoint)
		kept, err = m.operateAt(c.C, r, base.CodeWaitpointNotFound, c.Op+" "+c.Waitpoint.String(), c.O, nil, func(r *record, fx *core.Effects) (any, error) {
			got, err := r.x.ReissueToken(fx, &r.d, c.Waitpoint, ring)
			row = &got
			return got.ExpiresAt, err
		})
	}
	if err != nil {
		return nil, err
	}
	repeated := row == nil
	if repeated {
		again := *m.ofWaitpoint(c.Waitpoint).d.Waitpoint(c.Waitpoint)
		again.ExpiresAt = kept.(base.Time)
		row = &again
	}
	return issued{Row: string(row.Encode()), Token: m.signing.show(row.ID, row.TokenFields()).Reveal(), Repeated: repeated}, nil
}

func (c tokenCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	var got engine.Issued
	var err error
	if c.Op == "read_waitpoint_token" {
		got, err = on.e.ReadToken(ctx, c.C, c.ID, c.Waitpoint)
	} else {
		got, err = on.e.ReissueToken(ctx, c.C, c.Waitpoint, c.O)
	}
	return issued{Row: string(got.Waitpoint.Encode()), Token: got.Token.Reveal(), Repeated: got.Repeated}, err
}

// linkCommand makes a link.
type linkCommand struct {
	C   engine.Caller
	Cmd core.CreateLinkCommand
	O   engine.Operator
}

func (c linkCommand) op() string { return "create_link" }

func (c linkCommand) onModel(m *reference) (any, error) {
	cmd := c.Cmd
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	args := cmd
	args.Fence = nil
	cmd.LinkID, cmd.Keys = m.ids.next(), m.signing.ring()
	r := m.ofWaitpoint(cmd.WaitpointID)
	kept, err := m.operateAt(c.C, r, base.CodeWaitpointNotFound, "create_link "+cmd.WaitpointID.String(), c.O, args, func(r *record, fx *core.Effects) (any, error) {
		if cmd.Fence != nil {
			byWorker(r, fx)
		}
		link, err := r.x.CreateLink(fx, &r.d, cmd)
		return link.ID, err
	})
	if err != nil {
		return nil, err
	}
	return m.shownLink(kept.(base.UUID)), nil
}

func (m *reference) shownLink(id base.UUID) issued {
	r := m.ofLink(id)
	link := r.d.Link(id)
	return issued{Row: string(link.Encode()), Token: m.signing.show(id, link.TokenFields(r.d.Waitpoint(link.WaitpointID).MintedAt)).Reveal()}
}

func (c linkCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	got, err := on.e.CreateLink(ctx, c.C, c.Cmd, c.O)
	return issued{Row: string(got.Link.Encode()), Token: got.Token.Reveal()}, err
}

// readLinkCommand shows a link to an operator.
type readLinkCommand struct {
	C    engine.Caller
	Link base.UUID
}

func (c readLinkCommand) op() string { return "read_link_url" }

func (c readLinkCommand) onModel(m *reference) (any, error) {
	_, err := m.operateAt(c.C, m.ofLink(c.Link), base.CodeLinkNotFound, c.op(), engine.Operator{}, nil, func(*record, *core.Effects) (any, error) {
		_, err := m.signing.ring().ActiveKid()
		return nil, err
	})
	if err != nil {
		return nil, err
	}
	return m.shownLink(c.Link), nil
}

func (c readLinkCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	got, err := on.e.ReadLink(ctx, c.C, c.Link)
	return issued{Row: string(got.Link.Encode()), Token: got.Token.Reveal()}, err
}

// decideCommand is what somebody chose who holds a link.
type decideCommand struct {
	C     engine.Caller
	Token keyring.Token
	Cmd   core.DecideCommand
}

func (c decideCommand) op() string { return "decide" }

func (c decideCommand) onModel(m *reference) (any, error) {
	r := m.ofLink(c.Cmd.LinkID)
	var fields keyring.TokenFields
	if r != nil {
		link := r.d.Link(c.Cmd.LinkID)
		fields = link.TokenFields(r.d.Waitpoint(link.WaitpointID).MintedAt)
	}
	cmd := c.Cmd
	cmd.MintedID = m.ids.next()
	if _, err := m.signing.ring().Verify(m.now(), c.Token, fields); err != nil {
		return nil, base.Errorf(base.CodeLinkNotFound, "one answer for every cause")
	}
	return m.operate(everywhere(c.C), "decide "+cmd.LinkID.String(), r.x.ID.Given(), engine.Operator{RequestKey: c.C.RequestKey}, c.Cmd,
		func(r *record, fx *core.Effects) (any, error) {
			fx.Actor = core.Actor{Type: "approver", ID: r.d.Link(cmd.LinkID).Approver}
			return r.x.Decide(fx, &r.d, cmd)
		})
}

func (c decideCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	return on.e.Decide(ctx, c.C, c.Token, c.Cmd)
}

// revokeLinkCommand withdraws a link.
type revokeLinkCommand struct {
	C     engine.Caller
	Link  base.UUID
	Fence *core.Fence
	O     engine.Operator
}

func (c revokeLinkCommand) op() string { return "revoke_link" }

func (c revokeLinkCommand) onModel(m *reference) (any, error) {
	_, err := m.operateAt(c.C, m.ofLink(c.Link), base.CodeLinkNotFound, "revoke_link "+c.Link.String(), c.O, nil, func(r *record, fx *core.Effects) (any, error) {
		if c.Fence != nil {
			byWorker(r, fx)
		}
		_, err := r.x.RevokeLink(fx, &r.d, core.RevokeLinkCommand{Fence: c.Fence, LinkID: c.Link, By: fx.Actor.ID})
		return nil, err
	})
	return nil, err
}

func (c revokeLinkCommand) onEngine(ctx context.Context, on *subject) (any, error) {
	return nil, on.e.RevokeLink(ctx, c.C, c.Link, c.Fence, c.O)
}

// keyCommand changes the signing keys.
type keyCommand struct {
	Op      string // seed key, rotate key, revoke key
	Kid     string
	Secret  *string
	GraceMS *base.Millis
	Force   bool
}

func (c keyCommand) op() string { return c.Op }

// secretOf is the secret that belongs to a kid in these tests.
func secretOf(kid string) string {
	sum := sha256.Sum256([]byte("secret of " + kid))
	return hex.EncodeToString(sum[:])
}

func seedOf(kid string) keyring.SeedCommand {
	seed, err := keyring.NewSeed(kid, secretOf(kid))
	if err != nil {
		panic(err)
	}
	return seed
}

// keyed is the answer to a change of the keys: what is said of it, and how they stand.
type keyed struct {
	Outcome any
	Keys    keyring.KeyList
}

func (c keyCommand) onModel(m *reference) (any, error) {
	fx, before := m.effects(operator), m.signing.set
	answer, err := c.change(fx, &m.signing.set)
	if err != nil {
		return nil, err
	}
	m.signing.arm(before)
	return keyed{answer, m.signing.set.List(m.now(), true)}, nil
}

func (c keyCommand) change(fx *core.Effects, set *keyring.KeySet) (any, error) {
	switch c.Op {
	case "seed key":
		return set.Seed(fx, keyring.Sealing{}, seedOf(c.Kid))
	case "revoke key":
		return set.Revoke(fx, c.Kid, c.Force)
	default:
		rotation, err := keyring.NewRotation(c.Kid, c.Secret, c.GraceMS, [32]byte{1})
		if err != nil {
			return nil, err
		}
		return set.Rotate(fx, keyring.Sealing{}, rotation)
	}
}

func (c keyCommand) onEngine(ctx context.Context, on *subject) (answer any, err error) {
	switch c.Op {
	case "seed key":
		answer, err = on.e.SeedSigningKey(ctx, operator, c.Kid, secretOf(c.Kid), engine.AdminAction{})
	case "revoke key":
		answer, err = on.e.RevokeSigningKey(ctx, operator, c.Kid, c.Force, engine.AdminAction{})
	default:
		answer, err = on.e.RotateSigningKey(ctx, operator, engine.Rotation{Kid: c.Kid, SecretHex: c.Secret, GraceMS: c.GraceMS}, engine.AdminAction{})
	}
	if err != nil {
		return nil, err
	}
	list, err := on.e.SigningKeys(ctx, true)
	return keyed{answer, list}, err
}
