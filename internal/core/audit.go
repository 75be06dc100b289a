package core

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// AuditRow is one row of the audit log (U131), which records privileged operations. The rows of a namespace form a chain.
type AuditRow struct {
	Number    int64           `json:"number"` // in its chain, from 1 without gaps
	ID        base.UUID       `json:"audit_id"`
	At        base.Time       `json:"at"` // never before that of the preceding row
	Namespace string          `json:"namespace"`
	Principal string          `json:"principal"`
	Action    string          `json:"action"`
	Entity    string          `json:"entity,omitempty"`
	EntityID  string          `json:"entity_id,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	RequestID string          `json:"request_id,omitempty"`
	Address   string          `json:"address,omitempty"`
	Before    json.RawMessage `json:"before,omitempty"` // changed fields, no payloads
	After     json.RawMessage `json:"after,omitempty"`
	Outcome   string          `json:"outcome"` // AuditDone, or the code of a refusal
	PrevHash  []byte          `json:"prev_hash"`
	Hash      []byte          `json:"hash"`
}

// AuditDone is the outcome of a change that was made.
const AuditDone = "done"

// AuditChain is the head of a namespace's chain.
type AuditChain struct {
	First  int64     `json:"first"`  // number of the oldest row that is kept
	Last   int64     `json:"last"`   // number of the newest row
	Anchor []byte    `json:"anchor"` // hash of the row before the oldest, kept when retention removes that row
	Hash   []byte    `json:"hash"`   // of the newest row
	At     base.Time `json:"at"`     // of the newest row
	LookAt base.Time `json:"look_at,omitzero"`

	Keyed   int64  `json:"keyed,omitzero"`   // number of the first row written under an audit key; 0: there is none, and no seal
	Altered int64  `json:"altered,omitzero"` // number of the first row written after the seal or the end of the chain did not match; 0: they always matched
	Seal    []byte `json:"seal,omitempty"`   // over all fields except LookAt and those below

	Minute  base.Time `json:"minute,omitzero"`  // the last one in which rows of bounded callers were written
	Rows    int       `json:"rows,omitzero"`    // and how many
	Refused int       `json:"refused,omitzero"` // and how many of these tell of refusals
}

// NewAuditChain returns the head of a chain without rows. Its anchor binds it to the installation and the namespace, so that rows of one chain
// cannot be passed off as rows of another.
func NewAuditChain(installation base.UUID, namespace string) AuditChain {
	h := sha256.New()
	base.AddPart(h, installation[:])
	base.AddPart(h, []byte(namespace))
	anchor := h.Sum(nil)
	return AuditChain{First: 1, Anchor: anchor, Hash: anchor}
}

// MostAuditRows bounds the row numbers that a head may contain. No installation reaches it, and sums with such numbers do not overflow.
const MostAuditRows = 1 << 62

// Possible reports whether the engine can have written a head with these row numbers. The head may have been altered in the database: nothing must
// be read or dropped by the numbers of an impossible head.
func (c *AuditChain) Possible() bool {
	return c.First >= 1 && c.Last >= c.First-1 && c.Last <= MostAuditRows
}

// Append places a row after the newest one. The id of the row follows from its place.
func (c *AuditChain) Append(row AuditRow) AuditRow {
	for _, text := range []*string{&row.Namespace, &row.Principal, &row.Action, &row.Entity, &row.EntityID, &row.Reason, &row.RequestID, &row.Address} {
		*text = strings.ToValidUTF8(*text, "\ufffd") // a refused value may be any bytes; the row is hashed as it is stored
	}
	row.Number = c.Last + 1
	row.At = base.Later(row.At, c.At)
	row.PrevHash = c.Hash
	place := sha256.Sum256(binary.BigEndian.AppendUint64(bytes.Clone(c.Hash), uint64(row.Number)))
	row.ID = base.MintUUID(row.At, [10]byte(place[:10]))
	row.Hash = row.digest()
	c.Last, c.Hash, c.At = row.Number, row.Hash, row.At
	return row
}

// CountRow counts a row of a bounded caller.
func (c *AuditChain) CountRow(now base.Time, outcome string) {
	c.Rows, c.Refused = c.RowsIn(now)
	c.Minute = minuteOf(now)
	c.Rows++
	if outcome != AuditDone {
		c.Refused++
	}
}

// RowsIn returns how many rows bounded callers have written in the present minute, and how many of these tell of refusals.
func (c *AuditChain) RowsIn(now base.Time) (rows, refused int) {
	if c.Minute != minuteOf(now) { // a clock that was set back begins a new count, too
		return 0, 0
	}
	return c.Rows, c.Refused
}

func minuteOf(t base.Time) base.Time { return t - t%base.Time(base.Minute) }

// Drop removes the oldest row and keeps its hash as the anchor.
func (c *AuditChain) Drop(row *AuditRow) { c.First, c.Anchor = row.Number+1, row.Hash }

// digest is SHA-256 over the previous hash and every field of the row, each with its length.
func (r *AuditRow) digest() []byte {
	h := sha256.New()
	base.AddPart(h, r.PrevHash)
	base.AddPart(h, binary.BigEndian.AppendUint64(nil, uint64(r.Number)))
	base.AddPart(h, r.ID[:])
	base.AddPart(h, binary.BigEndian.AppendUint64(nil, uint64(r.At)))
	for _, text := range []string{r.Namespace, r.Principal, r.Action, r.Entity, r.EntityID, r.Reason, r.RequestID, r.Address, r.Outcome} {
		base.AddPart(h, []byte(text))
	}
	base.AddPart(h, r.Before)
	base.AddPart(h, r.After)
	return h.Sum(nil)
}

// Follows returns what is wrong with the row as the one with that number after the hash prev, or "" if nothing is.
func (r *AuditRow) Follows(number int64, prev []byte) string {
	switch {
	case r.Number != number:
		return "has another number"
	case !bytes.Equal(r.PrevHash, prev):
		return "does not follow the row before"
	case !bytes.Equal(r.Hash, r.digest()):
		return "was changed"
	default:
		return ""
	}
}

// AuditFilter selects rows that match all given parts (U110).
type AuditFilter struct {
	Namespace string
	Principal string
	Action    string
	Entity    string
	EntityID  string
	From, To  base.Time // [From, To)
}

// Validate refuses with invalid_filter a text that no row can have.
func (f *AuditFilter) Validate() error {
	for _, part := range [...]struct{ field, text string }{
		{"namespace", f.Namespace}, {"principal", f.Principal}, {"action", f.Action}, {"entity", f.Entity}, {"entity_id", f.EntityID},
	} {
		if err := CheckFilterText(part.field, part.text); err != nil {
			return err
		}
	}
	return nil
}

// Matches reports whether the filter selects the row.
func (f *AuditFilter) Matches(r *AuditRow) bool {
	for _, part := range [...]struct{ want, is string }{
		{f.Principal, r.Principal}, {f.Action, r.Action}, {f.Entity, r.Entity}, {base.BareID(f.EntityID), base.BareID(r.EntityID)},
	} {
		if part.want != "" && part.want != part.is {
			return false
		}
	}
	return r.At >= f.From && (f.To == 0 || r.At < f.To)
}

// AuditChanges returns the fields in which before and after differ, as they were and as they are: JSON objects with sorted names, nil if empty.
// Both arguments are structs or maps; nil stands for something that did not exist.
func AuditChanges(before, after any) (was, is json.RawMessage) {
	old, present := fieldsOf(before), fieldsOf(after)
	for name, value := range old {
		if other, ok := present[name]; ok && bytes.Equal(value, other) {
			delete(old, name)
			delete(present, name)
		}
	}
	return objectOf(old), objectOf(present)
}

func fieldsOf(thing any) map[string]json.RawMessage {
	if thing == nil {
		return nil
	}
	text, _ := json.Marshal(thing)
	fields := map[string]json.RawMessage{}
	_ = json.Unmarshal(text, &fields)
	return fields
}

func objectOf(fields map[string]json.RawMessage) json.RawMessage {
	if len(fields) == 0 {
		return nil
	}
	text, _ := json.Marshal(fields)
	return text
}

// AuditedWorker is what the audit log shows of an instance.
type AuditedWorker struct {
	Draining bool   `json:"draining"`
	Dead     *Death `json:"dead,omitempty"`
}

// Audited returns what the audit log shows of the instance.
func (w *Worker) Audited() AuditedWorker { return AuditedWorker{Draining: w.Draining, Dead: w.Dead} }

// AuditedExecution is what the audit log shows of an execution: what operators can change, without payloads.
type AuditedExecution struct {
	Status        string        `json:"status"`
	Reason        string        `json:"reason,omitempty"`
	Priority      int           `json:"priority"`
	Tags          base.Tags     `json:"tags,omitempty"`
	DelayUntil    base.Time     `json:"delay_until,omitzero"`
	DeadlineAt    base.Time     `json:"deadline_at,omitzero"`
	Held          *Hold         `json:"held,omitempty"`
	Retained      *Retain       `json:"retained,omitempty"`
	Cancellation  *Cancellation `json:"cancellation,omitempty"`
	ReplayCount   int           `json:"replay_count"`
	TotalAttempts int           `json:"total_attempts"`
	LeaseEpoch    int64         `json:"lease_epoch"`
	InstanceID    string        `json:"worker_instance_id,omitempty"`
}

// Audited returns what the audit log shows of the execution.
func (x *Execution) Audited() AuditedExecution {
	a := AuditedExecution{
		Status: x.Status.String(), Reason: x.Reason.String(), Priority: x.Priority, Tags: x.Tags, DelayUntil: x.DelayUntil,
		DeadlineAt: x.DeadlineAt, Held: x.Held, Retained: x.Retain, Cancellation: x.Cancellation, ReplayCount: x.ReplayCount,
		TotalAttempts: x.TotalAttempts, LeaseEpoch: x.LeaseEpoch,
	}
	if x.Lease != nil {
		a.InstanceID = x.Lease.InstanceID
	}
	return a
}
