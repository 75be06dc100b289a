package webhook

import (
	"encoding/binary"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// How the deliveries of an endpoint are kept and worked on.
const (
	LeaseMS       = 30 * base.Second // for which a process works on an endpoint, from its last write
	MostPending   = 10_000           // deliveries of an endpoint; while there are as many, events wait in the log
	ResumePending = MostPending / 2  // with as few, events are taken from the log again
	MostRanges    = 16               // parts of the log that wait to be sent again
	KeptDone      = 1_000            // delivered ones that can be looked at, the newest
	KeptOther     = 10_000           // dead and cancelled ones, each
)

// Place is a position in the event log: behind so many events of a commit, and behind all events of the commits before it.
type Place struct {
	Seq   int64 `json:"seq"`
	Index int32 `json:"index,omitempty"`
}

// Before reports whether the place comes before another one.
func (p Place) Before(q Place) bool { return p.Seq < q.Seq || p.Seq == q.Seq && p.Index < q.Index }

// Range is a part of the log whose events are still to be sent: those behind From, up to To.
type Range struct {
	From Place `json:"from"`
	To   Place `json:"to"`
}

// Queue is what is known of the deliveries of one endpoint. Its record is their lock. The process that holds the lease sends them; no other one does
// until the lease has ended by the store's clock (E42).
type Queue struct {
	Owner string    `json:"owner,omitempty"` // the process that holds the lease
	Epoch int64     `json:"epoch"`           // of the lease: grows with every one
	Until base.Time `json:"until,omitzero"`  // of the lease

	Queued    int `json:"queued"`   // deliveries that are to be sent at once
	Retrying  int `json:"retrying"` // that wait after a failure
	Done      int `json:"done"`     // records of each state
	Dead      int `json:"dead"`
	Cancelled int `json:"cancelled"`

	LastID      base.UUID `json:"last_id,omitzero"`      // of the newest delivery
	CancelledTo base.UUID `json:"cancelled_to,omitzero"` // pending deliveries up to this one are cancelled

	Stopped *Place  `json:"stopped,omitempty"` // events behind this are not taken now: it is disabled or has too many pending
	Ranges  []Range `json:"ranges,omitempty"`

	Slow         bool      `json:"slow,omitempty"` // one request at a time until the next success
	FailingSince base.Time `json:"failing_since,omitzero"`
	DeadSince    int       `json:"dead_since,omitempty"` // deliveries that have died since the last success
	TimerAt      base.Time `json:"timer_at,omitzero"`    // of the earliest timer that stands for the end of the lease
	DueTimer     base.Time `json:"due_timer,omitzero"`   // of the earliest timer that stands for a further attempt
}

// Pending is the number of deliveries that are not finished.
func (q *Queue) Pending() int { return q.Queued + q.Retrying }

// MayFill reports whether deliveries may be made of a part of the log now.
func (q *Queue) MayFill() bool { return len(q.Ranges) > 0 && q.Pending() < MostPending }

// Leased reports whether a process works on the endpoint.
func (q *Queue) Leased(now base.Time) bool { return q.Owner != "" && now < q.Until }

// Holds reports whether the process holds the lease of that epoch. It may have run out: as long as no other one was given, it is good.
func (q *Queue) Holds(owner string, epoch int64) bool { return q.Owner == owner && q.Epoch == epoch }

// Take gives the lease to a process.
func (q *Queue) Take(owner string, now base.Time) {
	q.Owner, q.Until = owner, now.Add(LeaseMS)
	q.Epoch++
}

// Renew extends the lease.
func (q *Queue) Renew(now base.Time) { q.Until = base.Later(q.Until, now.Add(LeaseMS)) }

// Release ends the lease.
func (q *Queue) Release() { q.Owner, q.Until = "", 0 }

// Stop takes no events behind a place until Resume.
func (q *Queue) Stop(at Place) {
	if q.Stopped == nil {
		q.Stopped = &at
	}
}

// Resume takes events again that are behind a place of the feed; those between are a range. It reports whether there are some.
func (q *Queue) Resume(feed Place) bool {
	if q.Stopped == nil {
		return false
	}
	from := *q.Stopped
	q.Stopped = nil
	if !from.Before(feed) {
		return false
	}
	q.Ranges = append(q.Ranges, Range{From: from, To: feed})
	return true
}

// NextID returns the id of another delivery: ids of an endpoint increase in the order in which they are made, whatever the clock does.
func (q *Queue) NextID(now base.Time, random [10]byte) base.UUID {
	// The first 48 bits are the time, the next 12 and 24 a count within it.
	at, count := base.Time(0), uint64(0)
	if !q.LastID.IsZero() {
		at, count = timeAndCount(q.LastID)
	}
	if now > at {
		at, count = now, 0
	} else if count++; count >= 1<<36 {
		at, count = at+1, 0
	}
	binary.BigEndian.PutUint16(random[0:], uint16(count>>24)&0x0fff)
	random[2] = byte(count>>18) & 0x3f
	random[3], random[4], random[5] = byte(count>>10), byte(count>>2), byte(count<<6)|random[5]&0x3f
	q.LastID = base.MintUUID(at, random)
	return q.LastID
}

// timeAndCount are the parts of an id of NextID.
func timeAndCount(id base.UUID) (base.Time, uint64) {
	var ms [8]byte
	copy(ms[2:], id[:6])
	count := uint64(binary.BigEndian.Uint16(id[6:])&0x0fff)<<24 | uint64(id[8]&0x3f)<<18 | uint64(id[9])<<10 | uint64(id[10])<<2 | uint64(id[11])>>6
	return base.Time(binary.BigEndian.Uint64(ms[:])), count
}

// Succeeded records that the receiver has taken a delivery.
func (q *Queue) Succeeded() { q.Slow, q.FailingSince, q.DeadSince = false, 0, 0 }

// Failed records a failed attempt. A receiver that does not answer gets one request at a time, too: it must not take the places of others.
func (q *Queue) Failed(now base.Time, v Verdict, answered, dead bool) {
	if q.FailingSince == 0 {
		q.FailingSince = now
	}
	q.Slow = q.Slow || v.Slow || !answered
	if dead {
		q.DeadSince++
	}
}

// Fails reports whether the endpoint is to be disabled: no success for FailingAfter, and at least one dead delivery (E43).
func (q *Queue) Fails(now base.Time) bool {
	return q.FailingSince != 0 && q.DeadSince > 0 && now.Sub(q.FailingSince) >= FailingAfter
}

// Places is how many requests the endpoint gets at a time.
func (q *Queue) Places(max int) int {
	if q.Slow {
		return 1
	}
	return max
}
