package core

import (
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// gateBlockers returns the causes in the execution itself.
func (in *ExplainInput) gateBlockers() (list []Blocker) {
	x := in.Execution
	if in.Suspended != nil {
		list = append(list, suspendedBlocker(in.Suspended))
	}
	switch x.Dependency {
	case WaitingForChildren:
		list = append(list, in.joinBlocker())
	case WaitingForSubflow:
		list = append(list, in.subflowBlocker())
	}
	if x.DelayUntil > in.Now {
		list = append(list, x.delayBlocker())
	}
	if x.Held != nil {
		list = append(list, heldBlocker(x.Held))
	}
	if x.Grant != nil {
		list = append(list, grantBlocker(x.Grant))
	}
	return list
}

// suspendedBlocker states which signals have arrived and which are missing.
func suspendedBlocker(v *SuspendedView) Blocker {
	o := base.NewObject(200)
	o.Str("reason_code", v.ReasonCode)
	o.UUID("suspension_id", v.SuspensionID)
	o.Name("waitpoints")
	o.Text = append(o.Text, '[')
	for i := range v.Waitpoints {
		if i > 0 {
			o.Text = append(o.Text, ',')
		}
		o.Text = append(o.Text, '{')
		o.UUID("waitpoint_id", v.Waitpoints[i].ID)
		o.Str("waitpoint_key", v.Waitpoints[i].Key)
		o.Shut()
	}
	o.Text = append(o.Text, ']')
	o.Name("signals")
	o.Text = append(o.Text, '[')
	var missing []string
	for i, p := range v.Progress {
		if i > 0 {
			o.Text = append(o.Text, ',')
		}
		o.Text = append(o.Text, '{')
		p.write(o)
		o.Shut()
		if p.Progress < p.Needed {
			missing = append(missing, p.text())
		}
	}
	o.Text = append(o.Text, ']')
	o.Moment("timeout_at", v.TimeoutAt)
	return Blocker{
		Code: BlockerSuspended, Message: v.message(missing), Since: v.SuspendedAt, Until: v.TimeoutAt, Data: o.Done(),
	}
}

func (v *SuspendedView) message(missing []string) string {
	text := "It is suspended"
	switch {
	case v.ReasonCode == ReasonCodeBudget:
		text += " because it has passed a limit of its budget, until somebody allows more or says no"
	case v.ReasonCode == ReasonCodeOperatorReview || len(v.Progress) == 0 && v.TimeoutAt == 0:
		text += " until an operator decides"
	case len(missing) > 0:
		text += " and waits for " + strings.Join(missing, ", ")
	}
	if v.TimeoutAt != 0 {
		return text + fmt.Sprintf("; its wait runs out at %s.", v.TimeoutAt)
	}
	return text + "."
}

// write writes how many signals of one node have arrived and how many are missing.
func (p *NodeProgress) write(o *base.JSONObject) {
	if p.Node.Matcher.Named {
		o.Str("name", p.Node.Matcher.Name)
	}
	o.Strs("waitpoint_keys", p.Node.Waitpoints)
	o.Num("present", int64(p.Progress))
	o.Num("missing", int64(max(p.Needed-p.Progress, 0)))
}

func (p *NodeProgress) text() string {
	what := "any signal"
	if p.Node.Matcher.Named {
		what = fmt.Sprintf("signal %q", p.Node.Matcher.Name)
	}
	return fmt.Sprintf("%s at waitpoint %s (%d of %d)", what, strings.Join(p.Node.Waitpoints, ", "), p.Progress, p.Needed)
}

// retrySaid are the origins of a retry policy for readers.
var retrySaid = map[string]string{
	"submission": "as its submission says", "worker": "as the default of its worker says", "lane": "as the default of its lane says", "default": "by default",
}

func (x *Execution) delayBlocker() Blocker {
	o := base.NewObject(80)
	o.Str("reason", x.DelayReason.String())
	text := fmt.Sprintf("It is delayed until %s.", x.DelayUntil)
	switch x.DelayReason {
	case WaitingForRetryBackoff:
		o.Num("retry", int64(x.RetryCount))
		text = fmt.Sprintf("It failed and is tried again at %s: retry %d.", x.DelayUntil, x.RetryCount)
		if retry, from := x.Retry(); retry != nil {
			o.Num("max_retries", int64(retry.MaxRetries))
			o.Str("retry_origin", from)
			text = fmt.Sprintf("It failed and is tried again at %s: retry %d of at most %d, %s.", x.DelayUntil, x.RetryCount, retry.MaxRetries, retrySaid[from])
			if len(retry.ByCategory) > 0 {
				text = fmt.Sprintf("It failed and is tried again at %s: retry %d, counted by category, %s.", x.DelayUntil, x.RetryCount, retrySaid[from])
			}
		}
	case WaitingForResumeDelay:
		text = fmt.Sprintf("It goes on after a delay until %s.", x.DelayUntil)
	}
	b := Blocker{Code: BlockerDelay, Message: text, Until: x.DelayUntil, Data: o.Done()}
	if x.Status == Delayed {
		b.Since = x.StatusSince
	}
	return b
}

func heldBlocker(h *Hold) Blocker {
	o := base.NewObject(80)
	o.Str("by", h.By)
	o.StrIf("reason", h.Reason)
	text := fmt.Sprintf("%s holds it back since %s", h.By, h.At)
	if h.Reason != "" {
		text += ": " + h.Reason
	}
	return Blocker{Code: BlockerOperatorHold, Message: text + ".", Since: h.At, Data: o.Done()}
}

func grantBlocker(g *Grant) Blocker {
	o := base.NewObject(120)
	o.Str("worker_id", g.WorkerID)
	o.Str("worker_instance_id", g.InstanceID)
	return Blocker{
		Code:    BlockerGrant,
		Message: fmt.Sprintf("It is granted to worker %s, instance %s, who may claim it until %s.", g.WorkerID, g.InstanceID, g.ExpiresAt),
		Since:   g.IssuedAt, Until: g.ExpiresAt, Data: o.Done(),
	}
}
