package flowfabric

import "github.com/flowfabric/flowfabric/internal/wire"

// The JSON of explanations (U31).

// MarshalJSON writes the explanation as the HTTP API shows it (U44).
func (e Explanation) MarshalJSON() ([]byte, error) {
	w := e.wire()
	return wire.Marshal(&w)
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (e *Explanation) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Explanation](text)
	*e = explanationFrom(w)
	return err
}

func (e *Explanation) wire() wire.Explanation {
	w := wire.Explanation{
		ExecutionID: string(e.ExecutionID), Status: string(e.Status), Reason: e.Reason, Since: wireTime(e.Since), Summary: e.Summary,
		Blockers: each(e.Blockers, Blocker.wire), NextEligibleAt: wireTime(e.NextEligibleAt), Outcome: e.Outcome,
		Workers: wire.NearWorkers{
			Live: e.Workers.Live, OnLane: e.Workers.OnLane, Matching: e.Workers.Matching, Nearest: each(e.Workers.Nearest, NearWorker.wire),
		},
		History: each(e.History, StatusChange.wire),
	}
	if e.Position != nil {
		place := wire.LinePlace(*e.Position)
		w.Position = &place
	}
	if h := e.Holder; h != nil {
		w.Holder = &wire.LeaseHolder{
			WorkerID: h.WorkerID, InstanceID: h.InstanceID, LeaseID: h.LeaseID, LeaseEpoch: h.LeaseEpoch, AcquiredAt: wireTime(h.AcquiredAt),
			RenewedAt: wireTime(h.RenewedAt), ExpiresAt: wireTime(h.ExpiresAt), AttemptIndex: h.AttemptIndex,
		}
	}
	return w
}

func explanationFrom(w *wire.Explanation) Explanation {
	e := Explanation{
		ExecutionID: ID(w.ExecutionID), Status: Status(w.Status), Reason: w.Reason, Since: w.Since.Time, Summary: w.Summary,
		Blockers: noneIfEmpty(each(w.Blockers, blockerFrom)), NextEligibleAt: w.NextEligibleAt.Time, Outcome: w.Outcome,
		Workers: NearWorkers{
			Live: w.Workers.Live, OnLane: w.Workers.OnLane, Matching: w.Workers.Matching, Nearest: noneIfEmpty(each(w.Workers.Nearest, nearFrom)),
		},
		History: noneIfEmpty(each(w.History, changeFrom)),
	}
	if w.Position != nil {
		place := LinePlace(*w.Position)
		e.Position = &place
	}
	if h := w.Holder; h != nil {
		e.Holder = &LeaseHolder{
			WorkerID: h.WorkerID, InstanceID: h.InstanceID, LeaseID: h.LeaseID, LeaseEpoch: h.LeaseEpoch, AcquiredAt: h.AcquiredAt.Time,
			RenewedAt: h.RenewedAt.Time, ExpiresAt: h.ExpiresAt.Time, AttemptIndex: h.AttemptIndex,
		}
	}
	return e
}

// MarshalJSON writes the cause as the HTTP API shows it (U31).
func (b Blocker) MarshalJSON() ([]byte, error) { return wire.Marshal(b.wire()) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (b *Blocker) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.Blocker](text)
	*b = blockerFrom(*w)
	return err
}

func (b Blocker) wire() wire.Blocker {
	return wire.Blocker{Code: b.Code, Message: b.Message, Since: wireTime(b.Since), Until: wireTime(b.Until), Data: b.Data}
}

func blockerFrom(w wire.Blocker) Blocker {
	return Blocker{Code: w.Code, Message: w.Message, Since: w.Since.Time, Until: w.Until.Time, Data: w.Data}
}

// MarshalJSON writes the worker as the HTTP API shows it (U31).
func (n NearWorker) MarshalJSON() ([]byte, error) { return wire.Marshal(n.wire()) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (n *NearWorker) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.NearWorker](text)
	*n = nearFrom(*w)
	return err
}

func (n NearWorker) wire() wire.NearWorker {
	w := wire.NearWorker(n)
	if w.Unmet == nil {
		w.Unmet = []string{}
	}
	return w
}

func nearFrom(w wire.NearWorker) NearWorker {
	w.Unmet = noneIfEmpty(w.Unmet)
	return NearWorker(w)
}

// MarshalJSON writes the change as the HTTP API shows it (U31).
func (c StatusChange) MarshalJSON() ([]byte, error) { return wire.Marshal(c.wire()) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (c *StatusChange) UnmarshalJSON(text []byte) error {
	w, err := readAnswer[wire.StatusChange](text)
	*c = changeFrom(*w)
	return err
}

func (c StatusChange) wire() wire.StatusChange {
	return wire.StatusChange{At: wireTime(c.At), Status: string(c.Status), Reason: c.Reason, Event: c.Event}
}

func changeFrom(w wire.StatusChange) StatusChange {
	return StatusChange{At: w.At.Time, Status: Status(w.Status), Reason: w.Reason, Event: w.Event}
}
