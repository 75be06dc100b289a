package engine

import (
	"context"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/flows"
	"github.com/flowfabric/flowfabric/internal/engine/inspect"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/work"
	"github.com/flowfabric/flowfabric/internal/store"
)

// WithHooks returns a context that carries the hooks.
func WithHooks(ctx context.Context, h Hooks) context.Context { return txn.WithHooks(ctx, h) }

// HooksOf finds the hooks in a context; zero ones if it carries none.
func HooksOf(ctx context.Context) Hooks { return txn.HooksOf(ctx) }

// OrderNamed returns the order of lists of that name, "" the newest first; not ok if there is none.
func OrderNamed(name string) (order store.Order, ok bool) { return work.OrderNamed(name) }

// DefaultBounds are good for production.
func DefaultBounds() Bounds { return inspect.DefaultBounds() }

// SubmitInTx leaves a submission in the user's own transaction on a store whose engine runs elsewhere (U137).
func SubmitInTx(ctx context.Context, g store.ExternalTx, c Caller, limits base.Limits, tx any, s core.Submission) (answer TxAnswer, filed bool, err error) {
	return work.SubmitInTx(ctx, g, c, limits, tx, s)
}

// LeaveInTx leaves a worker's command in the user's own transaction on a store whose engine runs elsewhere.
func LeaveInTx(ctx context.Context, g store.TxOutcomes, c Caller, limits base.Limits, tx any, o TxOutcome) (TxOutcomeAnswer, error) {
	return work.LeaveInTx(ctx, g, c, limits, tx, o)
}

// SameWorkAs reports whether a submission is for the work of an execution, as a repeat under one id is (L85). known has the policy that the
// execution shows, and retryFrom says where its retry policy comes from.
func SameWorkAs(known core.Submission, retryFrom string, sub core.Submission) bool {
	return work.SameWorkAs(known, retryFrom, sub)
}

// CheckMemberCursor refuses a text that is no cursor of a list of members. Codes: invalid_cursor.
func CheckMemberCursor(cursor string) error { return flows.CheckMemberCursor(cursor) }
