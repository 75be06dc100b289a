package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	readyAge  = 10 * time.Second // how long a count of what waits is believed
	readyFull = time.Second      // and how long if there is no room, or the store could not tell
)

// readyBounds knows about how many executions of namespaces wait for workers. Between two counts each submit counts as one that waits, so that
// what is known is rather too much than too little, and the next count puts it right.
type readyBounds struct {
	e  *Engine
	mu sync.Mutex
	of map[string]*readyBound
}

// readyBound is what is known of one namespace. While one caller counts, the others go by what is known.
type readyBound struct {
	mu       sync.Mutex // never held while the store is asked
	known    int
	counting bool
	fresh    int       // taken since the count under way began: it may have missed them
	at       time.Time // when the last count ended, well or not
	failed   bool      // it told nothing
}

// admit counts submits as what waits, and tells which of them are refused because their namespace is full. It does so before they are queued:
// a refusal among the commands of a batch would let the batch run twice, and whoever sends too much would slow all others down. What repeats
// a submit is not refused, as it adds nothing.
func (b *readyBounds) admit(ctx context.Context, cmds ...*submit) (refused map[*submit]error, err error) {
	for _, cmd := range cmds {
		if cmd == nil {
			continue
		}
		if err := b.take(ctx, cmd.s.Namespace, cmd.space); err != nil {
			setIn(&refused, cmd, err)
		}
	}
	for some := range slices.Chunk(cmds, bulkChunk) {
		if len(refused) == 0 {
			return nil, nil
		}
		if err := b.spareRepeats(ctx, some, refused); err != nil {
			return nil, publicFault(err)
		}
	}
	spareLater(cmds, refused)
	return refused, nil
}

// spareRepeats takes those off the refused whose key or id is there already. One whose first try is on its way is refused, and told so when
// it asks again.
func (b *readyBounds) spareRepeats(ctx context.Context, cmds []*submit, refused map[*submit]error) error {
	w := store.Want{SkipUnreadable: true}
	for _, cmd := range cmds {
		if refused[cmd] != nil {
			cmd.seek(&w)
		}
	}
	if len(w.Executions)+len(w.Keys)+len(w.Docs) == 0 {
		return nil
	}
	loaded, err := b.e.store.Read(ctx, w)
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

// seek asks for all that tells whether a submit is a repeat. One without a key or an id of its own never is.
func (s *submit) seek(w *store.Want) {
	if s.s.ID != nil {
		w.Executions = append(w.Executions, s.id.UUID)
	}
	if s.s.IdempotencyKey != "" {
		w.Keys = append(w.Keys, s.key())
	}
	if s.request.Key != "" {
		w.Docs = append(w.Docs, s.request)
	}
}

// isIn tells whether what was found shows that a submit is a repeat, or that its key or id belongs to another one.
func (s *submit) isIn(found *store.Loaded) bool {
	id := s.id.UUID
	row, hasKey := found.Keys[s.key()]
	doc, hasDoc := found.Docs[s.request]
	return found.Executions[id] != nil || found.Unreadable[id] != nil || slices.Contains(found.Unfiled, id) ||
		hasKey && s.s.IdempotencyKey != "" && row.ExpiresAt > found.Now || hasDoc && s.request.Key != "" && doc.ExpiresAt > found.Now
}

// spareLater takes those off the refused that repeat an earlier one of the same call (L87).
func spareLater(cmds []*submit, refused map[*submit]error) {
	if len(refused) == 0 {
		return
	}
	keys, ids := map[store.Key]bool{}, map[core.UUID]bool{}
	for _, cmd := range cmds {
		switch {
		case cmd == nil:
		case refused[cmd] != nil && !ids[cmd.id.UUID] && (cmd.s.IdempotencyKey == "" || !keys[cmd.key()]):
		default:
			delete(refused, cmd)
			keys[cmd.key()], ids[cmd.id.UUID] = true, true
		}
	}
}

// take counts a submission as one that waits, or tells why it may not: rate_limited.
func (b *readyBounds) take(ctx context.Context, namespace string, space core.NamespaceSettings) error {
	if space.MaxReady == 0 {
		return nil
	}
	r := b.bound(namespace)
	if r.begin(b.e.cfg.Clock.Now(), space) {
		b.recount(ctx, r, namespace, space.MaxReady)
	}
	return r.take(space)
}

// begin tells the caller to count, if it is time and nobody else does.
func (r *readyBound) begin(now time.Time, space core.NamespaceSettings) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	age := now.Sub(r.at)
	soon := r.failed || space.CheckReady(r.known) != nil
	if r.counting || age < readyAge && !(soon && age >= readyFull) {
		return false
	}
	r.counting, r.fresh = true, 0
	return true
}

// recount asks the store. If it does not answer what is known stays, and submits fail by themselves.
func (b *readyBounds) recount(ctx context.Context, r *readyBound, namespace string, most int) {
	n, told := 0, false
	defer func() { r.end(n, told, b.e.cfg.Clock.Now()) }() // also when the count panics: nobody else counts before
	var err error
	n, err = b.count(ctx, namespace, most)
	told = err == nil
}

// end notes what a count has found, if anything.
func (r *readyBound) end(n int, told bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if told {
		r.known = n + r.fresh
	}
	r.counting, r.failed, r.at = false, !told, now
}

// take counts one more, if there is room.
func (r *readyBound) take(space core.NamespaceSettings) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := space.CheckReady(r.known); err != nil {
		return err
	}
	r.known++
	r.fresh++
	return nil
}

func (b *readyBounds) bound(namespace string) *readyBound {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.of[namespace]
	if r == nil {
		r = &readyBound{}
		setIn(&b.of, namespace, r)
	}
	return r
}

// count counts what waits, no further than most.
func (b *readyBounds) count(ctx context.Context, namespace string, most int) (int, error) {
	if err := b.e.follower.reach(ctx); err != nil {
		return 0, err
	}
	q := store.Query{Statuses: []core.Status{core.Ready}, Classes: b.e.dict.now().classesIn(namespace)}
	return b.e.store.Count(ctx, q, most)
}
