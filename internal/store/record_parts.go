package store

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// The optional parts of a record.

func (c *coder) hold(v *core.Hold) {
	c.text(&v.By)
	c.time(&v.At)
	c.text(&v.Reason)
}

func (c *coder) grant(v *core.Grant) {
	c.bytes(&v.Hash)
	c.text(&v.Kid)
	c.text(&v.WorkerID)
	c.text(&v.InstanceID)
	c.time(&v.IssuedAt)
	c.time(&v.ExpiresAt)
	c.text(&v.RequestKey)
}

func (c *coder) failure(v *core.Failure) {
	c.text(&v.Class)
	c.text(&v.Category)
	c.text(&v.Message)
	c.detail(v)
	c.time(&v.At)
}

// The forms of a failure's detail. Values are stored; the first two equal those of bytes.
const (
	detailNone byte = iota
	detailPlain
	detailTyped // with a content type
)

func (c *coder) detail(v *core.Failure) {
	form := detailNone
	switch {
	case v.Detail == nil:
	case v.DetailType == "":
		form = detailPlain
	default:
		form = detailTyped
	}
	c.byte(&form)
	c.check(form <= detailTyped)
	if form == detailTyped {
		c.text(&v.DetailType)
		c.check(v.DetailType != "")
	}
	if form != detailNone {
		c.someBytes(&v.Detail)
	}
}

func (c *coder) cancellation(v *core.Cancellation) {
	c.text(&v.Source)
	c.text(&v.By)
	c.text(&v.Reason)
}

func (c *coder) trace(v *base.Trace) {
	c.text(&v.Parent)
	c.text(&v.State)
	c.text(&v.Baggage)
}

func (c *coder) retain(v *core.Retain) {
	c.time(&v.Until)
	c.text(&v.By)
	c.text(&v.Reason)
}

func (c *coder) progress(v *core.Progress) {
	percent, message := v.Percent != nil, v.Message != nil
	c.flag(&percent)
	if percent {
		c.int(present(c, &v.Percent))
	}
	c.flag(&message)
	if message {
		c.text(present(c, &v.Message))
	}
	c.time(&v.UpdatedAt)
}

func (c *coder) lineage(v *core.Lineage) {
	c.int(&v.PreviousIndex)
	c.text(&v.Class)
	c.text(&v.Category)
	c.text(&v.Cause)
	c.text(&v.Reason)
	c.text(&v.By)
	c.int(&v.ReplayNumber)
}

// contentTypes lists those that take one byte. Indexes are stored: only append.
var contentTypes = [...]string{"", "application/octet-stream", "application/json", "text/plain"}

// payload codes everything but the bytes.
func (c *coder) payload(v *core.Payload) {
	c.frequent(&v.ContentType, contentTypes[:])
	size := v.Size
	if v.Data != nil {
		size = len(v.Data)
	}
	c.int(&size)
	if c.reading {
		v.Size = size
	}
	c.check(size >= 0)
}

// surroundings is what the record that contains an attempt already states.
type surroundings struct {
	id               base.UUID
	worker, instance string
	failure          *core.Failure
}

// Parts of an attempt. Values are stored.
const (
	attemptID uint64 = 1 << iota // differs from that of the surroundings
	attemptWorker
	attemptInstance
	attemptFailure
	attemptSharedFailure // that of the surroundings
	attemptEnded
	attemptInterruption
	attemptLineage
	attemptUsage
	attemptUsageBefore
)

func (c *coder) attempt(a *core.Attempt, around surroundings) {
	parts := bits(attemptID, a.ID != around.id) |
		bits(attemptWorker, a.WorkerID != around.worker) |
		bits(attemptInstance, a.InstanceID != around.instance) |
		bits(attemptFailure, a.Failure != nil && a.Failure != around.failure) |
		bits(attemptSharedFailure, a.Failure != nil && a.Failure == around.failure) |
		bits(attemptEnded, a.EndedAt != 0) |
		bits(attemptInterruption, a.Interruption != 0 || a.InterruptAt != 0) |
		bits(attemptLineage, a.Lineage != nil) |
		bits(attemptUsage, len(a.Usage) != 0) |
		bits(attemptUsageBefore, len(a.UsageBefore) != 0)
	c.uint(&parts)
	if c.reading {
		a.ID, a.WorkerID, a.InstanceID = around.id, around.worker, around.instance
	}
	if parts&attemptID != 0 {
		c.uuid(&a.ID)
	}
	c.int(&a.Index)
	small(c, &a.Type)
	small(c, &a.State)
	c.time(&a.StartedAt)
	c.int64(&a.RunningMS)
	c.int64(&a.FirstEpoch)
	c.int64(&a.LastEpoch)
	if parts&attemptWorker != 0 {
		c.text(&a.WorkerID)
	}
	if parts&attemptInstance != 0 {
		c.text(&a.InstanceID)
	}
	if parts&attemptEnded != 0 {
		c.time(&a.EndedAt)
	}
	if parts&attemptInterruption != 0 {
		small(c, &a.Interruption)
		c.time(&a.InterruptAt)
	}
	if parts&attemptLineage != 0 {
		c.lineage(present(c, &a.Lineage))
	}
	switch {
	case parts&attemptFailure != 0:
		c.failure(present(c, &a.Failure))
	case parts&attemptSharedFailure != 0:
		if c.reading {
			a.Failure = around.failure
		}
		c.check(a.Failure != nil)
	}
	if parts&attemptUsage != 0 {
		c.amounts(&a.Usage)
	}
	if parts&attemptUsageBefore != 0 {
		c.amounts(&a.UsageBefore)
	}
	c.check(known(a.State.String()) && known(a.Type.String()) && known(a.Interruption.String()))
}

// retries codes what few executions have, as JSON.
func (c *coder) retries(r *core.Retries) {
	var text []byte
	if !c.reading {
		text, _ = json.Marshal(r)
	}
	c.bytes(&text)
	if c.reading {
		c.check(json.Unmarshal(text, r) == nil)
	}
}

// bits returns mask if on, else 0.
func bits(mask uint64, on bool) uint64 {
	if on {
		return mask
	}
	return 0
}

// known reports whether a value of an enumeration has a name: core names all others unknown.
func known(name string) bool { return name != "unknown" }
