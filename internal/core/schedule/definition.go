package schedule

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/schedule/cron"
)

// Definition is what a caller states of a schedule (T1). Zero values mean the defaults that are given here.
type Definition struct {
	Cron               []string        `json:"cron,omitempty"`      // up to 16 texts of 1..256 bytes
	EveryMS            base.Millis     `json:"every_ms,omitempty"`  // 1 s..10 years in whole seconds; 0: no interval
	AnchorAt           base.Time       `json:"anchor_at,omitempty"` // whole seconds of 1970..2199; 0: 1970-01-01
	Calendars          []cron.Calendar `json:"calendars,omitempty"` // up to 16
	Except             []cron.Calendar `json:"except,omitempty"`    // up to 16
	At                 []base.Time     `json:"at,omitempty"`        // up to 100 instants in whole seconds
	Timezone           string          `json:"timezone"`            // "": UTC
	StartAt            base.Time       `json:"start_at,omitempty"`  // moments m with StartAt <= m < EndAt count; 0: no bound
	EndAt              base.Time       `json:"end_at,omitempty"`    // 0: no bound
	MaxRuns            int64           `json:"max_runs,omitempty"`  // 0..10^9; 0: no bound
	JitterMS           base.Millis     `json:"jitter_ms,omitempty"` // 0..1 day
	Overlap            Overlap         `json:"overlap"`             // "": skip
	CatchUp            CatchUp         `json:"catch_up"`
	PauseAfterFailures int             `json:"pause_after_failures,omitempty"` // 0..1000; 0: never
	Action             Action          `json:"action"`
	Template           bool            `json:"template,omitempty"`
	HistoryLimit       int             `json:"history_limit"`         // rows, 1..10,000; 0: 100
	Description        string          `json:"description,omitempty"` // up to 1024 bytes
	Tags               base.Tags       `json:"tags,omitempty"`        // up to 62
	ManagedBy          string          `json:"managed_by,omitempty"`  // up to 128 bytes
}

// CatchUp states what becomes of moments that were not settled in time (T25).
type CatchUp struct {
	Policy   CatchUpPolicy `json:"policy"`    // "": latest
	WindowMS base.Millis   `json:"window_ms"` // one minute to a year; 0: a day
	Limit    int           `json:"limit"`     // 1..1000; 0: 100
}

// Overlap is what becomes of a moment while work of an earlier one is open (T27).
type Overlap string

// The values of Overlap.
const (
	OverlapSkip        Overlap = "skip"
	OverlapQueueLatest Overlap = "queue_latest"
	OverlapQueue       Overlap = "queue"
	OverlapCancel      Overlap = "cancel"
	OverlapAllow       Overlap = "allow"
)

// CatchUpPolicy states which late moments fire (T25).
type CatchUpPolicy string

// The values of CatchUpPolicy.
const (
	CatchUpLatest CatchUpPolicy = "latest"
	CatchUpAll    CatchUpPolicy = "all"
	CatchUpNone   CatchUpPolicy = "none"
)

// Action is what a schedule submits. The submission itself is kept apart from the record (T37); this package does not read it.
type Action struct {
	Kind   ActionKind `json:"kind"`
	Digest string     `json:"digest"` // SHA-256 of all that is submitted, 64 hexadecimal digits
}

// ActionKind is the kind of work that a schedule submits.
type ActionKind string

// The values of ActionKind.
const (
	ActionExecution ActionKind = "execution"
	ActionFlow      ActionKind = "flow"
)

// Bounds and defaults of T1.
const (
	DefaultTimezone     = "UTC"
	DefaultWindow       = base.Day
	DefaultLimit        = 100
	DefaultHistoryLimit = 100

	maxEntries      = 16
	maxAt           = 100
	maxRuns         = 1_000_000_000
	maxWindow       = base.Year
	maxLimit        = 1000
	maxFailures     = 1000
	maxHistoryLimit = 10_000
	maxTags         = base.MaxTags - 2 // ff.schedule and ff.scheduled_at are added
	maxDescription  = 1024
	maxManagedBy    = 128
)

// withDefaults returns the definition with the values that are not given.
func (d Definition) withDefaults() Definition {
	setDefault(&d.Timezone, DefaultTimezone)
	setDefault(&d.Overlap, OverlapSkip)
	setDefault(&d.CatchUp.Policy, CatchUpLatest)
	setDefault(&d.CatchUp.WindowMS, DefaultWindow)
	setDefault(&d.CatchUp.Limit, DefaultLimit)
	setDefault(&d.HistoryLimit, DefaultHistoryLimit)
	if d.EveryMS == 0 {
		d.AnchorAt = 0 // it means nothing without an interval
	}
	return d
}

func setDefault[V comparable](value *V, otherwise V) {
	var zero V
	if *value == zero {
		*value = otherwise
	}
}

// Equal reports whether two definitions state the same, text by text.
func (d *Definition) Equal(other *Definition) bool {
	return string(encode(d.withDefaults())) == string(encode(other.withDefaults()))
}

// encode encodes a value that always can be.
func encode(value any) []byte {
	text, _ := json.Marshal(value)
	return text
}
