package core

import (
	"maps"
	"math"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// maxUsageDimensions bounds a report.
const maxUsageDimensions = 32

// The outcomes of a report or charge (section 5).
const (
	UsageOK         = "ok"
	UsageSoftBreach = "soft_breach"
	UsageHardBreach = "hard_breach"
)

// What a hard breach did to the reporter (B28).
const (
	ActionNone      = "none"
	ActionFailed    = "failed"
	ActionSuspended = "suspended"
	ActionCancelled = "cancelled"
)

// UsageOutcome is the answer to a usage report or a charge. Budget, Dimension and the amounts are those of the first breach; absent without one.
type UsageOutcome struct {
	Outcome   string    `json:"outcome"`
	Repeated  bool      `json:"-"` // it was already booked under the same key: AlreadyApplied
	Applied   bool      `json:"applied"`
	Action    string    `json:"action"`
	Budget    base.UUID `json:"budget,omitzero"`
	Dimension string    `json:"dimension,omitempty"`
	Used      int64     `json:"used,omitempty"`
	Reserved  int64     `json:"reserved,omitempty"`
	Hard      int64     `json:"hard,omitempty"`
	Attempted int64     `json:"attempted,omitempty"`
	Overrun   int64     `json:"overrun,omitempty"`
	Soft      int64     `json:"soft,omitempty"`
	// Remaining is what the reporter may still report of each dimension with a hard limit.
	Remaining map[base.UUID]map[string]int64 `json:"remaining,omitempty"`
	All       []UsageBreach                  `json:"all,omitempty"` // every breach of this kind, in the order of B8 and then by name
}

// UsageBreach is a limit that was reached.
type UsageBreach struct {
	Budget    base.UUID `json:"budget"`
	Dimension string    `json:"dimension"`
	Used      int64     `json:"used"`
	Reserved  int64     `json:"reserved,omitempty"`
	Hard      int64     `json:"hard,omitempty"`
	Attempted int64     `json:"attempted,omitempty"`
	Overrun   int64     `json:"overrun,omitempty"`
	Soft      int64     `json:"soft,omitempty"`
}

// breached sets the outcome for the breaches; without any, o is not changed.
func (o *UsageOutcome) breached(kind string, breaches []UsageBreach) {
	if len(breaches) == 0 {
		return
	}
	f := &breaches[0]
	o.Outcome, o.All = kind, breaches
	o.Budget, o.Dimension, o.Used, o.Reserved = f.Budget, f.Dimension, f.Used, f.Reserved
	o.Hard, o.Attempted, o.Overrun, o.Soft = f.Hard, f.Attempted, f.Overrun, f.Soft
}

func invalidUsage(field, format string, args ...any) *base.Error {
	return base.Errorf(base.CodeInvalidUsage, format, args...).WithField(field)
}

// CheckUsage checks used amounts: invalid_usage, reserved_dimension. An empty map is accepted here: it is an error for a report, but not for a
// command that may carry usage (B16).
func CheckUsage(usage map[string]int64) error {
	if len(usage) == 0 {
		return nil
	}
	if len(usage) > maxUsageDimensions {
		return invalidUsage("usage", "%d dimensions, at most %d are allowed", len(usage), maxUsageDimensions)
	}
	for _, name := range slices.Sorted(maps.Keys(usage)) {
		at := base.FieldUnder("usage", name)
		if why := base.CheckDimensionText(name); why != "" {
			return invalidUsage(at, "%s", why)
		}
		if name == WallMS {
			return base.Errorf(base.CodeReservedDimension, "time is measured by the engine").WithField(at).WithHint("leave %s out", WallMS)
		}
		if amount := usage[name]; amount < 0 || amount > maxAmount {
			return invalidUsage(at, "must be in 0..%d", int64(maxAmount))
		}
	}
	return nil
}

func checkReported(usage map[string]int64, dedupKey string) error {
	if len(usage) == 0 {
		return invalidUsage("usage", "must not be empty")
	}
	if err := CheckUsage(usage); err != nil {
		return err
	}
	if why := base.CheckPlain(dedupKey, 0, base.MaxIdempotencyKey); why != "" {
		return invalidUsage("dedup_key", "%s", why)
	}
	return nil
}

func outOfRange(dimension string) *base.Error {
	return base.Errorf(base.CodeAmountOutOfRange, "the sum would leave the range of numbers").WithField("usage." + dimension)
}

// Meters returns the totals of all attempts by dimension (B18); nil if nothing was used.
func (x *Execution) Meters() map[string]int64 {
	if x.Attempt == nil {
		return withWall(x.Usage, 0)
	}
	return withWall(x.Usage, x.Attempt.RunningMS)
}

// Meters returns the totals of the attempt by dimension (B18); nil if nothing was used.
func (a *Attempt) Meters() map[string]int64 { return withWall(a.Usage, a.RunningMS) }

// leaseUsage returns what was metered under the newest lease of the attempt, by dimension; nil if nothing was.
func (a *Attempt) leaseUsage() map[string]int64 {
	if len(a.UsageBefore) == 0 {
		return a.Usage
	}
	var usage map[string]int64
	for name, amount := range a.Usage {
		if more := amount - a.UsageBefore[name]; more > 0 {
			if usage == nil {
				usage = make(map[string]int64, len(a.Usage))
			}
			usage[name] = more
		}
	}
	return usage
}

// withWall adds the time of the last attempt, which is stored separately so that work without reports needs no map. The time of earlier attempts is
// in the meters of the execution.
func withWall(meters map[string]int64, running base.Millis) map[string]int64 {
	if running == 0 {
		return meters
	}
	return added(meters, map[string]int64{WallMS: running})
}

// added returns a new map with the sums, which saturate at 64 bits.
func added(meters, more map[string]int64) map[string]int64 {
	sums := make(map[string]int64, len(meters)+len(more))
	maps.Copy(sums, meters)
	for name, amount := range more {
		sums[name] = AddAmounts(sums[name], amount)
	}
	return sums
}

// meter adds usage to the meters of the execution, and to those of its attempt while it lasts (B18).
func (x *Execution) meter(usage map[string]int64) {
	if len(usage) == 0 {
		return
	}
	x.Usage = added(x.Usage, usage)
	if x.Attempt != nil && !x.Attempt.State.Final() {
		x.Attempt.Usage = added(x.Attempt.Usage, usage)
	}
}

// checkMeters refuses amounts that the meters cannot hold: amount_out_of_range.
func (x *Execution) checkMeters(usage map[string]int64) error {
	for _, name := range slices.Sorted(maps.Keys(usage)) {
		if x.Usage[name] > math.MaxInt64-usage[name] {
			return outOfRange(name)
		}
	}
	return nil
}
