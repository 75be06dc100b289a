package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// life is what the log tells of one execution.
type life struct {
	submitted, replayed, completed int
	epoch                          int64
	open                           bool
	expires                        time.Time // of the open lease, when it was acquired
	notBefore                      time.Time
	at                             time.Time
	suspensions                    map[string]int // how often each was ended
}

// data are the fields of events that are compared.
type data struct {
	Epoch        int64     `json:"lease_epoch"`
	Late         bool      `json:"late"`
	Cause        string    `json:"cause"`
	ExpiresAt    time.Time `json:"expires_at"`
	DelayUntil   time.Time `json:"delay_until"`
	RetryAt      time.Time `json:"retry_at"`
	SuspensionID string    `json:"suspension_id"`
}

// checkLog: each execution is submitted once and completed once in each run, its epochs grow by one, a lease is closed before the next one begins,
// a suspension is resumed once, nothing happens early, and time does not run backwards (I2, I4, I5, I6, I10, I11, I16).
func checkLog(f *Facts) (all []Finding) {
	lives := map[string]*life{}
	seen := map[string]bool{}
	for _, e := range f.Log {
		if seen[e.ID] {
			all = append(all, found("I6", e.Execution, "the event %s is in the log twice", e.ID))
		}
		seen[e.ID] = true
		if e.Execution == "" {
			continue
		}
		l := lives[e.Execution]
		if l == nil {
			l = &life{suspensions: map[string]int{}}
			lives[e.Execution] = l
		}
		if rule, text := l.step(e); text != "" {
			all = append(all, found(rule, e.Execution, "%s at %s: %s", e.Kind, e.At.Format(time.RFC3339Nano), text))
		}
	}
	for _, id := range sorted(f.Executions) {
		l, x := lives[id], f.Executions[id]
		switch {
		case l == nil:
			all = append(all, found("I6", id, "the log has nothing of it"))
		case x.Terminal() && l.completed != l.replayed+1:
			all = append(all, found("I6", id, "it has ended, with %d completions after %d replays in the log", l.completed, l.replayed))
		case x.Terminal() && l.open:
			all = append(all, found("I2", id, "it has ended, and the log has an open lease of epoch %d", l.epoch))
		}
	}
	for _, id := range sorted(lives) {
		if _, there := f.Executions[id]; !there {
			all = append(all, found("I6", id, "the log has events of it, and it does not exist"))
		}
	}
	return all
}

// step applies an event, and returns the rule that it breaks and how.
func (l *life) step(e Event) (rule, text string) {
	var d data
	if err := json.Unmarshal(e.Data, &d); err != nil && len(e.Data) > 0 {
		return "I6", err.Error()
	}
	if e.At.Before(l.at) {
		return "I6", "time runs backwards from " + l.at.Format(time.RFC3339Nano)
	}
	l.at = e.At
	if d.Epoch != 0 && !d.Late && e.Kind != "lease.acquired" {
		if !l.open || d.Epoch != l.epoch {
			return "I2", fmt.Sprintf("it closes epoch %d; the last is %d, open: %v", d.Epoch, l.epoch, l.open)
		}
		l.open = false
	}
	switch e.Kind {
	case "execution.submitted":
		l.submitted++
		l.notBefore = d.DelayUntil
	case "lease.acquired":
		return l.acquire(e, d)
	case "lease.expired":
		if d.Cause == "" && e.At.Before(l.expires) {
			return "I16", "it expired before " + l.expires.Format(time.RFC3339Nano)
		}
	case "attempt.ended":
		l.notBefore = d.RetryAt
	case "execution.resumed":
		if l.suspensions[d.SuspensionID]++; l.suspensions[d.SuspensionID] > 1 {
			return "I11", "the suspension " + d.SuspensionID + " was resumed before"
		}
	case "execution.completed":
		l.completed++
		l.notBefore = time.Time{}
	case "execution.replayed":
		l.replayed++
	}
	if l.completed > l.replayed+1 || l.submitted != 1 {
		return "I4", fmt.Sprintf("%d completions after %d replays and %d submits", l.completed, l.replayed, l.submitted)
	}
	return "", ""
}

func (l *life) acquire(e Event, d data) (rule, text string) {
	was, open := l.epoch, l.open
	l.epoch, l.open, l.expires = d.Epoch, true, d.ExpiresAt
	switch {
	case open || d.Epoch != was+1:
		return "I10", fmt.Sprintf("epoch %d after %d, open: %v", d.Epoch, was, open)
	case e.At.Before(l.notBefore):
		return "I16", "it was claimed before " + l.notBefore.Format(time.RFC3339Nano)
	case l.completed > l.replayed:
		return "I5", "it was claimed after its end"
	}
	return "", ""
}

// checkFollowers: a reader that follows a cursor through all faults has seen the log, without gaps and in its order (I6).
func checkFollowers(f *Facts) (all []Finding) {
	for _, name := range sorted(f.Followed) {
		followed := f.Followed[name]
		// Later events about workers and servers may follow what a follower saw last, and none about executions: those had ended.
		missed := slices.ContainsFunc(f.Log[min(len(followed), len(f.Log)):], func(e Event) bool { return e.Execution != "" })
		if missed || len(followed) > len(f.Log) {
			all = append(all, found("I6", "", "%s saw %d events, the log has %d", name, len(followed), len(f.Log)))
		}
		for i := range min(len(followed), len(f.Log)) {
			if followed[i] != f.Log[i].ID {
				all = append(all, found("I6", f.Log[i].Execution, "%s saw the event %s at position %d, the log has %s", name, followed[i], i, f.Log[i].ID))
				break
			}
		}
	}
	return all
}

// checkJoins: a member of a flow is claimed only after the members that it waits for have ended (I12).
func checkJoins(f *Facts) (all []Finding) {
	ended := map[string]bool{}
	for _, e := range f.Log {
		switch e.Kind {
		case "execution.completed":
			ended[e.Execution] = true
		case "lease.acquired":
			for _, upstream := range f.Upstream[e.Execution] {
				if !ended[upstream] {
					all = append(all, found("I12", e.Execution, "it was claimed before %s had ended", upstream))
				}
			}
		}
	}
	return all
}

// checkLeases: the lease history of an execution has contiguous epochs, different leases, and intervals that do not overlap (I2, I10).
func checkLeases(f *Facts) (all []Finding) {
	for _, id := range sorted(f.Leases) {
		seen := map[string]bool{}
		for i, l := range f.Leases[id] {
			switch {
			case i == 0:
			case l.Epoch != f.Leases[id][i-1].Epoch+1:
				all = append(all, found("I10", id, "epoch %d follows %d", l.Epoch, f.Leases[id][i-1].Epoch))
			case f.Leases[id][i-1].Expired.IsZero() || l.Acquired.Before(f.Leases[id][i-1].Expired):
				all = append(all, found("I2", id, "the lease of epoch %d was acquired at %s, before the last one ended at %s",
					l.Epoch, l.Acquired.Format(time.RFC3339Nano), f.Leases[id][i-1].Expired.Format(time.RFC3339Nano)))
			}
			if seen[l.ID] {
				all = append(all, found("I2", id, "two epochs have the lease %s", l.ID))
			}
			seen[l.ID] = true
		}
	}
	return all
}

// checkFences: a command is not accepted when a claim with a higher epoch was acknowledged before its first try (I3).
func checkFences(f *Facts) (all []Finding) {
	type command struct{ execution, lease, name, key string }
	first := map[command]int64{} // a repeat may get the answer that is recorded for its first try
	claims := map[string][]Call{}
	for _, c := range f.Calls {
		if c.Name == Claim {
			claims[c.Execution] = append(claims[c.Execution], c)
		}
		if at := (command{c.Execution, c.Lease, c.Name, c.Key}); c.Lease != "" {
			if began, known := first[at]; !known || c.Began < began {
				first[at] = c.Began
			}
		}
	}
	epochs := map[string]map[int64]string{}
	for _, id := range sorted(claims) {
		epochs[id] = map[int64]string{}
		for _, claim := range claims[id] {
			if lease, known := epochs[id][claim.Epoch]; known && lease != claim.Lease {
				all = append(all, found("I2", id, "epoch %d was granted twice, as %s and as %s", claim.Epoch, lease, claim.Lease))
			}
			epochs[id][claim.Epoch] = claim.Lease
		}
	}
	for _, c := range f.Calls {
		if c.Lease == "" || c.Outcome != Done || c.Name == Claim || c.Name == Effect {
			continue
		}
		began := first[command{c.Execution, c.Lease, c.Name, c.Key}]
		for _, claim := range claims[c.Execution] {
			if claim.Epoch > c.Epoch && claim.Ended < began {
				all = append(all, found("I3", c.Execution, "%s of epoch %d was accepted; epoch %d had been claimed before", c.Name, c.Epoch, claim.Epoch))
				break
			}
		}
	}
	return all
}
