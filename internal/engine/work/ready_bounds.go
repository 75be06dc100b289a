package work

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	readyAge   = 10 * time.Second      // how long a count of what waits is used
	readyLong  = time.Minute           // and if its bound is the default, which is far beyond what most namespaces have
	readyFull  = 50 * time.Millisecond // and at least how long, if there is no room now or the store could not count
	readyPause = 10                    // times as long as the last count took the next one has to wait in any case
)

// readyBounds estimates how many executions of each namespace wait for workers. Between two counts each submit counts as one that waits, so the
// estimate is rather too high than too low, and the next count corrects it: soon, if there seems to be no room, since workers may have taken all of
// it.
type readyBounds struct {
	e  *Work
	mu sync.Mutex
	of map[string]*readyBound
}

// readyBound is what is known of one namespace. While one caller counts, the others go by what is known.
type readyBound struct {
	mu       sync.Mutex // never held while the store is asked
	known    int
	counting bool
	fresh    int       // taken since the count under way began: it may have missed them
	begun    int       // number of counts that began
	last     int       // number of the last count that succeeded
	from, at time.Time // when the last count began, and ended, well or not
	failed   bool      // the last count failed
}

// ReadyTaken is what a request has taken of a bound; of none if it is zero.
type ReadyTaken struct {
	r     *readyBound
	n     int // executions
	begun int // how many counts had begun
}

// Back gives back what was taken for a request that created nothing. A count that began later has not seen it anyway.
func (t ReadyTaken) Back() {
	if t.r == nil {
		return
	}
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if t.begun >= t.r.last {
		t.r.known -= t.n
	}
	if t.begun == t.r.begun {
		t.r.fresh -= t.n
	}
}

// settled gives back what the submit has taken, unless it created an execution, or may have.
func (s *Submit) settled(outcome string, err error) { s.taken.Settled(outcome == "created", err) }

// Settled gives back what was taken, unless the request created it, or may have.
func (t ReadyTaken) Settled(created bool, err error) {
	switch code := base.CodeOf(err); {
	case code == base.CodeTimeout || code == base.CodeStoreUnavailable:
	case err != nil || !created:
		t.Back()
	}
}

// giveBack returns what submits have taken that fail before they are queued.
func giveBack(cmds []*Submit) {
	for _, cmd := range cmds {
		if cmd != nil {
			cmd.taken.Back()
		}
	}
}

// admit counts submits as waiting, and returns which of them are refused because their namespace is full. It does so before they are enqueued: a
// refusal among the commands of a batch would make the batch run twice, and a caller that sends too much would slow down all others. A repeat of a
// submit is not refused, since it adds nothing.
func (b *readyBounds) admit(ctx context.Context, cmds ...*Submit) (refused map[*Submit]error, err error) {
	for _, cmd := range cmds {
		if cmd == nil {
			continue
		}
		var err error
		if cmd.taken, err = b.Take(ctx, cmd.S.Namespace, cmd.Space, 1); err != nil {
			txn.SetIn(&refused, cmd, err)
		}
	}
	for some := range slices.Chunk(cmds, bulkChunk) {
		if len(refused) == 0 {
			return nil, nil
		}
		if err := b.spareRepeats(ctx, some, refused); err != nil {
			return nil, txn.PublicFault(err)
		}
	}
	spareLater(cmds, refused)
	return refused, nil
}

// spareRepeats removes from the refused those whose key or id exists already. If the first try is still under way, the repeat is refused and gets
// the answer when it is sent again.
func (b *readyBounds) spareRepeats(ctx context.Context, cmds []*Submit, refused map[*Submit]error) error {
	w := store.Want{SkipUnreadable: true}
	for _, cmd := range cmds {
		if refused[cmd] != nil {
			cmd.seek(&w)
		}
	}
	if len(w.Executions)+len(w.Keys)+len(w.Docs) == 0 {
		return nil
	}
	loaded, err := b.e.Store.Read(ctx, w)
	if err != nil {
		return err
	}
	for _, cmd := range cmds {
		if refused[cmd] != nil && cmd.isIn(loaded) {
			delete(refused, cmd)
		}
	}
	return nil
}

// seek adds the rows that show whether a submit is a repeat. One without a key or an id of its own never is.
func (s *Submit) seek(w *store.Want) {
	if s.S.ID != nil {
		w.Executions = append(w.Executions, s.ID.UUID)
	}
	if s.S.IdempotencyKey != "" {
		w.Keys = append(w.Keys, s.key())
	}
	if s.request.Key != "" {
		w.Docs = append(w.Docs, s.request)
	}
}

// isIn reports whether what was found shows that a submit is a repeat, or that its key or id belongs to another one.
func (s *Submit) isIn(found *store.Loaded) bool {
	id := s.ID.UUID
	row, hasKey := found.Keys[s.key()]
	doc, hasDoc := found.Docs[s.request]
	return found.Executions[id] != nil || found.Unreadable[id] != nil || slices.Contains(found.NotIngested, id) ||
		hasKey && s.S.IdempotencyKey != "" && row.ExpiresAt > found.Now || hasDoc && s.request.Key != "" && doc.ExpiresAt > found.Now
}

// spareLater takes those off the refused that repeat an earlier one of the same call (L87).
func spareLater(cmds []*Submit, refused map[*Submit]error) {
	if len(refused) == 0 {
		return
	}
	keys, ids := map[store.Key]bool{}, map[base.UUID]bool{}
	for _, cmd := range cmds {
		switch {
		case cmd == nil:
		case refused[cmd] != nil && !ids[cmd.ID.UUID] && (cmd.S.IdempotencyKey == "" || !keys[cmd.key()]):
		default:
			delete(refused, cmd)
			keys[cmd.key()], ids[cmd.ID.UUID] = true, true
		}
	}
}

// Take counts n executions as waiting, or returns rate_limited.
func (b *readyBounds) Take(ctx context.Context, namespace string, space core.NamespaceSettings, n int) (ReadyTaken, error) {
	age := readyAge
	if space.MaxReady == 0 && b.e.Dict.Now().Table.Others(namespace) {
		space.MaxReady, age = core.DefaultMaxReady, readyLong
	}
	if space.MaxReady == 0 || n == 0 {
		return ReadyTaken{}, nil
	}
	r := b.bound(namespace)
	if r.begin(b.e.Cfg.Clock.Now(), age, space, n) {
		b.recount(ctx, r, namespace, space.MaxReady)
	}
	return r.take(space, n)
}

// begin reports whether a caller with n submits should count now: it is time, and no other caller does. wait is how long a count is believed while
// there is room.
func (r *readyBound) begin(now time.Time, wait time.Duration, space core.NamespaceSettings, n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed || space.CheckReady(r.known, n) != nil {
		wait = max(readyFull, readyPause*r.at.Sub(r.from))
	}
	if r.counting || !r.at.IsZero() && now.Sub(r.at) < wait {
		return false
	}
	r.counting, r.fresh, r.from = true, 0, now
	r.begun++
	return true
}

// recount asks the store. If it does not answer what is known stays, and submits fail by themselves.
func (b *readyBounds) recount(ctx context.Context, r *readyBound, namespace string, most int) {
	n, told := 0, false
	defer func() { r.end(n, told, b.e.Cfg.Clock.Now()) }() // also if the count panics: until then no other caller counts
	var err error
	n, err = b.count(ctx, namespace, most)
	told = err == nil
}

// end notes what a count has found, if anything.
func (r *readyBound) end(n int, told bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if told {
		r.known, r.last = n+r.fresh, r.begun
	}
	r.counting, r.failed, r.at = false, !told, now
}

// take counts n more, if there is room.
func (r *readyBound) take(space core.NamespaceSettings, n int) (ReadyTaken, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := space.CheckReady(r.known, n); err != nil {
		return ReadyTaken{}, err
	}
	r.known += n
	r.fresh += n
	return ReadyTaken{r, n, r.begun}, nil
}

func (b *readyBounds) bound(namespace string) *readyBound {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.of[namespace]
	if r == nil {
		r = &readyBound{}
		txn.SetIn(&b.of, namespace, r)
	}
	return r
}

// What counts as waiting: what is ready, and what was submitted with a delay or has no room in a quota or budget yet. It was submitted, and becomes
// ready without another submit. Retries, children and paused executions belong to work that has run already.
var (
	waitingStatuses = []core.Status{core.Ready, core.Delayed, core.Blocked}
	waitingReasons  = []core.Reason{core.WaitingForWorker, core.WaitingForDelay, core.WaitingForQuota, core.WaitingForBudget}
)

// count counts what waits, no further than most.
func (b *readyBounds) count(ctx context.Context, namespace string, most int) (int, error) {
	if err := b.e.Follower.Reach(ctx); err != nil {
		return 0, err
	}
	q := store.Query{Statuses: waitingStatuses, Reasons: waitingReasons, Classes: b.e.Dict.Now().ClassesIn(namespace)}
	return b.e.Store.Count(ctx, q, most)
}
