package flowfabric

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Bounds of a claim.
const (
	maxClaim = 1000
	// linger is how long a busy worker waits for more free slots before it claims for only a few.
	linger = 5 * time.Millisecond
	// briefWait is how long a brief claim waits for work.
	briefWait = 50 * time.Millisecond
)

// flowingClaims is how many claims a worker has in flight: while one brings work, the other waits for what is submitted
// meanwhile, which is handed only to waiting claims. Over a network there is one long poll (U145), and the other claim is brief:
// it waits for a moment, and only while claims bring work.
const flowingClaims = 2

// claimer claims for a share of the free slots, one claim at a time.
type claimer struct {
	r     *runner
	keys  *keySource
	key   string        // of the claim in progress, also when it is retried
	sent  string        // the last key under which one was sent
	share int           // maximum share of all slots that it claims for
	slots int           // free slots that it has taken in order to fill them
	need  atomic.Int64  // number of free slots that it waits for; 0: it does not wait
	freed chan struct{} // signals that slots are free
	flows chan struct{} // of a brief claimer: signals that another claimer got work; nil: the claimer is not brief
	idle  backoff.Idle
}

// newClaimers makes the claimers. Kinds with a bound of their own are claimed by a single claimer.
func (r *runner) newClaimers(n int, brief bool) []*claimer {
	n = max(min(n, r.cfg.Concurrency), 1)
	if len(r.limited) > 0 {
		n = 1
	}
	all := make([]*claimer, n)
	for i := range all {
		all[i] = &claimer{r: r, keys: newKeys(), share: (r.cfg.Concurrency + n - 1) / n, freed: make(chan struct{}, 1)}
		all[i].key = all[i].keys.next()
		if brief && i > 0 {
			all[i].flows = make(chan struct{}, 1)
		}
	}
	return all
}

// claim lets all claimers claim until ctx ends, and waits until the claims in progress have returned. It returns an error only if
// a retry cannot succeed.
func (r *runner) claim(ctx context.Context, start func(func())) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	calls, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	start(func() {
		<-ctx.Done()
		r.leave(calls, giveUp)
	})
	var group sync.WaitGroup
	var first error
	var once sync.Once
	for _, c := range r.claimers {
		group.Go(func() {
			if err := c.run(ctx, calls); err != nil {
				once.Do(func() { first = err })
				stop(err) // stops the others
			}
		})
	}
	group.Wait()
	stop(first)
	return first
}

// run claims for free slots until ctx ends; a claim in progress continues until calls ends.
func (c *claimer) run(ctx, calls context.Context) error {
	r := c.r
	full := false // the last answer had as much as was asked for, so there may be more
	for try := 0; c.awaitFlow(ctx) && c.awaitSlots(ctx, full); {
		got, asked, err := c.round(ctx, calls, c.slots)
		c.slots -= got
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			try, full = 0, got >= asked
			c.giveBack()
			c.wakeBrief(got)
			if r.drains.Load() {
				backoff.Pause(ctx, r.clock, r.beat)
			}
			continue
		case CodeOf(err) == string(base.CodeWorkerNotRegistered):
			if err := r.register(ctx); err != nil {
				return err
			}
			continue
		case hopeless(err):
			return err
		}
		r.complain("claim", err)
		backoff.Pause(ctx, r.clock, max(backoff.Delay(try), RetryDelay(err)))
		try++
	}
	return nil
}

// awaitFlow makes a brief claimer wait until another claim has brought work, unless the outcome of its own last claim is unknown.
// It returns false when ctx ends.
func (c *claimer) awaitFlow(ctx context.Context) bool {
	if c.flows != nil && c.slots == 0 {
		select {
		case <-c.flows:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// wakeBrief wakes brief claimers after a claim that brought work.
func (c *claimer) wakeBrief(got int) {
	if got == 0 {
		return
	}
	for _, other := range c.r.claimers {
		if other.flows != nil {
			wake(other.flows)
		}
	}
}

// round claims once. If kinds have bounds of their own, a claim for several kinds may not bring more than the smallest of them
// permits; so the kinds are first claimed one by one, without waiting, and together only if none had work.
func (c *claimer) round(ctx, calls context.Context, free int) (got, asked int, err error) {
	r := c.r
	claim := func(calls context.Context, kinds []string, most int, wait time.Duration) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n, err := c.claimOnce(calls, kinds, most, wait)
		if err != nil {
			return err
		}
		c.key = c.keys.next()
		got, asked, free = got+n, asked+most, free-n
		return nil
	}
	wait := min(r.cfg.LeaseTTL/3, maxWait)
	if c.flows != nil {
		wait = min(wait, briefWait)
	}
	await := func(calls context.Context, kinds []string, most int) error {
		began := r.clock.Now()
		err := claim(calls, kinds, most, wait)
		switch {
		case got > 0:
			c.idle.News()
		case err == nil:
			c.idle.Pause(ctx, r.clock, began, wait)
		}
		return err
	}
	if len(r.limited) == 0 {
		err = await(calls, r.open, free)
		return got, asked, err
	}
	kinds, narrowest := r.open, free
	if len(r.open) > 0 {
		if err := claim(calls, r.open, free, 0); err != nil {
			return got, asked, err
		}
	}
	for _, h := range r.limited {
		room := min(h.room(), free)
		if room < 1 {
			continue
		}
		if err := claim(calls, []string{h.kind}, room, 0); err != nil {
			return got, asked, err
		}
		kinds, narrowest = append(kinds[:len(kinds):len(kinds)], h.kind), min(narrowest, room)
	}
	if got > 0 || len(kinds) == 0 {
		return got, asked, nil
	}
	asked = 0
	waiting, stop := r.untilRoom(calls, kinds)
	defer stop()
	err = await(waiting, kinds, narrowest)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return 0, narrowest, nil // a kind has room again; a claim with the same key returns what was claimed nevertheless (L117)
	}
	return got, asked, err
}

// untilRoom returns a context that ends when a kind that is left out of a claim is no longer full.
func (r *runner) untilRoom(ctx context.Context, asked []string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if len(asked) == len(r.open)+len(r.limited) {
		return ctx, cancel
	}
	r.leftOut.Store(&cancel)
	for _, h := range r.limited { // one may have got room before leftOut was visible to vacate
		if h.room() > 0 && !slices.Contains(asked, h.kind) {
			cancel()
		}
	}
	return ctx, func() {
		r.leftOut.Store(nil)
		cancel()
	}
}

// maxWait is the longest wait of a claim (S15).
const maxWait = time.Minute

// claimOnce claims up to most tasks of these kinds and hands them to the pool. It waits at most a third of the lease's time, so
// that a lease counted from the start of the call is still valid when the answer arrives.
func (c *claimer) claimOnce(ctx context.Context, kinds []string, most int, wait time.Duration) (int, error) {
	r, repeat := c.r, c.sent == c.key
	c.sent = c.key
	began := r.now()
	answer, err := r.work.Claim(ctx, api.ClaimRequest{
		WorkerID: r.cfg.ID, InstanceID: r.cfg.Instance, Lanes: r.cfg.Lanes, Capabilities: r.cfg.Capabilities, Kinds: kinds,
		Max: min(most, maxClaim), Wait: wait, LeaseTTL: r.cfg.LeaseTTL, RequestKey: c.key, Repeat: repeat, Brief: true,
	})
	if r.meter.called(ctx, err) != nil {
		return 0, err
	}
	r.noteDrain(answer.Drain, "")
	r.place(context.WithoutCancel(ctx), answer, began) // what has begun is ended properly
	return len(answer.Tasks), nil
}

// place gives each claimed task a slot and sends it to the pool.
func (r *runner) place(base context.Context, answer api.ClaimAnswer, began int64) {
	if len(answer.Tasks) == 0 {
		return
	}
	arrived := r.now()
	r.placing.Lock()
	defer r.placing.Unlock()
	earliest, slot := int64(never), 0
	for _, claimed := range answer.Tasks {
		t := &Task{claimed: claimed, handler: r.handlers[claimed.Kind], runner: r}
		t.trusted.Store(began + r.trust)
		t.deadline = moment(arrived, answer.ServerTime, claimed.DeadlineAt)
		t.attemptDeadline = moment(arrived, answer.ServerTime, claimed.AttemptDeadline)
		t.callDeadline.Store(never)
		t.handler.running.Add(1)
		for r.slots[slot].Load() != nil {
			slot++
		}
		t.slot = &r.slots[slot]
		t.slot.Store(t)
		at, _ := t.due()
		earliest = min(earliest, at)
		r.hand(base, t)
	}
	r.lookBy(earliest)
}

// moment converts a time of the store's clock to one of the runner's: not before the store's clock has reached it.
func moment(arrived int64, serverTime, at time.Time) int64 {
	if at.IsZero() {
		return never
	}
	return arrived + int64(at.Sub(serverTime))
}

// passOn frees the place of a task whose handler has returned, before its ending is acknowledged, so that the next task is
// claimed meanwhile; but not while as many endings are being sent as there are places.
func (r *runner) passOn(t *Task) {
	if r.ending.Add(1) > int64(r.cfg.Concurrency) {
		r.ending.Add(-1)
		return
	}
	t.passed = true
	r.leavePlace(t)
}

// vacate removes a task that has ended, and frees its place unless that was done before.
func (r *runner) vacate(t *Task) {
	t.slot.Store(nil)
	if t.passed {
		r.ending.Add(-1)
		return
	}
	r.leavePlace(t)
}

// leavePlace frees the place of a task.
func (r *runner) leavePlace(t *Task) {
	running := int(t.handler.running.Add(-1))
	if end := r.leftOut.Load(); end != nil && running == t.handler.cfg.Concurrency-1 {
		(*end)()
	}
	r.freeSlots(1)
}

// freeSlots marks n slots as free and wakes the claimers that wait for that many.
func (r *runner) freeSlots(n int) {
	free := r.free.Add(int64(n))
	for _, c := range r.claimers {
		if need := c.need.Load(); need != 0 && free >= need {
			wake(c.freed)
		}
	}
}

// takeSlots takes the free slots, up to most. It takes none while fewer than need are free.
func (r *runner) takeSlots(need int64, most int) int {
	for {
		free := r.free.Load()
		if free < need {
			return 0
		}
		n := min(free, int64(most))
		if r.free.CompareAndSwap(free, free-n) {
			return int(n)
		}
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// awaitSlots takes free slots once a claim is worthwhile: at once if the last answer was full, else when half of the share is
// free, or some have been free for a while. After a claim of unknown outcome it still holds its slots: repeating the claim may
// bring as much as the first. It returns false when ctx ends.
func (c *claimer) awaitSlots(ctx context.Context, full bool) bool {
	need := int64(1)
	if full {
		need = max(1, int64(c.share/2))
	}
	defer c.need.Store(0)
	for ctx.Err() == nil {
		c.need.Store(need)
		if c.slots == 0 && c.r.hasRoom() {
			c.slots = c.r.takeSlots(need, c.share)
		}
		if c.slots > 0 {
			return true
		}
		var late <-chan time.Time
		if need > 1 && c.r.free.Load() > 0 {
			timer := c.r.clock.NewTimer(linger)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-c.freed:
		case <-late:
			need = 1
		case <-ctx.Done():
		}
	}
	return false
}

// giveBack returns the slots that no task has filled.
func (c *claimer) giveBack() {
	left := c.slots
	c.slots = 0
	if left > 0 {
		c.r.freeSlots(left)
	}
}

// hasRoom reports whether some kind is not full.
func (r *runner) hasRoom() bool {
	if len(r.open) > 0 {
		return true
	}
	for _, h := range r.limited {
		if h.room() > 0 {
			return true
		}
	}
	return false
}

// keySource generates request keys that differ from those of all other claims of the instance, also of an earlier process with
// the same name.
type keySource struct {
	prefix string
	count  uint64
}

func newKeys() *keySource {
	var random [6]byte
	rand.Read(random[:]) // never fails (crypto/rand)
	return &keySource{prefix: hex.EncodeToString(random[:]) + "-"}
}

func (k *keySource) next() string {
	k.count++
	return k.prefix + strconv.FormatUint(k.count, 36)
}
