package apifuzz

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// wait is an execution that waits, or that has a waitpoint at which it may, and a link to decide it.
type wait struct {
	execution, waitpoint, token, suspension string
	link, linkToken                         string
}

// keptWaits bounds the waits that are remembered: older ones have ended.
const keptWaits = 6

// tendWaits makes things that signals and decisions can be sent to: one execution that waits, and a waitpoint of one that runs.
func (f *fuzzer) tendWaits() {
	body := `{"worker_id":"w","worker_instance_id":"w-2","lanes":["waits"],"max":2,"lease_ttl_ms":60000}`
	for range 2 {
		f.do(wire.SubmitExecution.Operation, "", `{"kind":"job","lane":"waits"}`)
	}
	var claimed api.ClaimAnswer
	if json.Unmarshal(f.do(wire.ClaimWork.Operation, "", body).body, &claimed) != nil {
		return
	}
	taken := f.mem.leases[max(0, len(f.mem.leases)-len(claimed.Tasks)):]
	for i, held := range slices.Clone(taken) {
		call, fields := wire.SuspendExecution.Operation, `"waitpoints":[{"fresh":{"waitpoint_key":"a"}}],"resume_condition":{"type":"operator_only"},"reason_code":"waiting_for_approval"`
		if i > 0 {
			call, fields = wire.CreateWaitpoint.Operation, `"waitpoint_key":"a"`
		}
		f.addWait(held.execution, f.do(call, held.execution, `{`+fields+`,"lease":`+string(held.text)+`}`))
		if i == 0 {
			f.mem.executions[held.execution] = "suspended"
			f.mem.leases = slices.DeleteFunc(f.mem.leases, func(l lease) bool { return l.fence == held.fence })
		}
	}
}

// addWait remembers a wait, and makes a link for it.
func (f *fuzzer) addWait(execution string, a answer) {
	type issued struct {
		WaitpointID string `json:"waitpoint_id"`
		Token       string `json:"token"`
	}
	var told struct {
		issued
		Waitpoints   []issued `json:"waitpoints"`
		SuspensionID string   `json:"suspension_id"`
	}
	if json.Unmarshal(a.body, &told) != nil {
		return
	}
	made := told.issued
	if len(told.Waitpoints) > 0 {
		made = told.Waitpoints[0]
	}
	if made.Token == "" {
		return
	}
	w := wait{execution: execution, waitpoint: made.WaitpointID, token: made.Token, suspension: told.SuspensionID}
	link := f.do(wire.CreateLink.Operation, w.waitpoint, `{"approver":"ann"}`)
	w.link = textIn(link, "link_id")
	address := textIn(link, "url")
	if token, err := url.PathUnescape(address[strings.LastIndex(address, "/")+1:]); err == nil {
		w.linkToken = token
	}
	f.mem.waits = append(f.mem.waits, w)
	f.mem.waits = f.mem.waits[max(0, len(f.mem.waits)-keptWaits):]
}

// wait is one that was made, mostly a recent one; pending ones alone for what cannot be done to others.
func (m *memory) wait(d *drawer, o *operation) wait {
	fit := slices.DeleteFunc(slices.Clone(m.waits), func(w wait) bool {
		return o.id == wire.CloseWaitpoint.ID && w.suspension != "" || (o.id == wire.ResumeExecution.ID || o.id == wire.ApproveExecution.ID) && w.suspension == ""
	})
	switch n := len(fit); {
	case n == 0:
		return wait{"0198f0a0-0000-7000-8000-000000000000", d.uuid(), "k:ab", d.uuid(), d.uuid(), "k:ab"}
	case d.IntN(3) == 0:
		return pick(d.Rand, fit)
	default:
		return fit[n-1]
	}
}

// aboutWaits are the operations on executions that wait.
var aboutWaits = []string{wire.ResumeExecution.ID, wire.ApproveExecution.ID, wire.ReadWaitpointToken.ID, wire.SendExecutionSignal.ID}

// orOperator are the operations that take a lease of a worker and do as well without, for an operator.
var orOperator = []string{wire.CancelExecution.ID, wire.CloseWaitpoint.ID, wire.CreateLink.ID, wire.RevokeLink.ID, wire.ListLinks.ID}

// byToken reports whether a token is judged before anything else in a request (W33): what is wrong with the rest may not be told.
func byToken(o *operation) bool {
	return slices.ContainsFunc(wire.Operations(), func(known *wire.Operation) bool { return known.ID == o.id && known.Roles == wire.Token })
}

// ofWait draws a field that has to do with waits.
func (d *drawer) ofWait(o *operation, name string, about subject) (value, bool) {
	w := about.wait
	switch name {
	case "waitpoint_id":
		if o.id == wire.CreateWaitpoint.ID {
			return d.uuid(), true
		}
		return w.waitpoint, true
	case "suspension_id", "signal_id":
		return d.uuid(), true
	case "expected_suspension_id":
		return w.suspension, true
	case "token":
		return w.token, true
	case "waitpoints": // of a suspend
		return raw(`{"fresh":{"waitpoint_key":"a"}}`), true
	case "resume_condition":
		return raw(pick(d.Rand, []string{
			`{"type":"single"}`, `{"type":"operator_only"}`, `{"type":"any_of","members":[{"type":"single","name":"go"},{"type":"operator_only"}]}`,
			`{"type":"count","n":2,"count_kind":"distinct_sources","waitpoints":["a"]}`,
		})), true
	case "reason_code":
		return pick(d.Rand, []string{"waiting_for_signal", "waiting_for_approval", "manual_pause"}), true
	case "decision":
		return pick(d.Rand, []string{"approve", "reject"}), true
	case "source_type":
		return "external", true
	}
	return nil, false
}

// tidyWait makes a request about a wait one that the rules accept.
func (d *drawer) tidyWait(o *operation, b *object) {
	switch o.id {
	case wire.SuspendExecution.ID:
		b.set("waitpoints", raw(`[{"fresh":{"waitpoint_key":"a"}}]`))
		b.drop("timeout_at")
	case wire.CreateLink.ID:
		b.drop("decisions") // two of one id are refused
	case wire.SendSignal.ID, wire.SendExecutionSignal.ID:
		b.drop("sent_at")
	}
	if slices.Contains(orOperator, o.id) {
		b.drop("lease")
	}
}
