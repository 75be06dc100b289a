package core

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
)

// Bounds and default of a quota's settings (S36).
const (
	maxQuotaLimit      = 1_000_000
	minQuotaWindow     = base.Second
	maxQuotaWindow     = base.Day
	defaultQuotaWindow = base.Minute
)

// QuotaSettings are the settings of put_quota (S36). 0 turns a limit off.
type QuotaSettings struct {
	RateLimit        int         `json:"rate_limit"`
	WindowMS         base.Millis `json:"window_ms"` // 0: a minute, filled in by Normalize
	ConcurrencyLimit int         `json:"concurrency_limit"`
	PerKey           bool        `json:"per_key"`
}

// Quota is a named limit on how often executions start and how many run at a time (S36).
type Quota struct {
	ID        string        `json:"quota_id"`
	Settings  QuotaSettings `json:"settings"`
	Revision  int64         `json:"revision"`
	CreatedAt base.Time     `json:"created_at"`
	UpdatedAt base.Time     `json:"updated_at"`
}

// CheckQuotaID requires 1..128 of `[A-Za-z0-9][A-Za-z0-9_.:-]*`, else invalid_argument.
func CheckQuotaID(text string) error { return base.RefuseText("quota_id", base.CheckNameText(text)) }

// Normalize fills in the default of S36 and checks every setting: invalid_argument with the setting's name.
func (s *QuotaSettings) Normalize() error {
	if s.WindowMS == 0 {
		s.WindowMS = defaultQuotaWindow
	}
	return s.Check()
}

// Check checks the bounds of S36: invalid_argument with the setting's name.
func (s QuotaSettings) Check() error {
	switch {
	case s.RateLimit < 0 || s.RateLimit > maxQuotaLimit:
		return base.Invalid("rate_limit", "must be in 0..%d", maxQuotaLimit)
	case s.WindowMS < minQuotaWindow || s.WindowMS > maxQuotaWindow:
		return base.Invalid("window_ms", "must be in %d..%d", minQuotaWindow, maxQuotaWindow)
	case s.ConcurrencyLimit < 0 || s.ConcurrencyLimit > maxQuotaLimit:
		return base.Invalid("concurrency_limit", "must be in 0..%d", maxQuotaLimit)
	default:
		return nil
	}
}

// NewQuota returns a quota that does not exist yet: its first Change creates it.
func NewQuota(id string, now base.Time) *Quota {
	return &Quota{ID: id, CreatedAt: now}
}

// Change sets new settings, which must be normalized, and emits quota.changed. Equal settings change nothing.
func (q *Quota) Change(fx *Effects, s QuotaSettings) (changed bool) {
	if q.Settings == s {
		return false
	}
	q.emit(fx, &s)
	q.Settings = s
	q.Revision++
	q.UpdatedAt = fx.Now
	return true
}

// Delete emits quota.changed without new settings: from now on the quota limits nothing (S38).
func (q *Quota) Delete(fx *Effects) { q.emit(fx, nil) }

// emit emits quota.changed. A new quota has no old settings, a deleted one no new ones.
func (q *Quota) emit(fx *Effects, s *QuotaSettings) {
	var o eventdata.Builder
	o.Str(eventdata.FieldQuota, q.ID)
	if q.Revision > 0 {
		o.Raw(eventdata.FieldOld, encodeQuotaSettings(q.Settings))
	}
	if s != nil {
		o.Raw(eventdata.FieldNew, encodeQuotaSettings(*s))
	}
	fx.Events = append(fx.Events, Event{
		Kind: "quota.changed", At: fx.Now, AttemptIndex: -1, Actor: fx.Actor, RequestID: fx.RequestID, Data: o.Done(),
	})
}

func encodeQuotaSettings(s QuotaSettings) []byte {
	text, _ := json.Marshal(s)
	return text
}
