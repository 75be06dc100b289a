package httptransport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/backoff"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// A client may have the addresses of several servers of one installation. It uses one of them until that fails; then it uses another at once,
// without the pause before a repeat. A command whose outcome is unknown is repeated there under the same key, and what waits or follows a
// feed asks there for what comes after its cursor: the store knows what has happened, whichever server is asked.
//
// Before the first call the client greets all of them and learns which store they are on. Every later request names it, so that a server
// of another installation refuses the request instead of carrying it out.

// Bounds of how servers are watched.
const (
	greetLimit  = 2 * time.Second  // for a server to answer a greeting or a probe
	probeEvery  = time.Second      // between probes of a server that owes answers and has given none in the meantime
	firstDown   = time.Second      // how long a server that failed is not used, unless all have failed
	longestDown = 30 * time.Second // doubling up to this
	movePause   = 20 * time.Millisecond
)

// hosts are the servers that a client can use. A single one is used whatever its state.
type hosts struct {
	all     []*host
	greeted chan struct{} // holds a token while no call greets

	mu           sync.Mutex
	at           int    // index of the one in use
	met          bool   // greeted
	installation string // what they are servers of; "": not known
	mixed        error  // they are not of one installation
}

// host is one server.
type host struct {
	address string

	// The following fields are guarded by hosts.mu.
	failures int             // in a row
	down     time.Time       // not used before, unless all are down
	foreign  bool            // of another installation: never used again
	heard    time.Time       // the last answer
	owes     int             // tries that wait for an answer
	watched  bool            // a goroutine probes it while it owes answers
	life     context.Context //nolint:containedctx // ends when it fails: the tries in progress get no answer
	end      context.CancelFunc
}

func newHosts(addresses []string) *hosts {
	h := &hosts{greeted: make(chan struct{}, 1)}
	h.greeted <- struct{}{}
	for _, address := range addresses {
		one := &host{address: address}
		one.life, one.end = context.WithCancel(context.Background())
		h.all = append(h.all, one)
	}
	h.met = len(h.all) == 1
	return h
}

func (h *hosts) several() bool { return len(h.all) > 1 }

// pick returns the server for the next try: the one in use, else a random one that has not failed lately, else the one that may be used
// again first.
func (h *hosts) pick(now time.Time) *host {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.all[h.at].usable(now) {
		h.at = h.best(now)
	}
	return h.all[h.at]
}

func (o *host) usable(now time.Time) bool { return !o.foreign && !now.Before(o.down) }

// best returns the index of the server to be used next. Clients that lose a server together spread over the others. mu must be held.
func (h *hosts) best(now time.Time) int {
	var usable []int
	for i, o := range h.all {
		if o.usable(now) {
			usable = append(usable, i)
		}
	}
	if len(usable) > 0 {
		return usable[rand.N(len(usable))] //nolint:gosec // G404: it spreads clients
	}
	first := h.at
	for i, o := range h.all {
		if !o.foreign && (h.all[first].foreign || o.down.Before(h.all[first].down)) {
			first = i
		}
	}
	return first
}

// answered records an answer of a server.
func (h *hosts) answered(o *host, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o.failures, o.down, o.heard = 0, time.Time{}, now
}

// failed records that a server gave no answer to a try that began in a life of it, and gives up the tries that still wait. It reports
// whether another one can be tried at once.
func (h *hosts) failed(o *host, life context.Context, now time.Time) (another bool) { //nolint:revive // life is compared, and nothing runs under it
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.several() {
		return false
	}
	if o.life == life { // the first of the tries that fail together
		o.down = now.Add(min(longestDown, firstDown<<min(o.failures, 5)))
		o.failures++
		o.end()
		o.life, o.end = context.WithCancel(context.Background())
	}
	return slices.ContainsFunc(h.all, func(other *host) bool { return other.usable(now) })
}

// pass makes the next try use another server if there is one: this one answers, but cannot serve.
func (h *hosts) pass(o *host, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all[h.at] != o {
		return
	}
	var others []int
	for i, other := range h.all {
		if other != o && other.usable(now) {
			others = append(others, i)
		}
	}
	if len(others) > 0 {
		h.at = others[rand.N(len(others))] //nolint:gosec // G404: it spreads clients
	}
}

// exclude never uses a server again, because it is of another installation.
func (h *hosts) exclude(o *host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o.foreign = true
}

// expected is the installation that requests name; "": it is not known, or there is a single server.
func (h *hosts) expected() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.installation
}

// isMet reports whether the servers were greeted, and why they cannot be used together.
func (h *hosts) isMet() (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.met, h.mixed
}

// greeting is the answer to a greeting.
type greeting struct {
	installation string
	err          error
}

// meet greets all servers before the first call. It fails if none answers, which is tried again by the next call, or if they are not of
// one installation, which stays so.
func (t *Transport) meet(ctx context.Context) error {
	if met, err := t.hosts.isMet(); met || err != nil {
		return err
	}
	select {
	case <-t.hosts.greeted:
	case <-ctx.Done():
		return fmt.Errorf("flowfabric: %w", context.Cause(ctx))
	}
	defer func() { t.hosts.greeted <- struct{}{} }()
	if met, err := t.hosts.isMet(); met || err != nil {
		return err
	}
	answers := make([]greeting, len(t.hosts.all))
	var all sync.WaitGroup
	for i, o := range t.hosts.all {
		all.Go(func() { answers[i].installation, answers[i].err = t.greet(ctx, o) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("flowfabric: %w", context.Cause(ctx))
	}
	return t.hosts.learn(answers, t.clock.Now())
}

// learn evaluates the greetings.
func (h *hosts) learn(answers []greeting, now time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, alive, problems := -1, []int{}, []string{}
	for i, answer := range answers {
		switch o := h.all[i]; {
		case answer.err != nil:
			o.failures, o.down = o.failures+1, now.Add(firstDown)
			problems = append(problems, answer.err.Error())
			continue
		case answer.installation == "": // it is older, or something in front of it removes the header
		case known < 0:
			known = i
		case answer.installation != answers[known].installation:
			h.mixed = refuse(base.CodeWrongDatabase, "%s and %s are servers of two installations", h.all[known].address, o.address).
				At("server", "name servers that use one store")
			return h.mixed
		}
		alive = append(alive, i)
	}
	if len(alive) == 0 {
		return refuse(base.CodeStoreUnavailable, "none of the servers can be reached: %s", strings.Join(problems, "; "))
	}
	if known >= 0 {
		h.installation = answers[known].installation
	}
	h.met, h.at = true, alive[rand.N(len(alive))] //nolint:gosec // G404: it spreads clients
	return nil
}

// greet asks a server whether it lives, and which installation it is of.
func (t *Transport) greet(ctx context.Context, o *host) (installation string, err error) {
	ctx, cancel := context.WithTimeout(ctx, greetLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.address+wire.GetHealth.Path, nil)
	if err != nil {
		return "", withoutPath(err)
	}
	response, err := t.http.Do(request)
	if err != nil {
		return "", withoutPath(err)
	}
	defer response.Body.Close()
	if cutOff(response.StatusCode) {
		return "", fmt.Errorf("%s answered with status %d", o.address, response.StatusCode)
	}
	return response.Header.Get(wire.HeaderInstallation), nil
}

// cutOff reports whether a status says that an intermediary could not reach the server.
func cutOff(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// try sends a request to the server that is in use. another reports whether it failed in a way that lets a repeat use another server at
// once.
func (t *Transport) try(ctx context.Context, m wire.Message, limit time.Duration) (answer sent, another bool, err error) {
	if err := t.meet(ctx); err != nil {
		return sent{}, false, err
	}
	o := t.hosts.pick(t.clock.Now())
	if !t.hosts.several() {
		answer, err = t.once(ctx, o, m, limit)
		return answer, false, err
	}
	during, life, leave := t.owe(ctx, o)
	answer, err = t.once(during, o, m, limit)
	leave()
	now := t.clock.Now()
	var lost *lostError
	switch code := base.Code(api.CodeOf(err)); {
	case err == nil:
		t.hosts.answered(o, now)
	case ctx.Err() != nil: // the caller has given up, which says nothing about the server
	case errors.As(err, &lost), code == base.CodeShuttingDown, code == base.CodeStarting:
		another = t.hosts.failed(o, life, now)
	case code == base.CodeStoreUnavailable:
		t.hosts.answered(o, now)
		t.hosts.pass(o, now)
	case code == base.CodeWrongDatabase && t.hosts.expected() != "" && refusedAsForeign(err):
		t.hosts.exclude(o)
		err = refuse(base.CodeWrongDatabase, "%s is a server of another installation", o.address).At("server", "name servers that use one store")
	default:
		t.hosts.answered(o, now)
	}
	return answer, another, err
}

// refusedAsForeign reports whether a server refused a request because it named another installation.
func refusedAsForeign(err error) bool {
	var refusal *api.Error
	return errors.As(err, &refusal) && refusal.Field == "header."+wire.HeaderInstallation
}

// owe counts a try that waits for the answer of a server, and returns a context that ends when the server is found to have failed, and the
// life of the server in which that has not happened.
func (t *Transport) owe(ctx context.Context, o *host) (during, life context.Context, leave func()) {
	t.hosts.mu.Lock()
	life = o.life
	o.owes++
	if !o.watched {
		o.watched = true
		t.watches.Go(func() { t.watch(o) })
	}
	t.hosts.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(life, cancel)
	return ctx, life, func() {
		stop()
		cancel()
		t.hosts.mu.Lock()
		defer t.hosts.mu.Unlock()
		o.owes--
	}
}

// watch probes a server while it owes answers: one that has stopped, or whose machine is gone, does not close its connections.
func (t *Transport) watch(o *host) {
	for backoff.Pause(t.life, t.clock, probeEvery) {
		now := t.clock.Now()
		t.hosts.mu.Lock()
		owes, silent, life := o.owes, now.Sub(o.heard) >= probeEvery, o.life
		if owes == 0 {
			o.watched = false
			t.hosts.mu.Unlock()
			return
		}
		t.hosts.mu.Unlock()
		if !silent {
			continue
		}
		_, err := t.greet(t.life, o)
		switch {
		case t.life.Err() != nil:
		case err == nil:
			t.hosts.answered(o, t.clock.Now())
		default:
			t.hosts.failed(o, life, t.clock.Now())
		}
	}
	t.hosts.mu.Lock()
	defer t.hosts.mu.Unlock()
	o.watched = false
}

// lostError marks an error of a try that the server itself has not answered.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }
