package txn

import (
	"maps"
	"sync"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	rateSlice  = 5 * base.Second
	rateSlices = 60 // five minutes
)

// Rates are executions a second in a lane (U100).
type Rates struct{ Submitted, Started, Completed Rate }

// Rate is an average over the last minute and over the last five.
type Rate struct{ OneMinute, FiveMinutes float64 }

// rates counts what passes through each lane, from the log that the process follows: in memory, since its start.
type rates struct {
	mu    sync.Mutex
	since base.Time // the first moment counted; absent: nothing yet
	lanes map[ratedLane]*laneRate
}

type ratedLane struct{ lane, namespace string }

// laneRate is a ring of slices of time.
type laneRate struct {
	slices [rateSlices]rateCounts
	newest int64 // number of the slice counted last
}

type rateCounts struct {
	slice                         int64 // number of the slice; a slot of an older one counts for nothing
	submitted, started, completed int32
}

func newRates() *rates { return &rates{lanes: map[ratedLane]*laneRate{}} }

// start sets the time from which the log is followed.
func (r *rates) start(now base.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since = now
}

// hear counts the events of a commit.
func (r *rates) hear(c *store.Commit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range c.Events {
		ev := &c.Events[i]
		if ev.Class == nil {
			continue
		}
		switch ev.Kind {
		case "execution.submitted":
			r.slot(ev.Class, c.At).submitted++
		case "lease.acquired":
			r.slot(ev.Class, c.At).started++
		case "execution.completed":
			r.slot(ev.Class, c.At).completed++
		}
	}
}

// slot is where an event of the class at that moment is counted. The lock is held.
func (r *rates) slot(class *core.Class, at base.Time) *rateCounts {
	slice := int64(at) / rateSlice
	key := ratedLane{class.Lane, class.Namespace}
	lane := r.lanes[key]
	if lane == nil {
		r.forget(slice)
		lane = &laneRate{}
		r.lanes[key] = lane
	}
	slot := &lane.slices[slice%rateSlices]
	if slot.slice != slice {
		*slot = rateCounts{slice: slice}
	}
	lane.newest = max(lane.newest, slice)
	return slot
}

// forget drops the lanes in which nothing has happened for five minutes.
func (r *rates) forget(now int64) {
	maps.DeleteFunc(r.lanes, func(_ ratedLane, lane *laneRate) bool { return lane.newest <= now-rateSlices })
}

// Of is what goes through a lane, as far as the caller sees it.
func (r *rates) Of(c Caller, lane string, now base.Time) Rates {
	r.mu.Lock()
	defer r.mu.Unlock()
	var answer Rates
	for key, counted := range r.lanes {
		if key.lane == lane && c.Sees(key.namespace) {
			counted.add(&answer, r.since, now)
		}
	}
	return answer
}

func (l *laneRate) add(to *Rates, since, now base.Time) {
	present := int64(now) / rateSlice
	for i := range l.slices {
		slot := &l.slices[i]
		age := present - slot.slice
		if age < 0 || age >= rateSlices {
			continue
		}
		for _, counted := range []struct {
			n    int32
			rate *Rate
		}{{slot.submitted, &to.Submitted}, {slot.started, &to.Started}, {slot.completed, &to.Completed}} {
			counted.rate.FiveMinutes += float64(counted.n) / span(since, now, rateSlices)
			if age < rateSlices/5 {
				counted.rate.OneMinute += float64(counted.n) / span(since, now, rateSlices/5)
			}
		}
	}
}

// span is how many seconds the last n slices cover by now: less right after the start, but never nothing.
func span(since, now base.Time, n int64) float64 {
	from := base.Time((int64(now)/rateSlice - n + 1) * rateSlice)
	return max(float64(now.Sub(max(from, since)))/1000, 1)
}
