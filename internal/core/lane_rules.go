package core

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
)

// Bounds of a lane's settings (S2).
const (
	maxLaneCap        = 1_000_000
	maxAgeing         = base.Millis(1_000_000_000_000)
	maxFairnessKeys   = 10_000
	maxFairnessWeight = 1000
)

// NewLane returns a lane with default settings, as the first submit or put_lane registers it (S1).
func NewLane(name, registeredBy string) Lane {
	return Lane{Name: name, Settings: LaneSettings{State: LaneActive, Fairness: FairnessAuto}, RegisteredBy: registeredBy}
}

// Normalize fills in the defaults of S2 and checks every setting: invalid_argument with the setting's name.
func (s *LaneSettings) Normalize() error {
	if s.State == 0 {
		s.State = LaneActive
	}
	if s.Fairness == "" {
		s.Fairness = FairnessAuto
	}
	switch {
	case s.State > LaneDisabled:
		return base.Invalid("state", "unknown state").WithHint("use active, paused, draining or disabled")
	case s.MaxConcurrent < 0 || s.MaxConcurrent > maxLaneCap:
		return base.Invalid("max_concurrent", "must be in 0..%d", maxLaneCap)
	case s.AgeingMS < 0 || s.AgeingMS > maxAgeing:
		return base.Invalid("ageing_ms", "must be in 0..%d", maxAgeing)
	case !slices.Contains([]string{FairnessAuto, FairnessOff, FairnessNamespace, FairnessByKey}, s.Fairness):
		return base.Invalid("fairness", "%q is not auto, off, namespace or key", base.CutText(s.Fairness, 80))
	case len(s.FairnessWeights) > maxFairnessKeys:
		return base.Invalid("fairness_weights", "%d entries, at most %d", len(s.FairnessWeights), maxFairnessKeys)
	}
	for _, key := range slices.Sorted(maps.Keys(s.FairnessWeights)) {
		weight := s.FairnessWeights[key]
		if why := base.CheckKeyText(key); why != "" {
			return base.Invalid("fairness_weights", "key %q %s", base.CutText(key, 80), why)
		}
		if weight < 1 || weight > maxFairnessWeight {
			return base.Invalid("fairness_weights", "weight of %q must be in 1..%d", key, maxFairnessWeight)
		}
	}
	return s.RetentionMS.check("retention_ms")
}

func (r RetentionByStatus) check(field string) error {
	for _, status := range []Status{Succeeded, Failed, Cancelled, Expired, Skipped} {
		if keep := r.of(status); keep != nil && (*keep < -1 || *keep > 10*base.Year) {
			return base.Invalid(field+"."+status.String(), "must be in -1..%d", 10*base.Year)
		}
	}
	return nil
}

// equal reports whether two normalized settings are the same.
func (s LaneSettings) equal(o LaneSettings) bool {
	a, b := EncodeLaneSettings(s), EncodeLaneSettings(o)
	return string(a) == string(b) && maps.Equal(s.FairnessWeights, o.FairnessWeights)
}

// Change sets new settings and emits lane.changed (S4). Equal settings change nothing.
func (l *Lane) Change(fx *Effects, s LaneSettings, reason string) (changed bool) {
	if l.Settings.equal(s) {
		return false
	}
	if l.Settings.State != s.State {
		l.Since = fx.Now
	}
	var o eventdata.Builder
	o.Str(eventdata.FieldLane, l.Name)
	o.Raw(eventdata.FieldOld, EncodeLaneSettings(l.Settings))
	o.Raw(eventdata.FieldNew, EncodeLaneSettings(s))
	o.StrIf(eventdata.FieldReason, reason)
	fx.Events = append(fx.Events, Event{
		Kind: "lane.changed", At: fx.Now, AttemptIndex: -1, Actor: fx.Actor, RequestID: fx.RequestID, Data: o.Done(),
		Class: &Class{Lane: l.Name},
	})
	l.Settings = s
	l.Revision++
	return true
}

// WithoutWeights returns the settings without the weights of some keys.
func (s LaneSettings) WithoutWeights(of func(key string) bool) LaneSettings {
	s.FairnessWeights = maps.Clone(s.FairnessWeights)
	maps.DeleteFunc(s.FairnessWeights, func(key string, _ int) bool { return of(key) })
	return s
}

// LaneChangeWithoutWeights returns the data of lane.changed without the weights of some keys. Unreadable data is omitted.
func LaneChangeWithoutWeights(d eventdata.Data, of func(key string) bool) eventdata.Data {
	var change struct {
		Lane   string        `json:"lane"`
		Old    *LaneSettings `json:"old,omitempty"`
		New    *LaneSettings `json:"new,omitempty"`
		Reason string        `json:"reason,omitempty"`
	}
	if err := json.Unmarshal(d.JSON(), &change); err != nil {
		return eventdata.Data{}
	}
	for _, s := range []*LaneSettings{change.Old, change.New} {
		if s != nil {
			*s = s.WithoutWeights(of)
		}
	}
	text, _ := json.Marshal(change)
	return eventdata.OfJSON(text)
}

// WithDefaultRetention fills in absent values from the defaults of L139.
func WithDefaultRetention(r RetentionByStatus) RetentionByStatus {
	d := DefaultRetention()
	for _, field := range []struct{ given, standard **base.Millis }{
		{&r.Succeeded, &d.Succeeded}, {&r.Failed, &d.Failed}, {&r.Cancelled, &d.Cancelled}, {&r.Expired, &d.Expired}, {&r.Skipped, &d.Skipped},
	} {
		if *field.given == nil {
			*field.given = *field.standard
		}
	}
	return r
}

// OpenLease returns the present lease as an entry of the lease history without an end (L40); nil while x is not running.
func OpenLease(x *Execution) *LeaseRecord {
	if x.Lease == nil {
		return nil
	}
	return &LeaseRecord{
		ExecutionID: x.ID, Epoch: x.LeaseEpoch, LeaseID: x.Lease.ID, RunIndex: x.RunIndex(), Attempt: *x.Attempt,
		WorkerID: x.Lease.WorkerID, InstanceID: x.Lease.InstanceID, AcquiredAt: x.Lease.AcquiredAt,
	}
}

// EmitDeleted emits that x was deleted on request (U55). Retention removes without an event.
func (x *Execution) EmitDeleted(fx *Effects, reason string) {
	x.emitReason(fx, "execution.deleted", reason)
}

// CheckDeadline requires a deadline in the future, at most ten years ahead, else invalid_argument. An absent one passes.
func CheckDeadline(at, now base.Time) error {
	if at.Reached(now) {
		return base.Invalid("deadline_at", "has passed already")
	}
	return base.CheckAhead("deadline_at", at, now)
}
