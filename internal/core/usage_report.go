package core

import (
	"crypto/sha256"
	"encoding/json"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// UsageCommand is the command report_usage (B19).
type UsageCommand struct {
	Fence        Fence
	Usage        map[string]int64
	DedupKey     string // "": none
	AlreadySpent bool
	Known        *UsageReceipt // the receipt stored under the dedup key; nil: none
}

// Check checks the arguments: invalid_usage, reserved_dimension.
func (c *UsageCommand) Check() error { return checkReported(c.Usage, c.DedupKey) }

// ReportUsage books what the holder of the lease uses, or reports that it may not use it (B19..B23). The receipt must be stored under the dedup
// key; nil means that nothing needs to be stored. A refused breach is an outcome and not an error: it is counted and may trigger an action. Errors:
// those of Check, those of the fence, idempotency_conflict, amount_out_of_range, corruption of a budget.
func (x *Execution) ReportUsage(fx *Effects, c UsageCommand) (UsageOutcome, *UsageReceipt, error) {
	if err := c.Check(); err != nil {
		return UsageOutcome{}, nil, err
	}
	late, err := x.CheckKeep(fx, c.Fence)
	if err != nil {
		return UsageOutcome{}, nil, err
	}
	fingerprint := usageFingerprint(c.Usage, c.AlreadySpent, base.ID{})
	if known, err := c.Known.repeated(fx.Now, fingerprint); known != nil || err != nil {
		return valueOr(known), nil, err
	}
	if err := x.checkMeters(c.Usage); err != nil {
		return UsageOutcome{}, nil, err
	}
	l := bill{books: fx.Books, x: x, accounts: x.accounts(late), usage: c.Usage}
	outcome, err := l.settle(fx, c.AlreadySpent, !late)
	if err != nil {
		return UsageOutcome{}, nil, err
	}
	if outcome.Applied && outcome.Action == ActionNone {
		x.LastMutationAt = fx.Now
	}
	return outcome, receiptOf(fx.Now, 0, c.DedupKey, fingerprint, outcome), nil
}

// settle books the bill or refuses all of it (B20, B21), and carries out the action of a breach. act reports whether it may affect the reporter.
func (l *bill) settle(fx *Effects, spent, act bool) (UsageOutcome, error) {
	if err := l.missing(l.x != nil && !act); err != nil {
		return UsageOutcome{}, err
	}
	if err := l.check(fx); err != nil {
		return UsageOutcome{}, err
	}
	outcome := UsageOutcome{Outcome: UsageOK, Applied: true, Action: ActionNone}
	if len(l.breaches) > 0 && !spent {
		outcome.Applied = false
	} else {
		l.breaches = nil
		l.book(fx)
		if l.x != nil {
			l.x.meter(l.usage)
		}
		outcome.breached(UsageSoftBreach, l.soft)
	}
	outcome.Remaining = l.remaining()
	outcome.breached(UsageHardBreach, l.breaches)
	outcome.Action = l.breach(fx, act)
	return outcome, nil
}

// Remaining returns what the holder of the lease may still report of each dimension with a hard limit, by budget.
func (b *Books) Remaining(x *Execution) map[base.UUID]map[string]int64 {
	if x.Reservation == nil {
		return nil
	}
	l := bill{books: b}
	for i := range x.Reservation.Holds {
		l.accounts = append(l.accounts, account{x.Reservation.Holds[i].Budget, x.Reservation.Holds[i].Remaining})
	}
	return l.remaining()
}

// ChargeDedupTime is how long the dedup key of a charge is kept (B26).
const ChargeDedupTime = 7 * base.Day

// UsageReceipt is what is stored of usage that was booked under a dedup key (B26).
type UsageReceipt struct {
	Fingerprint []byte       `json:"fingerprint"`
	Outcome     UsageOutcome `json:"outcome"`
	At          base.Time    `json:"at"`
	ExpiresAt   base.Time    `json:"expires_at,omitzero"` // absent: with the execution
}

// Encode encodes the receipt for the store.
func (r *UsageReceipt) Encode() []byte {
	text, _ := json.Marshal(r)
	return text
}

// DecodeUsageReceipt reads what Encode wrote; corruption.
func DecodeUsageReceipt(text []byte) (*UsageReceipt, error) {
	var r UsageReceipt
	if err := decodeWait("receipt of usage", text, &r); err != nil {
		return nil, err
	}
	known := slices.Contains([]string{UsageOK, UsageSoftBreach, UsageHardBreach}, r.Outcome.Outcome)
	return &r, sound("receipt of usage", known && r.Outcome.Applied && len(r.Fingerprint) == sha256.Size)
}

// Expired reports whether the receipt is no longer valid, even if its row still exists.
func (r *UsageReceipt) Expired(now base.Time) bool { return r.ExpiresAt.Reached(now) }

// repeated returns the answer to usage that was booked before: equal arguments get the same outcome, others an idempotency_conflict; nil if nothing
// was booked under the key.
func (r *UsageReceipt) repeated(now base.Time, fingerprint []byte) (*UsageOutcome, error) {
	if r == nil || r.Expired(now) {
		return nil, nil
	}
	if string(r.Fingerprint) != string(fingerprint) {
		return nil, base.Errorf(base.CodeIdempotencyConflict, "the dedup key was used for another usage").WithField("dedup_key")
	}
	outcome := r.Outcome
	outcome.Repeated = true
	return &outcome, nil
}

// receiptOf returns what to store of an outcome. A refused report is not stored: it is evaluated again when it is repeated (B26).
func receiptOf(now base.Time, lasts base.Millis, key string, fingerprint []byte, outcome UsageOutcome) *UsageReceipt {
	if key == "" || !outcome.Applied {
		return nil
	}
	r := &UsageReceipt{Fingerprint: fingerprint, Outcome: outcome, At: now}
	if lasts > 0 {
		r.ExpiresAt = now.Add(lasts)
	}
	return r
}

// usageFingerprint returns the fingerprint of the arguments, without fence and key (W4).
func usageFingerprint(usage map[string]int64, spent bool, execution base.ID) []byte {
	o := base.NewObject(256)
	o.Flag("already_spent", spent)
	if !execution.IsZero() {
		o.Str("execution_id", execution.Full())
	}
	o.Raw("usage", amountsText(usage))
	digest := sha256.Sum256(o.Done())
	return digest[:]
}
