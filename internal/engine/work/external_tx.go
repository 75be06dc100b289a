package work

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// SubmitInTx leaves a submission in the user's own transaction on a store whose engine runs elsewhere (U137), with the same checks on what the
// transaction sees. The submission must have an id.
//
// filed reports that key or id belong to an execution that an engine has filed already: only that engine can return it.
func SubmitInTx(ctx context.Context, g store.ExternalTx, c txn.Caller, limits base.Limits, tx any, s core.Submission) (answer TxAnswer, filed bool, err error) {
	cmd := &Submit{caller: c, ID: s.ID.ID()}
	var seen store.Glance
	var settings core.NamespaceSettings
	err = checkArguments(c, &s, func() (core.NamespaceSettings, error) {
		if seen, err = g.Glance(ctx, tx, s.Lane, admin.NamespaceRef(s.Namespace)); err != nil {
			return core.NamespaceSettings{}, txn.PublicFault(err)
		}
		space, err := admin.DecodeNamespace(seen.Doc)
		if space == nil || err != nil {
			return core.NamespaceSettings{}, err
		}
		settings = space.NamespaceSettings
		return settings, nil
	})
	if err != nil {
		return TxAnswer{}, false, err
	}
	if cmd.S = s; s.IdempotencyKey != "" {
		cmd.fingerprint = s.Fingerprint()
	}
	if err := cmd.noBudgets(); err != nil {
		return TxAnswer{}, false, err
	}
	if err := cmd.S.CheckTimes(seen.Now); err != nil {
		return TxAnswer{}, false, err
	}
	refusal := cmp.Or(limits.CheckPayload("input", s.Input.Size), refusedBy(seen.Lane, s.Lane))
	if unknown, err := cmd.referInTx(ctx, g, tx, settings.DefaultQuotas); err != nil {
		return TxAnswer{}, false, err
	} else if refusal == nil {
		refusal = cmp.Or(unknown, settings.CheckInput(s.Input.Size))
	}
	row := store.InboxRow{ID: cmd.ID}
	if refusal == nil {
		if row.Body, err = cmd.inboxBody(); err != nil {
			return TxAnswer{}, false, err
		}
	} // else whether it is a duplicate must be known first (L80)
	existing, err := g.SubmitTx(ctx, tx, cmd.keyRow(seen.Now), row)
	switch {
	case err != nil:
		return TxAnswer{}, false, txn.PublicFault(err)
	case existing != nil:
		return duplicateInTx(cmd, existing, &seen)
	case refusal != nil:
		return TxAnswer{}, false, refusal
	}
	return txAnswer("created", cmd.ID, seenView(cmd, &seen)), false, nil
}

// referInTx finds what the policy names in what the transaction sees, and says what does not exist.
func (s *Submit) referInTx(ctx context.Context, g store.ExternalTx, tx any, defaults []core.QuotaUse) (refusal, err error) {
	read := func(ctx context.Context, refs ...store.DocRef) (map[store.DocRef]store.Doc, error) {
		docs := map[store.DocRef]store.Doc{}
		for _, ref := range refs {
			seen, err := g.Glance(ctx, tx, s.S.Lane, ref)
			if err != nil {
				return nil, txn.PublicFault(err)
			}
			if seen.Doc != nil {
				docs[ref] = *seen.Doc
			}
		}
		return docs, nil
	}
	var quotas []store.DocRef
	for _, use := range slices.Concat(s.S.Policy.Quotas, defaults) {
		quotas = append(quotas, limits.QuotaRef(use.Quota))
	}
	docs, err := read(ctx, quotas...)
	if err != nil {
		return nil, err
	}
	known := limits.ParseRules(slices.Collect(maps.Values(docs)))
	if err := s.refer(ctx, known, defaults, read); err != nil {
		return nil, err
	}
	return s.Refs.Resolve(known, s.S.Namespace), nil
}

// refusedBy is the refusal of a lane that takes no submissions. One that does not exist yet takes all.
func refusedBy(settings *core.LaneSettings, name string) error {
	if settings == nil || settings.State.Accepting() {
		return nil
	}
	return laneNotAccepting(&core.Lane{Name: name, Settings: *settings})
}

// duplicateInTx answers a submission whose key or id exists already (L83, L85).
func duplicateInTx(cmd *Submit, found *store.Existing, seen *store.Glance) (TxAnswer, bool, error) {
	byKey := found.Key != (store.Key{})
	switch {
	case byKey && !bytes.Equal(found.Fingerprint, cmd.fingerprint):
		return TxAnswer{}, false, keyConflict(found.ID)
	case found.Body == nil:
		return txAnswer("duplicate", found.ID, txn.View{}), true, nil
	}
	waiting := &Submit{ID: found.ID}
	if err := waiting.readBody(found.Body); err != nil {
		return TxAnswer{}, false, txn.Corrupt("inbox", err)
	}
	view := seenView(waiting, seen)
	if !byKey && !cmd.sameAs(view.Execution) {
		return TxAnswer{}, false, IDConflict()
	}
	return txAnswer("duplicate", found.ID, view), false, nil
}

// seenView is the execution that a submission makes if it is filed now.
func seenView(cmd *Submit, seen *store.Glance) txn.View {
	class := cmd.Refs.Class(&cmd.S)
	if seen.Lane != nil {
		cmd.S.LaneRetry = seen.Lane.Retry
	}
	x := core.NewExecution(&core.Effects{Now: seen.Now}, &cmd.S, cmd.ID, &class)
	view := txn.View{Execution: settled(x, seen.Now), Lane: core.LaneActive}
	if seen.Lane != nil {
		view.Lane = seen.Lane.State
	}
	return view
}

// SameWorkAs reports whether a submission is for the work of an execution, as a repeat under one id is (L85). known has the policy that the
// execution shows, and retryFrom says where its retry policy comes from: what is a default there was not in its submission.
func SameWorkAs(known core.Submission, retryFrom string, sub core.Submission) bool {
	if known.Normalize(AnySize) != nil || sub.Normalize(AnySize) != nil {
		return false
	}
	known.Policy = known.Policy.ShownAs(retryFrom)
	sub.Policy = sub.Policy.Filled()
	return bytes.Equal(known.Fingerprint(), sub.Fingerprint())
}
