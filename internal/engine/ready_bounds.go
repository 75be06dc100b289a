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
	readyFull = time.Second      // and how long if it says that there is no room
)

// readyBounds knows about how many executions of namespaces wait for workers. Between two counts each submit counts as one that waits, so that
// what is known is rather too much than too little, and the next count puts it right.
type readyBounds struct {
	e  *Engine
	mu sync.Mutex
	of map[string]*readyBound
}

type readyBound struct {
	mu    sync.Mutex // held while the store counts: one asks for all
	known int
	at    time.Time
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
	r.mu.Lock()
	defer r.mu.Unlock()
	now := b.e.cfg.Clock.Now()
	if age := now.Sub(r.at); age >= readyAge || age >= readyFull && space.CheckReady(r.known) != nil {
		if n, err := b.count(ctx, namespace, space.MaxReady); err == nil { // a store that does not answer refuses by itself
			r.known, r.at = n, now
		}
	}
	if err := space.CheckReady(r.known); err != nil {
		return err
	}
	r.known++
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
