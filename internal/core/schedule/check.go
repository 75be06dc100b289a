package schedule

import (
	"errors"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/schedule/cron"
	"github.com/flowfabric/flowfabric/internal/core/schedule/zone"
)

// DetailReason is the detail of a refused definition whose moments are at fault: ReasonNever or ReasonTooFrequent.
const DetailReason = "reason"

// The values of DetailReason.
const (
	ReasonNever       = "never"        // there is no moment after now (T15)
	ReasonTooFrequent = "too_frequent" // moments are closer than the namespace permits (T53)
)

// maxInstant is the last time that a definition may name.
const maxInstant = base.Time(zone.Last) * base.Time(base.Second)

// lookedAt is the number of moments whose distances are checked (T53).
const lookedAt = 256

// CheckName requires 1..128 of `[A-Za-z0-9][A-Za-z0-9_.:-]*`: invalid_schedule.
func CheckName(name string) error { return invalid("name", base.CheckNameText(name)) }

// invalid is the refusal of a field; nil if nothing is wrong with it.
func invalid(field, why string) error {
	if why == "" {
		return nil
	}
	return base.Errorf(base.CodeInvalidSchedule, "%s", why).WithField(field)
}

// Parse checks a definition and makes it ready for use (T1, T3): invalid_schedule with the field at fault; a bad key of a tag is invalid_tag_key. The
// checks come in the order of T18: shape, entries, zone.
func Parse(given Definition) (*Spec, error) {
	d := given.withDefaults()
	if err := d.checkShape(); err != nil {
		return nil, err
	}
	s := &Spec{Definition: d, first: zone.First, last: zone.Last}
	if err := s.parseEntries(); err != nil {
		return nil, err
	}
	z, err := zone.Find(d.Timezone)
	if err != nil {
		return nil, err
	}
	s.zone = z
	if d.StartAt != 0 {
		s.first = ceilSecond(d.StartAt)
	}
	if d.EndAt != 0 {
		s.last = ceilSecond(d.EndAt) - 1
	}
	return s, nil
}

func (d *Definition) checkShape() error {
	checks := []func() error{d.checkCounts, d.checkTimes, d.checkNumbers, d.checkWords, d.checkTexts}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (d *Definition) checkCounts() error {
	for _, list := range []struct {
		field   string
		n, most int
	}{{"cron", len(d.Cron), maxEntries}, {"calendars", len(d.Calendars), maxEntries}, {"except", len(d.Except), maxEntries}, {"at", len(d.At), maxAt}} {
		if list.n > list.most {
			return base.Errorf(base.CodeInvalidSchedule, "%d entries, at most %d are allowed", list.n, list.most).WithField(list.field)
		}
	}
	if len(d.Cron)+len(d.Calendars)+len(d.At) == 0 && d.EveryMS == 0 {
		return base.Errorf(base.CodeInvalidSchedule, "there is neither cron nor every_ms nor calendars nor at").WithField("cron").
			WithHint("state at least one of them, such as cron [\"0 2 * * *\"]")
	}
	return nil
}

func (d *Definition) checkTimes() error {
	if d.EveryMS != 0 && (d.EveryMS < base.Second || d.EveryMS > cron.MaxEvery*base.Second || d.EveryMS%base.Second != 0) {
		return base.Errorf(base.CodeInvalidSchedule, "must be whole seconds in 1000..%d", cron.MaxEvery*base.Second).WithField("every_ms")
	}
	if why := checkInstant(d.AnchorAt, true); why != "" {
		return invalid("anchor_at", why)
	}
	for i, at := range d.At {
		if why := checkInstant(at, true); why != "" {
			return invalid(base.Element("at", i), why)
		}
	}
	if why := checkInstant(d.StartAt, false); why != "" {
		return invalid("start_at", why)
	}
	if why := checkInstant(d.EndAt, false); why != "" {
		return invalid("end_at", why)
	}
	if d.EndAt != 0 && d.EndAt <= d.StartAt {
		return base.Errorf(base.CodeInvalidSchedule, "must be after start_at").WithField("end_at")
	}
	return nil
}

func checkInstant(t base.Time, whole bool) string {
	if t < 0 || t > maxInstant {
		return "must be of the years 1970 to 2199"
	}
	if whole && int64(t)%base.Second != 0 {
		return "must be a whole second"
	}
	return ""
}

func (d *Definition) checkNumbers() error {
	for _, number := range []struct {
		field          string
		n, least, most int64
	}{
		{"max_runs", d.MaxRuns, 0, maxRuns},
		{"jitter_ms", d.JitterMS, 0, base.Day},
		{"catch_up.window_ms", d.CatchUp.WindowMS, base.Minute, maxWindow},
		{"catch_up.limit", int64(d.CatchUp.Limit), 1, maxLimit},
		{"pause_after_failures", int64(d.PauseAfterFailures), 0, maxFailures},
		{"history_limit", int64(d.HistoryLimit), 1, maxHistoryLimit},
	} {
		if number.n < number.least || number.n > number.most {
			return base.Errorf(base.CodeInvalidSchedule, "must be in %d..%d", number.least, number.most).WithField(number.field)
		}
	}
	return nil
}

func (d *Definition) checkWords() error {
	if !slices.Contains([]Overlap{OverlapSkip, OverlapQueueLatest, OverlapQueue, OverlapCancel, OverlapAllow}, d.Overlap) {
		return invalid("overlap", "must be one of skip, queue_latest, queue, cancel, allow")
	}
	if !slices.Contains([]CatchUpPolicy{CatchUpLatest, CatchUpAll, CatchUpNone}, d.CatchUp.Policy) {
		return invalid("catch_up.policy", "must be one of latest, all, none")
	}
	if d.Action.Kind != ActionExecution && d.Action.Kind != ActionFlow {
		return invalid("submission", "exactly one of submission and flow is required")
	}
	if len(d.Action.Digest) != 64 || !base.OnlyBytes(d.Action.Digest, func(c byte) bool { return base.HexDigit(c) >= 0 }) {
		return invalid("submission", "has no digest")
	}
	return nil
}

func (d *Definition) checkTexts() error {
	if why := base.CheckText(d.Description, 0, maxDescription); why != "" {
		return invalid("description", why)
	}
	if why := base.CheckPlain(d.ManagedBy, 0, maxManagedBy); why != "" {
		return invalid("managed_by", why)
	}
	if len(d.Tags) > maxTags {
		return base.Errorf(base.CodeInvalidSchedule, "%d tags, at most %d are allowed", len(d.Tags), maxTags).WithField("tags")
	}
	err := base.CheckTags(d.Tags)
	if base.CodeOf(err) == base.CodeInvalidArgument {
		var refusal *base.Error
		errors.As(err, &refusal)
		return invalid(refusal.Field, refusal.Message)
	}
	return err
}

// refusedFields are the fields of a submit that say when and as what it is made, which a schedule decides.
var refusedFields = []string{"execution_id", "flow_id", "idempotency_key", "delay_ms", "delay_until", "deadline_at", "dry_run", "empty"}

// CheckFields refuses what the submission or flow of a schedule must not state (T1): invalid_schedule. given are the names of the fields that are present.
func CheckFields(kind ActionKind, given []string) error {
	object := "submission"
	if kind == ActionFlow {
		object = "flow"
	}
	for _, field := range refusedFields {
		if slices.Contains(given, field) {
			return base.Errorf(base.CodeInvalidSchedule, "must not be given: each firing is a submit of its own").WithField(object + "." + field)
		}
	}
	return nil
}

// parseEntries compiles the sources of moments and the exceptions.
func (s *Spec) parseEntries() error {
	d := &s.Definition
	for i, text := range d.Cron {
		line, err := cron.Parse(text)
		if err != nil {
			return within(base.Element("cron", i), err)
		}
		s.entries = append(s.entries, entry{pattern: line.Pattern, interval: line.Interval})
	}
	if d.EveryMS != 0 {
		s.entries = append(s.entries, entry{interval: cron.Interval{Every: d.EveryMS / base.Second, Anchor: int64(d.AnchorAt) / base.Second}})
	}
	for i := range d.Calendars {
		pattern, err := d.Calendars[i].Parse()
		if err != nil {
			return within(base.Element("calendars", i), err)
		}
		s.entries = append(s.entries, entry{pattern: pattern})
	}
	if len(d.At) > 0 {
		at := make([]int64, len(d.At))
		for i, t := range d.At {
			at[i] = int64(t) / base.Second
		}
		slices.Sort(at)
		s.entries = append(s.entries, entry{at: slices.Compact(at)})
	}
	for i := range d.Except {
		pattern, err := d.Except[i].ParseExcept()
		if err != nil {
			return within(base.Element("except", i), err)
		}
		s.except = append(s.except, pattern)
	}
	return nil
}

// within puts the field of a refusal below another one.
func within(field string, err error) error {
	var refusal *base.Error
	if !errors.As(err, &refusal) {
		return err
	}
	if refusal.Field != "" {
		field += "." + refusal.Field
	}
	return refusal.WithField(field)
}

// CheckMoments requires a moment after now (T15), and that the next 256 are at least so far apart (T53): invalid_schedule. over reports that the
// definition only lacks time: its schedule is stored as ended.
func (s *Spec) CheckMoments(now base.Time, least base.Millis) (over bool, err error) {
	w := s.walk(floorSecond(now) + 1)
	last, ok := w.next()
	if !ok {
		if s.isOver(now) {
			return true, nil
		}
		return false, base.Errorf(base.CodeInvalidSchedule, "there is no moment after now").With(DetailReason, ReasonNever).
			WithHint("compare the days with the months, and except, start_at and end_at with the rest")
	}
	for range lookedAt - 1 {
		m, ok := w.next()
		if !ok {
			break
		}
		if distance := (m - last) * base.Second; distance < least {
			return false, base.Errorf(base.CodeInvalidSchedule, "two moments are %d ms apart, at least %d ms are required", distance, least).
				With(DetailReason, ReasonTooFrequent).With("first", timeOf(last)).With("second", timeOf(m))
		}
		last = m
	}
	return false, nil
}

// isOver reports whether a definition without a moment after now had moments before, or would have some if end_at had not passed.
func (s *Spec) isOver(now base.Time) bool {
	if _, before := s.Prev(now + 1); before {
		return true
	}
	if end := s.Definition.EndAt; end != 0 && end <= now {
		_, later := s.Unbounded().Next(now)
		return later
	}
	return false
}

// CheckNumber requires room for one more schedule in the namespace (T53): schedule_limit_exceeded.
func CheckNumber(present, most int) error {
	if present < most {
		return nil
	}
	return base.Errorf(base.CodeScheduleLimitExceeded, "the namespace has %d schedules, at most %d are allowed", present, most).
		WithHint("delete schedules that are not needed, or let an administrator raise max_schedules")
}
