package flowfabric

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/calls"
	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// Ask asks people for a decision and hands the work back until there is one: until Quorum different people have approved or,
// unless NoVeto is set, one has rejected. It makes a link for each of the Approvers and passes them to Notify; operators can
// decide as well, at the console or by Operate.Approve. A person who decides in several ways counts once.
//
// Parking returns ErrParked, which the handler returns; when the handler is called again, Ask returns the decision. If an
// operator resumed the work without a decision, Ask returns ErrNoSignal. The Key also names the wait, see Suspend.
//
// Codes: those of Suspend, NewWaitpoint, NewLink and Step, and what Notify returns.
func (t *Task) Ask(ctx context.Context, a Approval) (Decision, error) {
	switch {
	case a.Key == "":
		return Decision{}, calls.Refuse(base.CodeInvalidArgument, "the question has no key").At("Key", "name it, so that it is known when the handler runs again")
	case a.Quorum < 0:
		return Decision{}, calls.Refuse(base.CodeInvalidArgument, "a quorum of %d", a.Quorum).At("Quorum", "say how many must approve")
	}
	a.Quorum = max(a.Quorum, 1)
	wait := t.waits.next(a.Key)
	w, err := t.newWaitpoint(ctx, api.NewWaitpoint{Key: a.Key, ExpiresIn: waitpointLife, IdempotencyKey: "ask:" + wait})
	if err != nil {
		return Decision{}, err
	}
	if err := t.askAll(ctx, wait, w, a); err != nil {
		return Decision{}, err
	}
	resume, err := t.suspend(ctx, Suspension{
		Key: wait, Waitpoints: []Binding{ExistingWaitpoint(w)}, Until: a.until(), ReasonCode: WaitingForApproval, Timeout: a.Timeout, OnTimeout: a.OnTimeout,
	})
	if err != nil {
		return Decision{}, err
	}
	if err := t.fetchOmitted(ctx, &resume, func(s *SignalRecord) bool { return s.Name == calls.SignalApproved || s.Name == calls.SignalRejected }); err != nil {
		return Decision{}, err
	}
	return a.decision(resume)
}

// until returns the condition of the wait (W66).
func (a *Approval) until() Condition {
	enough := CountOf(a.Quorum, DistinctSources, a.Key)
	enough.Name, enough.SourceTypes = calls.SignalApproved, []string{condition.SourceOperator, condition.SourceApprover}
	if a.NoVeto {
		return enough
	}
	return AnyOf(enough, OnSignal(a.Key, calls.SignalRejected))
}

// askAll makes the links and passes them to Notify, as one step. Their addresses are not stored: a second run of the step makes
// the same links under the same request keys and so gets them again.
func (t *Task) askAll(ctx context.Context, wait string, w *Waitpoint, a Approval) error {
	if len(a.Approvers) == 0 && a.Notify == nil {
		return nil
	}
	_, err := Step(ctx, t, t.ofThisRun(wait, "links"), func(ctx context.Context) ([]string, error) {
		links := make([]ApprovalLink, len(a.Approvers))
		ids := make([]string, len(links))
		for i := range links {
			var err error
			if links[i], err = t.NewLink(ctx, w, a.link(t, wait, i)); err != nil {
				return nil, err
			}
			ids[i] = links[i].ID
		}
		if a.Notify == nil {
			return ids, nil
		}
		return ids, a.Notify(ctx, links)
	})
	return err
}

// link returns the options of the link for one approver.
func (a *Approval) link(t *Task, wait string, i int) ops.LinkOptions {
	l := ops.LinkOptions{Approver: a.Approvers[i], Title: a.Title, Message: a.Message, CommentRequired: a.CommentRequired, ExpiresIn: a.LinkExpiry}
	if l.ExpiresIn == 0 {
		// The links expire when the question ends. That moment is not known here: the timeout counts from the suspend, which may
		// come much later if Notify fails, and an escalation removes it.
		l.ExpiresIn = duration(base.MaxLinkExpiry)
	}
	// If the handler was changed meanwhile and asks something else, that is a different link.
	l.RequestKey = t.EffectKey(strings.Join([]string{
		"link", wait, strconv.Itoa(i), l.Approver, l.Title, l.Message, strconv.FormatBool(l.CommentRequired), l.ExpiresIn.String(),
	}, "\x00"))
	return l
}

// decision evaluates the signals. A rejection before the work waits is a veto too, even if enough people have approved meanwhile.
func (a *Approval) decision(r Resume) (Decision, error) {
	d := Decision{Resume: r, TimedOut: r.Cause == causeTimeout}
	rejected := named(r.Signals, calls.SignalRejected, func(*SignalRecord) bool { return !a.NoVeto })
	approved := named(r.Signals, calls.SignalApproved, func(s *SignalRecord) bool {
		return s.SourceType == condition.SourceOperator || s.SourceType == condition.SourceApprover
	})
	d.By, d.Comment = people(approved)
	switch {
	case d.TimedOut:
		return d, nil
	case len(rejected) > 0:
		d.By, d.Comment = people(rejected)
		return d, nil
	case len(d.By) >= a.Quorum:
		d.Approved = true
		return d, nil
	default:
		return d, endedWithout(a.Key, r)
	}
}

// causeTimeout is the cause of a wait that ended at its timeout.
const causeTimeout = base.CauseTimeout

func named(signals []SignalRecord, name string, counts func(*SignalRecord) bool) (found []*SignalRecord) {
	for i := range signals {
		if s := &signals[i]; s.Name == name && counts(s) {
			found = append(found, s)
		}
	}
	return found
}

// people returns who sent the signals, without duplicates, and the last comment among them. A sender without a name is identified
// by the source of the signal.
func people(signals []*SignalRecord) (by []string, comment string) {
	for _, s := range signals {
		who := s.SourceIdentity
		if who == "" {
			who = s.SourceType
		}
		if !slices.Contains(by, who) {
			by = append(by, who)
		}
		if said := wire.CommentIn(s.Payload.Data); said != "" {
			comment = said
		}
	}
	return by, comment
}
