package sim

import (
	"fmt"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// journal is what callers were told.
type journal struct {
	w       *World
	keys    int
	jobs    []*job
	byID    map[base.UUID]*job
	byKey   map[string]*job // by idempotency key
	leases  []*lease
	granted map[base.UUID]*lease // by lease id
	grants  []grant
	waits   []wait
	flows   []*flow
	unknown []*command
	readers []reader
	said    []said
	tailers []*tailer
	deletes bool // something was deleted, or tried to
}

// reader follows the log with a cursor (I6).
type reader struct {
	cursor string
	busy   bool
	seen   []base.UUID // ids of the events, in order
}

func (r *reader) take(page engine.EventPage) {
	for i := range page.Events {
		r.seen = append(r.seen, page.Events[i].ID)
	}
	r.cursor = page.Next
}

// job is an execution that a caller knows of.
type job struct {
	id        base.ID
	lane      string
	epoch     int64 // the highest that was acknowledged
	outcome   core.Status
	cancelled bool // acknowledged
	replayed  bool // or tried to
	deleted   bool // or tried to
	member    bool // of a flow: it goes with others
}

// lease is a lease that a worker was given.
type lease struct {
	j        *job
	f        core.Fence
	instance string
	left     bool  // a command that leaves it was sent
	calls    int64 // that appended frames
}

type grant struct {
	j        *job
	key      keyring.GrantKey
	instance string
}

// wait is a waitpoint with its token.
type wait struct {
	j         *job
	waitpoint base.UUID
	token     keyring.Token
	signals   int
}

// flow is a graph that a caller knows of.
type flow struct {
	id      base.ID
	members map[string]base.ID
	names   []string
	sealed  bool
}

func newJournal(w *World) *journal {
	return &journal{w: w, byID: map[base.UUID]*job{}, byKey: map[string]*job{}, granted: map[base.UUID]*lease{}, readers: []reader{{cursor: "start"}, {cursor: "start"}}}
}

// job returns the entry of an execution, and makes it if there is none.
func (j *journal) job(id base.ID, lane string) *job {
	if known := j.byID[id.UUID]; known != nil {
		return known
	}
	one := &job{id: id, lane: lane}
	j.jobs = append(j.jobs, one)
	j.byID[id.UUID] = one
	return one
}

// submitted takes in the answer to a submit (I1, I8).
func (j *journal) submitted(key string, id base.ID, lane string) *job {
	one := j.job(id, lane)
	if key == "" {
		return one
	}
	if before := j.byKey[key]; before != nil && before != one {
		j.w.found("I8: the key %s was answered with %s and then with %s", key, before.id, id)
	}
	j.byKey[key] = one
	return one
}

// leased takes in a task that a worker got (I2, I10).
func (j *journal) leased(t *engine.Task, instance string) *lease {
	x := t.Execution
	one := j.job(x.ID, x.Class.Lane)
	one.member = one.member || !x.FlowID.IsZero()
	if x.Lease == nil {
		return nil
	}
	l := &lease{j: one, f: core.Fence{LeaseID: x.Lease.ID, Epoch: x.LeaseEpoch, AttemptID: x.Lease.AttemptID}, instance: instance}
	if before := j.granted[x.Lease.ID]; before != nil { // the claim was repeated
		if before.j != one || before.f != l.f {
			j.w.found("I2: lease %s was given twice: %+v and %+v", x.Lease.ID, before.f, l.f)
		}
		return before
	}
	for _, other := range j.leases {
		if other.j == one && other.f.Epoch == l.f.Epoch {
			j.w.found("I2: epoch %d of %s was given to %s and to %s", l.f.Epoch, one.id, other.instance, instance)
		}
	}
	j.granted[x.Lease.ID] = l
	j.leases = append(j.leases, l)
	one.epoch = max(one.epoch, l.f.Epoch)
	return l
}

// ended takes in an acknowledged end (I4, I5, I13).
func (j *journal) ended(one *job, status core.Status, repeated bool) {
	switch {
	case one.replayed || !status.Terminal():
	case one.outcome != core.StatusNone && one.outcome != status && !repeated:
		j.w.found("I4: %s was acknowledged as %s and then as %s", one.id, one.outcome, status)
	case one.outcome == core.StatusNone:
		one.outcome = status
	}
}

// fenced checks that a command under a lease was not accepted although a later epoch had been acknowledged before it began (I3).
func (j *journal) fenced(what string, l *lease, known int64, err error, repeated bool) {
	if err == nil && !repeated && l.f.Epoch < known {
		j.w.found("I3: %s under epoch %d of %s was accepted, %d had been acknowledged", what, l.f.Epoch, l.j.id, known)
	}
}

func (l *lease) String() string { return fmt.Sprintf("%s/%d", short(l.j.id), l.f.Epoch) }

// short abbreviates an id for the story.
func short(id base.ID) string { return id.UUID.String()[24:] }
