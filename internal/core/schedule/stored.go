package schedule

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// version is that of the stored forms; programs refuse what has another one. Fields may be added without a new version.
const version = 1

type storedSchedule struct {
	Version int `json:"v"`
	*Schedule
}

type storedFiring struct {
	Version int `json:"v"`
	*Firing
}

// Encode returns the stored form of the record.
func (r *Schedule) Encode() []byte { return encode(storedSchedule{version, r}) }

// Decode reads what Encode wrote, and refuses what no rule can have written: corruption. The texts of the definition are not parsed: Parse does it.
func Decode(data []byte) (Schedule, error) {
	var r Schedule
	stored := storedSchedule{Schedule: &r}
	if err := json.Unmarshal(data, &stored); err != nil || stored.Version != version || stored.Schedule == nil || !r.sound() {
		return Schedule{}, unreadable("schedule")
	}
	return r, nil
}

// Encode returns the stored form of the row.
func (f *Firing) Encode() []byte { return encode(storedFiring{version, f}) }

// DecodeFiring reads what Encode wrote; anything else is corruption.
func DecodeFiring(data []byte) (Firing, error) {
	var f Firing
	stored := storedFiring{Firing: &f}
	if err := json.Unmarshal(data, &stored); err != nil || stored.Version != version || stored.Firing == nil || !f.sound() {
		return Firing{}, unreadable("firing of a schedule")
	}
	return f, nil
}

// unreadable is the error for bytes that no encoder can have written.
func unreadable(what string) error {
	return base.Errorf(base.CodeCorruption, "the stored %s cannot be read", what).With("record", what)
}

// sound reports whether the rules can have made the record.
func (r *Schedule) sound() bool {
	named := !r.ID.IsZero() && r.Namespace != "" && base.CheckNameText(r.Name) == "" && r.Revision > 0
	defined := r.Definition.Timezone != "" && r.Definition.checkShape() == nil // which refuses what has no defaults
	state := (r.State == Active || r.State == Paused || r.State == Ended) && (r.State == Paused) == (r.Pause != Pause{}) &&
		(r.State == Ended) == (r.EndedAt != 0) && (r.State == Active) == (r.NextAt != 0) && r.NextDueAt >= r.NextAt && (r.NextAt == 0 || r.NextAt > r.ThroughAt)
	counted := r.Runs >= 0 && r.FailuresInRow >= 0 && r.Rows >= 0 && min(r.Counts.Submitted, r.Counts.Skipped, r.Counts.Missed, r.Counts.Refused) >= 0 &&
		r.Runs <= r.Counts.Submitted
	return named && defined && state && counted && r.soundFirings()
}

func (r *Schedule) soundFirings() bool {
	if len(r.Open) > MaxOpen || len(r.Queue) > MaxQueue {
		return false
	}
	for i := range r.Open {
		if f := &r.Open[i]; !f.sound() || f.Outcome != Submitted || f.Status != "" {
			return false
		}
	}
	for i := range r.Queue {
		if f := &r.Queue[i]; !f.sound() || f.Outcome != Queued && f.Outcome != Retrying {
			return false
		}
	}
	inOrder := slices.IsSortedFunc(r.Queue, func(a, b Firing) int { return a.Compare(b.Key) })
	return inOrder && (r.Run == nil || r.Run.sound() && r.Run.Key.Run) && (r.Latest == nil || r.Latest.sound())
}

// sound reports whether the rules can have made the row.
func (f *Firing) sound() bool {
	words := slices.Contains([]Cause{CauseTimer, CauseCatchUp, CauseManual, CauseBackfill}, f.Cause) &&
		slices.Contains([]Outcome{Submitted, Queued, Retrying, Skipped, Missed, Refused}, f.Outcome)
	run := !f.Run && f.Count == 0 && f.Last == 0 || f.Run && f.Count > 0 && f.Last >= f.Moment && (f.Outcome == Skipped || f.Outcome == Missed)
	return words && run && f.Moment >= 0 && f.Moment <= maxInstant && f.Tries >= 0 && (f.Outcome == Submitted) == !f.Target.IsZero() &&
		(f.Status == "") == (f.EndedAt == 0) && (f.Outcome == Retrying) == (f.NotBefore != 0)
}

// Text returns the key as a text. Texts sort as keys do.
func (k Key) Text() string {
	text := fmt.Sprintf("%013d", int64(k.Moment))
	if !k.Call.IsZero() {
		text += "." + k.Call.String()
	}
	if k.Run {
		text += "~"
	}
	return text
}

// ParseKey is the inverse of Text.
func ParseKey(text string) (Key, bool) {
	rest, run := strings.CutSuffix(text, "~")
	moment, call, called := strings.Cut(rest, ".")
	n, err := strconv.ParseInt(moment, 10, 64)
	k := Key{Moment: base.Time(n), Run: run}
	if called {
		k.Call, _ = base.ParseUUID(call)
	}
	return k, err == nil && n >= 0 && k.Text() == text
}
