package collect

import (
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Rule is what a submit states about others of its key (T51). Zero values mean the defaults that are given here.
type Rule struct {
	Mode      Mode
	Key       string      // 1..128 bytes of UTF-8 without control characters
	QuietMS   base.Millis // of a debounce: 100 ms..7 days without another submit; required
	MaxWaitMS base.Millis // of a debounce: QuietMS..30 days, 0: a day, or QuietMS if that is longer. Of a batch: 1 ms..a day, 0: a second
	Keep      Keep        // of a debounce; "": last
	MaxItems  int         // of a batch: 2..1000; 0: 100
	MaxBytes  int64       // of a batch: bytes of inputs, up to the limit of an input; 0: that limit
}

// Mode is how submits are collected. It is also the name of the field that holds the rule.
type Mode string

// The values of Mode.
const (
	Debounce Mode = "debounce" // the execution starts when no submit has come for a while, with the input of one of them
	Batch    Mode = "batch"    // the execution starts when there are enough items, with the inputs of all
)

// Keep is whose input a debounced execution has.
type Keep string

// The values of Keep.
const (
	KeepLast  Keep = "last"
	KeepFirst Keep = "first"
)

// Bounds and defaults of T51.
const (
	minQuiet         = 100
	maxQuiet         = 7 * base.Day
	maxDebounceWait  = 30 * base.Day
	defaultWait      = base.Day
	maxBatchWait     = base.Day
	defaultBatchWait = base.Second
	minItems         = 2
	maxItems         = 1000
	defaultItems     = 100
)

// Check requires a rule within its bounds and returns it with its defaults: invalid_argument. limit is that of an input, in bytes.
func (r Rule) Check(limit int64) (Rule, error) {
	if why := base.CheckKeyText(r.Key); why != "" {
		return Rule{}, r.refuse("key", "%s", why)
	}
	if r.Mode == Batch {
		return r.checkBatch(limit)
	}
	if r.Keep == "" {
		r.Keep = KeepLast
	}
	if r.MaxWaitMS == 0 {
		r.MaxWaitMS = max(defaultWait, r.QuietMS)
	}
	switch {
	case r.QuietMS < minQuiet || r.QuietMS > maxQuiet:
		return Rule{}, r.refuse("quiet_ms", "must be in %d..%d", minQuiet, maxQuiet)
	case r.MaxWaitMS < r.QuietMS || r.MaxWaitMS > maxDebounceWait:
		return Rule{}, r.refuse("max_wait_ms", "must be in %d..%d", r.QuietMS, maxDebounceWait)
	case r.Keep != KeepLast && r.Keep != KeepFirst:
		return Rule{}, r.refuse("keep", "must be one of last, first")
	}
	return r, nil
}

func (r Rule) checkBatch(limit int64) (Rule, error) {
	if r.MaxItems == 0 {
		r.MaxItems = defaultItems
	}
	if r.MaxWaitMS == 0 {
		r.MaxWaitMS = defaultBatchWait
	}
	if r.MaxBytes == 0 {
		r.MaxBytes = limit
	}
	switch {
	case r.MaxItems < minItems || r.MaxItems > maxItems:
		return Rule{}, r.refuse("max_items", "must be in %d..%d", minItems, maxItems)
	case r.MaxWaitMS < 1 || r.MaxWaitMS > maxBatchWait:
		return Rule{}, r.refuse("max_wait_ms", "must be in 1..%d", maxBatchWait)
	case r.MaxBytes < 1 || r.MaxBytes > limit:
		return Rule{}, r.refuse("max_bytes", "must be in 1..%d", limit)
	}
	return r, nil
}

func (r Rule) refuse(field, format string, args ...any) error {
	return base.Invalid(string(r.Mode)+"."+field, format, args...)
}

// Beside is what else a submit states, none of which goes with a rule of this package.
type Beside struct {
	Other       bool // the rule of the other mode
	Delay       bool
	Unique      bool
	Flow        bool // it is a member of a flow
	Transaction bool // it is submitted in a transaction of the caller
}

// CheckBeside refuses what does not go with the rule: invalid_argument.
func (r Rule) CheckBeside(b Beside) error {
	for _, with := range []struct {
		is   bool
		what string
	}{
		{b.Other, "debounce and batch exclude each other"},
		{b.Delay, "must not be used with a delay"},
		{b.Unique, "must not be used with unique"},
		{b.Flow, "must not be used for members of flows"},
		{b.Transaction, "must not be used in a transaction"},
	} {
		if with.is {
			return base.Invalid(string(r.Mode), "%s", with.what)
		}
	}
	return nil
}
