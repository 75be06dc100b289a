package webhook

import (
	"maps"
	"reflect"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// How many requests an endpoint gets at a time.
const (
	DefaultInFlight = 8
	MostInFlight    = 64
)

// How long a replaced secret goes on signing.
const (
	DefaultOverlap = base.Day
	MaxOverlap     = 7 * base.Day
)

// MaxSecrets is how many secrets sign at a time: every one adds to a header of each request.
const MaxSecrets = 8

// MaxEndpoints is how many endpoints a namespace may have.
const MaxEndpoints = 100

// The states of an endpoint.
const (
	StateActive   = "active"
	StateDisabled = "disabled"
)

// Why an endpoint is disabled.
const (
	ReasonOperator = "operator" // a person asked for it
	ReasonGone     = "gone"     // the receiver answered 410
	ReasonFailing  = "failing"  // no success for FailingAfter, and a delivery is dead
)

// FailingAfter is for how long an endpoint must fail before it is disabled.
const FailingAfter = 5 * base.Day

// Filter selects events; all parts that are set must hold (E35). The zero value selects all events of the endpoint's namespace.
type Filter struct {
	Kinds       []string          `json:"kinds,omitempty"`
	ExecutionID string            `json:"execution_id,omitempty"`
	FlowID      string            `json:"flow_id,omitempty"`
	Lane        string            `json:"lane,omitempty"`
	Outcome     string            `json:"outcome,omitempty"`
	InstanceID  string            `json:"worker_instance_id,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
	ActorType   string            `json:"actor,omitempty"`
	Since       base.Time         `json:"since,omitzero"`
}

// Empty reports whether the filter selects all events.
func (f *Filter) Empty() bool { return reflect.DeepEqual(*f, Filter{}) }

func (f *Filter) clone() Filter {
	c := *f
	c.Kinds, c.Tags = slices.Clone(f.Kinds), maps.Clone(f.Tags)
	return c
}

// Settings are what an operator decides about an endpoint.
type Settings struct {
	URL         string `json:"url"`
	Filter      Filter `json:"filter,omitzero"`
	MaxInFlight int    `json:"max_in_flight"` // 0: DefaultInFlight
}

// Normalize fills in defaults and checks all but the filter. Errors: invalid_webhook_url, invalid_argument.
func (s *Settings) Normalize(a Addresses) error {
	if err := a.CheckURL(s.URL); err != nil {
		return err
	}
	if s.MaxInFlight == 0 {
		s.MaxInFlight = DefaultInFlight
	}
	return checkInFlight(s.MaxInFlight)
}

func checkInFlight(n int) error {
	if n < 1 || n > MostInFlight {
		return base.Invalid("max_in_flight", "must be in 1..%d", MostInFlight)
	}
	return nil
}

// Patch changes an endpoint; what is nil stays.
type Patch struct {
	URL         *string
	Filter      *Filter
	MaxInFlight *int
}

// SealedSecret is a secret as it is stored, sealed by its endpoint's id.
type SealedSecret struct {
	Sealed string    `json:"sealed"`
	Until  base.Time `json:"until,omitzero"` // signs before then; absent: it is the current one
}

// Endpoint is where events of a namespace are sent to.
type Endpoint struct {
	ID        base.UUID `json:"endpoint_id"`
	Namespace string    `json:"namespace"`
	Settings
	State      string         `json:"state"`
	Reason     string         `json:"reason,omitempty"` // why it is disabled
	DisabledAt base.Time      `json:"disabled_at,omitzero"`
	Revision   int64          `json:"revision"`
	CreatedAt  base.Time      `json:"created_at"`
	CreatedBy  string         `json:"created_by,omitempty"`
	Secrets    []SealedSecret `json:"secrets"` // the current one first
	// After is the end of the log when it was created: it gets events of later commits.
	After int64 `json:"after"`
}

// Active reports whether the endpoint gets events.
func (e *Endpoint) Active() bool { return e.State == StateActive }

// Change applies a patch, and reports whether anything is different. Errors: invalid_webhook_url, invalid_argument.
func (e *Endpoint) Change(p Patch, a Addresses) (changed bool, err error) {
	next := e.Settings
	if p.URL != nil {
		next.URL = *p.URL
	}
	if p.Filter != nil {
		next.Filter = p.Filter.clone()
	}
	if p.MaxInFlight != nil {
		if err := checkInFlight(*p.MaxInFlight); err != nil {
			return false, err
		}
		next.MaxInFlight = *p.MaxInFlight
	}
	if p.URL != nil { // one that was permitted when it was set may be kept
		if err := a.CheckURL(next.URL); err != nil {
			return false, err
		}
	}
	if reflect.DeepEqual(next, e.Settings) {
		return false, nil
	}
	e.Settings = next
	e.Revision++
	return true, nil
}

// Disable stops the endpoint, and reports whether it was active.
func (e *Endpoint) Disable(now base.Time, reason string) bool {
	if !e.Active() {
		return false
	}
	e.State, e.Reason, e.DisabledAt = StateDisabled, reason, now
	e.Revision++
	return true
}

// Enable starts the endpoint again, and reports whether it was disabled.
func (e *Endpoint) Enable() bool {
	if e.Active() {
		return false
	}
	e.State, e.Reason, e.DisabledAt = StateActive, "", 0
	e.Revision++
	return true
}

// Rotate makes another secret the current one. The former one signs for overlap, and those before it as long as they would have; with an overlap of 0
// none of them signs any more. Errors: invalid_argument.
func (e *Endpoint) Rotate(now base.Time, sealed string, overlap base.Millis) error {
	if overlap < 0 || overlap > MaxOverlap {
		return base.Invalid("overlap_ms", "must be in 0..%d", MaxOverlap)
	}
	next := []SealedSecret{{Sealed: sealed}}
	if overlap > 0 {
		for _, s := range e.Signing(now) {
			if s.Until == 0 {
				s.Until = now.Add(overlap)
			}
			next = append(next, s)
		}
	}
	if len(next) > MaxSecrets {
		return base.Invalid("overlap_ms", "%d secrets sign already", MaxSecrets).
			WithHint("wait until the first of them has ended, or end all of them with an overlap of 0")
	}
	e.Secrets = next
	e.Revision++
	return nil
}

// Signing returns the secrets that sign now, the current one first.
func (e *Endpoint) Signing(now base.Time) []SealedSecret {
	signing := make([]SealedSecret, 0, len(e.Secrets))
	for _, s := range e.Secrets {
		if s.Until == 0 || now < s.Until {
			signing = append(signing, s)
		}
	}
	return signing
}
