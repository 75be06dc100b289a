package core

import (
	"cmp"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
)

// Worker is a registered worker instance (S49). It is used by lists, drain and explain; no lease depends on it (S55).
type Worker struct {
	WorkerID      string            `json:"worker_id"`
	InstanceID    string            `json:"worker_instance_id"`
	Namespaces    []string          `json:"namespaces,omitempty"` // empty: all
	Lanes         []string          `json:"lanes"`
	Kinds         []string          `json:"kinds,omitempty"` // empty: all
	Capabilities  []string          `json:"capabilities,omitempty"`
	MaxConcurrent int               `json:"max_concurrent"` // 0: not stated
	LivenessTTLMS base.Millis       `json:"liveness_ttl_ms"`
	Version       string            `json:"version,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
	RegisteredAt  base.Time         `json:"registered_at"`
	RegisteredBy  string            `json:"registered_by,omitempty"` // name of the principal, for display: several may share one
	Owner         string            `json:"owner,omitempty"`         // credential that owns it; "" in records of older versions: RegisteredBy is used
	OwnedAt       base.Time         `json:"owned_at,omitempty"`      // when the owner got it; 0: at RegisteredAt
	LastSeen      base.Time         `json:"last_seen"`               // written at most once per third of the ttl (S50)
	Dead          *Death            `json:"dead,omitempty"`
	Draining      bool              `json:"draining"`
	DrainedBy     string            `json:"drained_by,omitempty"`  // credential of the owner that drains it; "": an operator does
	DrainAsked    string            `json:"drain_asked,omitempty"` // name of the principal that asked for the drain, for display
	Leaving       bool              `json:"leaving,omitempty"`     // it drains because it is about to stop, until it registers again
}

// Death states since when and why an instance is not live.
type Death struct {
	At     base.Time `json:"at"`
	Cause  string    `json:"cause"`            // DeathLapsed or DeathMarked
	Reason string    `json:"reason,omitempty"` // as given by the caller who marked it
}

// The causes of a death (E29).
const (
	DeathLapsed = "lapsed"
	DeathMarked = "marked"
)

// Registration is what an instance states about itself (S49). It must be normalized.
type Registration struct {
	WorkerID      string
	InstanceID    string
	Namespaces    []string // empty: all
	Lanes         []string // empty: the lane default
	Kinds         []string // empty: all
	Capabilities  []string
	MaxConcurrent int         // 0: not stated
	LivenessTTLMS base.Millis // 0: 30 000
	Version       string
	Labels        map[string]string
}

// Bounds of a registration.
const (
	DefaultLivenessTTL = 30 * base.Second
	minLivenessTTL     = base.Second
	maxLivenessTTL     = base.Hour
	maxWorkerLanes     = 64 // as many as one claim may name (S15)
	maxWorkerSlots     = 1_000_000
	workerKeptFor      = base.Day // after it was last seen (S54)
)

// Normalize fills in defaults, sorts the lists and checks every argument: invalid_argument, invalid_capabilities.
func (r *Registration) Normalize() error {
	if len(r.Lanes) == 0 {
		r.Lanes = []string{base.DefaultLane}
	}
	if r.LivenessTTLMS == 0 {
		r.LivenessTTLMS = DefaultLivenessTTL
	}
	capabilities, capabilitiesErr := ParseCapabilities(SideWorker, r.Capabilities)
	checks := [...]error{
		base.CheckWorkerID("worker_id", r.WorkerID),
		base.CheckWorkerID("worker_instance_id", r.InstanceID),
		base.CheckNames("lanes", &r.Lanes, maxWorkerLanes, func(text string) string { return base.CheckGraphic(text, 64) }),
		CheckWorkerNames(&r.Namespaces, &r.Kinds),
		r.checkNumbers(),
		base.RefuseText("version", base.CheckPlain(r.Version, 0, 128)),
		checkLabels(r.Labels),
		capabilitiesErr,
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	r.Capabilities = capabilities
	return nil
}

// CheckWorkerNames checks and sorts the namespaces and kinds that an instance or a claim takes work from. An empty list means all.
func CheckWorkerNames(namespaces, kinds *[]string) error {
	if err := base.CheckNames("namespaces", namespaces, base.MaxNames, base.CheckNameText); err != nil {
		return err
	}
	return base.CheckNames("kinds", kinds, base.MaxNames, func(text string) string { return base.CheckGraphic(text, 128) })
}

func (r *Registration) checkNumbers() error {
	switch {
	case r.MaxConcurrent < 0 || r.MaxConcurrent > maxWorkerSlots:
		return base.Invalid("max_concurrent", "must be in 0..%d", maxWorkerSlots)
	case r.LivenessTTLMS < minLivenessTTL || r.LivenessTTLMS > maxLivenessTTL:
		return base.Invalid("liveness_ttl_ms", "must be in %d..%d", minLivenessTTL, maxLivenessTTL)
	default:
		return nil
	}
}

// checkLabels: at most 64 of key 1..64 and value 0..256.
func checkLabels(labels map[string]string) error {
	if len(labels) > base.MaxTags {
		return base.Invalid("labels", "has more than %d entries", base.MaxTags)
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if why := base.CheckPlain(key, 1, 64); why != "" {
			return base.Invalid("labels", "a key %s", why)
		}
		if why := base.CheckText(labels[key], 0, 256); why != "" {
			return base.Invalid(base.FieldUnder("labels", key), "%s", why)
		}
	}
	return nil
}

// The outcomes of a registration (S49).
const (
	WorkerRegistered = "registered"
	WorkerRefreshed  = "refreshed"
)

// RegisterWorker applies a normalized registration to the stored instance, nil if there is none. changed is false if the stored record is already
// equal. An instance that is live under another worker, or that the caller may not use, is instance_id_taken. A new instance, one that returns and
// one with changed settings emit worker.registered.
func RegisterWorker(fx *Effects, existing *Worker, r Registration, by Registrant) (w Worker, outcome string, changed bool, err error) {
	if existing != nil && !existing.openTo(by, fx.Now) {
		return Worker{}, "", false, InstanceTaken()
	}
	if existing == nil || existing.WorkerID != r.WorkerID {
		if existing != nil && existing.Live(fx.Now) {
			return Worker{}, "", false, existing.taken()
		}
		w = r.worker()
		w.RegisteredAt, w.LastSeen = fx.Now, fx.Now
		w.own(fx, cmp.Or(existing, &Worker{}), by)
		w.emit(fx, "worker.registered", w.registeredData())
		return w, WorkerRegistered, true, nil
	}
	w = r.worker()
	w.RegisteredAt, w.LastSeen = existing.RegisteredAt, existing.LastSeen
	if w.Draining = existing.Draining && !existing.Leaving; w.Draining {
		w.DrainAsked = existing.DrainAsked
	}
	w.DrainedBy = existing.DrainedBy
	owned := w.own(fx, existing, by)
	if existing.Live(fx.Now) && !existing.Leaving && w.sameSettings(existing) {
		return w, WorkerRefreshed, w.Seen(fx.Now) || owned, nil
	}
	w.LastSeen = base.Later(w.LastSeen, fx.Now)
	w.emit(fx, "worker.registered", w.registeredData())
	return w, WorkerRefreshed, true, nil
}

func (r *Registration) worker() Worker {
	return Worker{
		WorkerID: r.WorkerID, InstanceID: r.InstanceID, Namespaces: r.Namespaces, Lanes: r.Lanes, Kinds: r.Kinds,
		Capabilities: r.Capabilities, MaxConcurrent: r.MaxConcurrent, LivenessTTLMS: r.LivenessTTLMS,
		Version: r.Version, Labels: r.Labels,
	}
}

func (w *Worker) sameSettings(o *Worker) bool {
	return slices.Equal(w.Namespaces, o.Namespaces) && slices.Equal(w.Lanes, o.Lanes) && slices.Equal(w.Kinds, o.Kinds) &&
		slices.Equal(w.Capabilities, o.Capabilities) && w.MaxConcurrent == o.MaxConcurrent && w.LivenessTTLMS == o.LivenessTTLMS &&
		w.Version == o.Version && maps.Equal(w.Labels, o.Labels)
}

// ExpiresAt returns the moment at which the instance stops being live unless it is seen before (S50).
func (w *Worker) ExpiresAt() base.Time { return w.LastSeen.Add(w.LivenessTTLMS) }

// Live reports whether the instance counts as alive (S50, SI13).
func (w *Worker) Live(now base.Time) bool { return w.Dead == nil && now < w.ExpiresAt() }

// taken is the refusal for an instance id that is live under another worker.
func (w *Worker) taken() error {
	return base.Errorf(base.CodeInstanceIDTaken, "the instance is live under another worker").
		WithField("worker_instance_id").With("worker_id", w.WorkerID)
}

// CheckTarget returns nil if work may be promised to the instance on behalf of a worker: not after it was marked dead (S52), nor while it is live
// under another worker (SI13).
func (w *Worker) CheckTarget(now base.Time, workerID string) error {
	switch {
	case w.Marked():
		return base.Errorf(base.CodeWorkerNotRegistered, "instance %q was marked dead: register it again", w.InstanceID)
	case w.WorkerID != workerID && w.Live(now):
		return w.taken()
	default:
		return nil
	}
}

// CheckClaim is CheckTarget for a claim by the instance itself: the caller must own it or be able to take it over.
func (w *Worker) CheckClaim(now base.Time, workerID string, by Registrant) error {
	if err := w.CheckTarget(now, workerID); err != nil {
		return err
	}
	if !w.openTo(by, now) {
		return InstanceTaken()
	}
	return nil
}

// Claimed records a claim by its owner as a sign of life (S50). An instance that had lapsed is live again with its previous settings, which emits
// the same event as a registration. It reports whether the record changed.
func (w *Worker) Claimed(fx *Effects, by Registrant) (changed bool) {
	owned := w.own(fx, w, by)
	if w.Live(fx.Now) || w.Marked() {
		return w.Seen(fx.Now) || owned
	}
	w.Dead, w.LastSeen = nil, base.Later(w.LastSeen, fx.Now)
	if w.Leaving {
		w.Draining, w.DrainAsked, w.Leaving = false, "", false
	}
	w.emit(fx, "worker.registered", w.registeredData())
	return true
}

// Seen records a sign of life of a live instance. It reports whether the record changed, which happens at most once per third of the ttl (S50). An
// instance that lapsed or is dead must register again (S51), or claim.
func (w *Worker) Seen(now base.Time) (changed bool) {
	if !w.Live(now) || now.Sub(w.LastSeen) < w.LivenessTTLMS/3 {
		return false
	}
	w.LastSeen = now
	return true
}

// Marked reports whether the instance was marked dead: its claims are then refused until it registers again (S52).
func (w *Worker) Marked() bool { return w.Dead != nil && w.Dead.Cause == DeathMarked }

// MarkDead marks the instance as not live from now on (S52). Marking it twice changes nothing. worker.dead is emitted unless it was already emitted
// for a lapse.
func (w *Worker) MarkDead(fx *Effects, reason string) (changed bool) {
	if w.Marked() {
		return false
	}
	known := w.Dead != nil
	w.Dead = &Death{At: fx.Now, Cause: DeathMarked, Reason: reason}
	if !known {
		w.emit(fx, "worker.dead", w.deadData())
	}
	return true
}

// Lapse records, once, that the instance was not seen in time.
func (w *Worker) Lapse(fx *Effects) (changed bool) {
	if w.Dead != nil || w.Live(fx.Now) {
		return false
	}
	w.Dead = &Death{At: w.ExpiresAt(), Cause: DeathLapsed}
	w.emit(fx, "worker.dead", w.deadData())
	return true
}

// CheckUndrain refuses an owner that would end an operator's drain: role_required. by is as in SetDrain.
func (w *Worker) CheckUndrain(by string) error {
	if by == "" || !w.Draining || w.Leaving || w.DrainedBy != "" {
		return nil
	}
	return base.Errorf(base.CodeRoleRequired, "an operator drains instance %q, and only an operator ends that", w.InstanceID).
		WithHint("ask somebody with role operate")
}

// SetDrain starts or ends draining (S53). by is the credential of an owner that requests it, "" for an operator. An owner's drain ends when the
// instance changes owners. An operator's drain stays until an operator ends it, even if an owner requests one too (CheckUndrain).
func (w *Worker) SetDrain(fx *Effects, on bool, by string) (changed bool) {
	before := *w
	w.Leaving = false
	if w.DrainedBy = ""; on && (!before.Draining || before.Leaving || before.DrainedBy != "") {
		w.DrainedBy = by
	}
	if on && before.Leaving {
		w.DrainAsked = fx.Actor.ID
	}
	return w.drain(fx, on) || before.Leaving || before.DrainedBy != w.DrainedBy
}

// Leave starts draining because the instance itself is about to stop: it takes work again once it registers. An existing drain is kept.
func (w *Worker) Leave(fx *Effects) (changed bool) {
	if w.Draining {
		return false
	}
	w.Leaving = true
	return w.drain(fx, true)
}

func (w *Worker) drain(fx *Effects, on bool) (changed bool) {
	if w.Draining == on {
		return false
	}
	w.Draining = on
	if w.DrainAsked = ""; on {
		w.DrainAsked = fx.Actor.ID
	}
	data := w.data()
	data.Flag(eventdata.FieldOn, on)
	w.emit(fx, "worker.draining", data.Done())
	return true
}

// NextLook returns when the sweep next has to process the record: at its lapse, then at its removal (S54).
func (w *Worker) NextLook() base.Time {
	if w.Dead == nil {
		return w.ExpiresAt()
	}
	return w.LastSeen.Add(workerKeptFor)
}

// Removable reports whether the record of a dead or lapsed instance is old enough to be removed (S54).
func (w *Worker) Removable(now base.Time) bool {
	return !w.Live(now) && w.LastSeen.Add(workerKeptFor).Reached(now)
}

// Serves reports whether the instance takes work of the class: lane, namespace, kind, capabilities (S11, S59).
func (w *Worker) Serves(class *Class) bool {
	return slices.Contains(w.Lanes, class.Lane) && among(w.Namespaces, class.Namespace) && among(w.Kinds, class.Kind) &&
		Matches(class.Capabilities, w.Capabilities)
}

func (w *Worker) data() (data eventdata.Builder) {
	data.Str(eventdata.FieldWorkerID, w.WorkerID)
	data.Str(eventdata.FieldInstanceID, w.InstanceID)
	return data
}

func (w *Worker) registeredData() eventdata.Data {
	data := w.data()
	data.Strs(eventdata.FieldLanes, w.Lanes)
	data.Strs(eventdata.FieldCapabilities, w.Capabilities)
	return data.Done()
}

func (w *Worker) deadData() eventdata.Data {
	data := w.data()
	data.Str(eventdata.FieldReason, w.Dead.Cause)
	data.StrIf(eventdata.FieldDetail, w.Dead.Reason)
	data.Moment(eventdata.FieldLastSeen, w.LastSeen)
	return data.Done()
}

// emit appends an event of the instance. It belongs to a namespace only if the instance serves exactly one.
func (w *Worker) emit(fx *Effects, kind string, data eventdata.Data) {
	namespace := ""
	if len(w.Namespaces) == 1 {
		namespace = w.Namespaces[0]
	}
	fx.Events = append(fx.Events, Event{
		Kind: kind, At: fx.Now, Namespace: namespace, AttemptIndex: -1, InstanceID: w.InstanceID,
		Actor: fx.Actor, RequestID: fx.RequestID, Data: data,
	})
}
