package collect

import (
	"maps"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Arrival is a submit that is to be collected.
type Arrival struct {
	ID         base.UUID
	Known      bool   // it was collected before: an item of this id, or its idempotency key, is known
	Size       int64  // of its input, in bytes
	Policy     string // a digest: all items of an execution have the same policy
	Priority   int
	Tags       base.Tags
	DeadlineAt base.Time // 0: none
}

// Decision is what becomes of an item. After is what is stored of the execution that has it; if StartsAt of it is now, that starts at once.
type Decision struct {
	Known bool // nothing changes, and After is empty
	Begin bool // After is that of a new execution, whose first item it is
	Start bool // the execution that collected before Begin is full: it starts at once
	After Collection
}

// Join decides about an item (T51, T52). The rule must have passed Check. c is what is stored under the scope of the key, nil for none; it collects no
// more once its execution is no longer delayed for that reason, or StartsAt is reached. A policy or mode other than that of the first item is
// collect_conflict, with the execution; too many tags together are invalid_argument.
func Join(c *Collection, collecting bool, r Rule, item *Arrival, now base.Time) (Decision, error) {
	if item.Known {
		return Decision{Known: true}, nil
	}
	if c == nil || !collecting || c.StartsAt <= now {
		return begin(r, item, now), nil
	}
	if r.Mode != c.Mode || item.Policy != c.Policy {
		return Decision{}, base.Errorf(base.CodeCollectConflict, "the execution collects items of another mode or policy").WithField(string(r.Mode)+".key").
			With("execution_id", c.Execution.UUID.String())
	}
	if r.Mode == Batch && c.Bytes+item.Size > r.MaxBytes {
		d := begin(r, item, now)
		d.Start = true
		return d, nil
	}
	after, err := c.add(r, item, now)
	return Decision{After: after}, err
}

// begin makes a new execution of an item, which has its id.
func begin(r Rule, item *Arrival, now base.Time) Decision {
	c := Collection{
		Mode: r.Mode, Execution: base.IDOf(item.ID), FirstAt: now, Items: 1, Bytes: item.Size, Input: item.ID,
		Policy: item.Policy, Priority: item.Priority, Tags: item.Tags, DeadlineAt: item.DeadlineAt,
	}
	c.StartsAt = r.starts(&c, now)
	return Decision{Begin: true, After: c}
}

// starts returns when the execution starts after an item came now.
func (r Rule) starts(c *Collection, now base.Time) base.Time {
	latest := c.FirstAt.Add(r.MaxWaitMS)
	switch {
	case r.Mode == Debounce:
		return max(now, min(now.Add(r.QuietMS), latest))
	case c.Items >= int64(r.MaxItems):
		return now
	case c.StartsAt == 0:
		return latest
	default:
		return c.StartsAt
	}
}

// add returns the collection with one more item.
func (c *Collection) add(r Rule, item *Arrival, now base.Time) (Collection, error) {
	after := *c
	after.Items++
	after.Bytes += item.Size
	if r.Mode == Debounce && r.Keep == KeepLast {
		after.Input = item.ID
	}
	after.Priority = max(c.Priority, item.Priority)
	after.DeadlineAt = base.Earliest(c.DeadlineAt, item.DeadlineAt)
	if len(item.Tags) > 0 {
		after.Tags = base.Tags{}
		maps.Copy(after.Tags, c.Tags)
		maps.Copy(after.Tags, item.Tags)
		if err := base.CheckTags(after.Tags); err != nil {
			return Collection{}, err
		}
	}
	after.StartsAt = r.starts(&after, now)
	return after, nil
}
