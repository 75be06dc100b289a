package claims

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// RevokeRequest says how a lease is taken away (L113).
type RevokeRequest struct {
	Hold    bool     // hold the execution first, so that no other worker takes it over
	Handoff *Handoff // grant it to this worker in the same transaction; nil: to none
}

// Handoff names the worker that is to continue.
type Handoff struct {
	WorkerID     string
	InstanceID   string
	Capabilities []string
	GrantTTL     base.Millis // 0: 5 s
}

// Revoked answers revoke.
type Revoked struct {
	core.RevokeAnswer
	Grant   *Grant      `json:",omitempty"` // for the worker that it was handed to
	Refused *base.Error `json:",omitempty"` // why it could not be handed over: the lease is still taken away
}

// Revoke takes the lease away from its holder, and may promise the execution to another worker (L113).
func (e *Claims) Revoke(ctx context.Context, c txn.Caller, id base.GivenID, r RevokeRequest, op txn.Operator) (Revoked, error) {
	if err := r.Handoff.normalize(); err != nil {
		return Revoked{}, err
	}
	var answer Revoked
	o := admin.Operation{
		Name: "revoke", Op: op, Args: r, Answer: &answer,
		Act: func(_ *txn.Tx, x *core.Execution, fx *core.Effects) (_ bool, err error) {
			answer = Revoked{}
			cmd := core.RevokeCommand{By: c.Principal, Reason: op.Reason, Hold: r.Hold}
			if r.Handoff != nil {
				cmd.HandTo = r.Handoff.InstanceID
			}
			answer.RevokeAnswer, err = x.Revoke(fx, cmd)
			return answer.Outcome == "revoked", err
		},
	}
	if to := r.Handoff; to != nil {
		o.Behind, o.Docs = func(u *txn.Tx, w *store.Want, x *core.Execution) { limits.WantTaking(u, w, x) }, []store.DocRef{admin.KeySetRef, txn.WorkerRef(to.InstanceID)}
		o.After = func(u *txn.Tx, ent *txn.Row) { to.handOver(u, c, ent, &answer) }
		o.Repeat = func(u *txn.Tx, x *core.Execution) error { return to.attachKey(u, x, &answer) }
	}
	err := e.Operate(ctx, c, id, o)
	return txn.Answered(&answer, err)
}

// normalize checks the arguments and fills in the time of the grant.
func (to *Handoff) normalize() (err error) {
	if to == nil {
		return nil
	}
	txn.SetDefault(&to.GrantTTL, core.DefaultGrantTTL)
	if err := checkWorker(to.WorkerID, to.InstanceID); err != nil {
		return Under("hand_to", err)
	}
	if err := core.CheckGrantTTL(to.GrantTTL); err != nil {
		return Under("hand_to", err)
	}
	if to.Capabilities, err = core.ParseCapabilities("worker", to.Capabilities); err != nil {
		return Under("hand_to", err)
	}
	return nil
}

// Under names the object in which the argument at fault stands.
func Under(object string, err error) error {
	var refusal *base.Error
	if errors.As(err, &refusal) && refusal.Field != "" {
		refusal.Field = object + "." + refusal.Field
	}
	return err
}

// handOver promises the execution whose lease was just taken away to the worker. If that cannot be, the answer says why and nothing else
// changes.
func (to *Handoff) handOver(u *txn.Tx, c txn.Caller, ent *txn.Row, answer *Revoked) {
	if answer.Outcome != "revoked" {
		answer.Grant = to.standing(u, ent.Exec)
		return
	}
	err := u.Apply(c, ent, func(x *core.Execution, fx *core.Effects) (bool, error) {
		ring, err := signingRing(u)
		if err != nil {
			return false, err
		}
		if _, err := u.Target(c, to.WorkerID, to.InstanceID); err != nil {
			return false, err
		}
		if err := x.CheckGrant(core.Targeted{Lane: u.Lane(x), Capabilities: to.Capabilities}); err != nil {
			return false, err
		}
		if err := limits.Admit(u, x, fx, false); err != nil {
			return false, err
		}
		key, err := x.IssueGrant(fx, ring, core.GrantCommand{WorkerID: to.WorkerID, InstanceID: to.InstanceID, TTL: to.GrantTTL})
		answer.Grant = &Grant{ID: x.ID, Key: key, ExpiresAt: fx.Now.Add(to.GrantTTL)}
		return true, err
	})
	if err != nil {
		answer.Grant = nil
		answer.Refused = refusalOf(err)
	}
}

// refusalOf is the refusal that an error is.
func refusalOf(err error) *base.Error {
	var refusal *base.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	return base.Errorf(base.CodeInternal, "%w", err)
}

// standing is the grant that is out for the worker already; nil: there is none.
func (to *Handoff) standing(u *txn.Tx, x *core.Execution) *Grant {
	ring, err := admin.Ring(u)
	if err != nil || !x.GrantedTo(to.WorkerID, to.InstanceID) {
		return nil
	}
	key, ok := x.SameGrantKey(u.Now, ring)
	if !ok {
		return nil
	}
	return &Grant{ID: x.ID, Key: key, ExpiresAt: x.Grant.ExpiresAt}
}

// attachKey completes a recorded answer with the key, which is never recorded, while the grant is out.
func (to *Handoff) attachKey(u *txn.Tx, x *core.Execution, answer *Revoked) error {
	recorded := answer.Grant
	answer.Grant = nil
	if now := to.standing(u, x); recorded != nil && now != nil && now.ExpiresAt == recorded.ExpiresAt {
		answer.Grant = now
	}
	return nil
}
