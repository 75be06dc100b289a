package txn

import (
	"context"
	"slices"

	"github.com/flowfabric/flowfabric/internal/store"
)

// ruleChanger is a command that may change what admission requires of many executions.
type ruleChanger interface {
	Command
	ChangesRules() bool
}

// ChangesRules reports whether the record is a rule.
func (a *AdminCommand) ChangesRules() bool { return a.Ref.Kind.Rule() }

// awaitClaims locks all lanes exclusively if a command of the batch changes a rule. Claims lock their lanes for sharing, so those under way end
// first, and later ones see the change. The rule thus takes effect with its commit (S36, B7).
func (u *Tx) awaitClaims(ctx context.Context, batch []*Request) error {
	if !slices.ContainsFunc(batch, func(r *Request) bool {
		changer, ok := r.Command.(ruleChanger)
		return ok && changer.ChangesRules()
	}) {
		return nil
	}
	var want store.Want
	for _, lane := range u.Dict.Lanes {
		want.LockLanes = append(want.LockLanes, lane.ID)
	}
	slices.Sort(want.LockLanes)
	u.Changes.Dictionary = u.Dict.Version // checked by the commit: no lane was added since
	return u.Load(ctx, want)
}
