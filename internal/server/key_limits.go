package server

import (
	"context"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/internal/service"
)

// sharedLimits count what all servers on a store have used of a limit (U129).
type sharedLimits interface {
	// TakeRate takes from an allowance of perSecond; got may be more than want, for later use. If got is 0, there is none for the
	// returned time.
	TakeRate(ctx context.Context, name string, perSecond, want int) (got int, wait time.Duration, err error)
	// AcquireSlots sets how many of most places this process wants to hold, and returns how many it holds. It must be called again
	// within 15 s.
	AcquireSlots(ctx context.Context, name string, most, want int) (got int, err error)
	// NamespaceBounds returns what servers enforce for a namespace.
	NamespaceBounds(ctx context.Context, namespace string) (service.NamespaceBounds, error)
}

// keyLimits applies the limits of keys on concurrent and per-second requests, and those of namespaces per second. What is not
// limited has no cost.
type keyLimits struct {
	shared sharedLimits
	active *activity

	mu     sync.Mutex
	rates  map[string]*ratePart
	places map[string]*placesPart
}

func newKeyLimits(shared sharedLimits) *keyLimits {
	return &keyLimits{shared: shared, active: newActivity(), rates: map[string]*ratePart{}, places: map[string]*placesPart{}}
}

// enter lets a request of a key in, or answers rate_limited. Call leave when the request is done.
func (k *keyLimits) enter(ctx context.Context, key *Key) (leave func(), err error) {
	leave = func() {}
	if key == nil {
		return leave, nil
	}
	if key.MaxInFlight > 0 {
		places := partOf(k, k.places, key.ID, func() *placesPart { return &placesPart{shared: k.shared, name: "key/" + key.ID} })
		if !places.enter(ctx, key.MaxInFlight) {
			return nil, refuse("rate_limited", "the key has as many requests under way as it may").after(time.Second).current("limit", key.MaxInFlight)
		}
		leave = places.leave
	}
	if key.MaxRequestsPerSecond > 0 {
		if wait := k.take(ctx, "key/"+key.ID, key.MaxRequestsPerSecond, 1); wait > 0 {
			leave()
			return nil, refuse("rate_limited", "the key makes more requests a second than it may").after(wait).current("limit", key.MaxRequestsPerSecond)
		}
	}
	return leave, nil
}

// submit lets so many submits into a namespace, or answers rate_limited.
func (k *keyLimits) submit(ctx context.Context, namespace string, n int) error {
	set, err := k.shared.NamespaceBounds(ctx, namespace)
	limit := set.Submits
	if err != nil || limit == 0 || n == 0 {
		return err
	}
	if wait := k.take(ctx, "submits/"+namespace, limit, n); wait > 0 {
		return refuse("rate_limited", "the namespace takes no more submits in this second").after(wait).current("limit", limit)
	}
	return nil
}

func (k *keyLimits) take(ctx context.Context, name string, perSecond, n int) (wait time.Duration) {
	part := partOf(k, k.rates, name, func() *ratePart { return &ratePart{shared: k.shared, name: name, unused: k.forgetRate} })
	return part.take(ctx, perSecond, n)
}

// forgetRate gives back the memory of a rate from which nothing was taken of late. A request that still has the part may take from it: all parts of a
// name take from the same shared rate.
func (k *keyLimits) forgetRate(part *ratePart) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rates[part.name] == part {
		delete(k.rates, part.name)
	}
}

func partOf[P any](k *keyLimits, parts map[string]*P, name string, create func() *P) *P {
	k.mu.Lock()
	defer k.mu.Unlock()
	part := parts[name]
	if part == nil {
		part = create()
		parts[name] = part
	}
	return part
}

// ratePart is what this server has left of a rate.
type ratePart struct {
	shared sharedLimits
	name   string
	unused func(*ratePart) // called when nothing is left and nothing is known of the rate

	mu     sync.Mutex // held while the store is asked: one asks for all
	left   int
	spoils *time.Timer // discards what is left
	dry    bool        // there is none, anywhere
	dryFor time.Duration
}

// leftFor is how long what is left may be used: it was counted when it was taken.
const leftFor = time.Second

// take takes n, or returns how long there is none. While the store does not answer nothing is limited: the store then refuses the
// calls itself.
func (p *ratePart) take(ctx context.Context, perSecond, n int) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.left >= n:
		p.left -= n
		return 0
	case p.dry:
		return p.dryFor
	}
	got, wait, err := p.shared.TakeRate(ctx, p.name, perSecond, n-p.left)
	switch {
	case err != nil:
		return 0
	case got == 0:
		p.dry, p.dryFor = true, max(wait, time.Millisecond)
		time.AfterFunc(p.dryFor, p.refilled)
		return p.dryFor
	}
	p.left += got - n
	if p.spoils == nil {
		p.spoils = time.AfterFunc(leftFor, p.spoil)
	}
	p.spoils.Reset(leftFor)
	return 0
}

func (p *ratePart) refilled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dry = false
	p.rest()
}

func (p *ratePart) spoil() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = 0
	p.rest()
}

// rest makes the part removable unless it has state. The lock is held.
func (p *ratePart) rest() {
	if p.left == 0 && !p.dry {
		p.unused(p)
	}
}

// placesPart is what this server holds of the places that a key has for requests under way.
type placesPart struct {
	shared sharedLimits
	name   string

	mu     sync.Mutex // held while the store is asked: one asks for all
	most   int
	held   int
	used   int
	peak   int         // used at most since the last review
	full   bool        // there is no place, anywhere
	review *time.Timer // gives back unused places; nil before the first request
	runs   bool        // the review is on
	silent int         // reviews since the store was asked
}

const (
	placesBlocks = 40 // in so many blocks the places of a key are taken
	placesReview = 100 * time.Millisecond
	placesAgain  = 50 // reviews after which the places are stated again
	fullFor      = 50 * time.Millisecond
	storeLimit   = 5 * time.Second
)

// enter takes a place, if there is one. While the store does not answer nothing is limited: the store then refuses the calls
// itself.
func (p *placesPart) enter(ctx context.Context, most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = most
	switch {
	case p.used < min(p.held, most):
	case p.full:
		return false
	default:
		if err := p.hold(ctx, max(p.held, p.used)+max(1, most/placesBlocks)); err == nil && p.held <= p.used {
			p.full = true
			time.AfterFunc(fullFor, p.emptied)
			return false
		}
	}
	p.used++
	p.peak = max(p.peak, p.used)
	p.startReview()
	return true
}

// hold sets how many places are wanted. The lock is held.
func (p *placesPart) hold(ctx context.Context, want int) error {
	got, err := p.shared.AcquireSlots(ctx, p.name, p.most, want)
	if err == nil {
		p.held, p.silent = got, 0
	}
	return err
}

func (p *placesPart) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used--
}

func (p *placesPart) emptied() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full = false
}

// startReview lets the places be reviewed until none is held. The lock is held.
func (p *placesPart) startReview() {
	switch {
	case p.runs:
	case p.review == nil:
		p.review = time.AfterFunc(placesReview, p.reviewPlaces)
	default:
		p.review.Reset(placesReview)
	}
	p.runs = true
}

// reviewPlaces gives back what was not used lately, and says now and then that the rest is still held.
func (p *placesPart) reviewPlaces() {
	p.mu.Lock()
	defer p.mu.Unlock()
	want := p.peak
	p.peak, p.silent = p.used, p.silent+1
	if want != p.held || p.silent >= placesAgain {
		ctx, cancel := context.WithTimeout(context.Background(), storeLimit)
		defer cancel()
		if err := p.hold(ctx, want); err != nil && p.used == 0 {
			p.held = 0 // the store forgets them by itself
		}
	}
	if p.runs = p.held > 0 || p.used > 0; p.runs {
		p.review.Reset(placesReview)
	}
}
