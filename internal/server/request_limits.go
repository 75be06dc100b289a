package server

import (
	"context"
	"runtime"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/flowfabric/flowfabric/internal/clock"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// How many requests a namespace may send (U21, U129), so that no tenant takes the processors from the others.
const (
	// requestsPerProcessor is the default for each processor and second, as long as several namespaces send requests to this process. It is
	// chosen well below what a processor answers by docs/benchmarks.md, not measured by itself.
	requestsPerProcessor = 1000
	// runningShare is how many times more calls a namespace has for work that runs, apart from all others. Refusing them costs leases, and
	// attempts that are made again cost more than was saved: no flood of reads or submits may use them up.
	runningShare = 4
	// activeFor is how long a namespace counts as active after its last request.
	activeFor = 10 * time.Second
	// sweepEvery is how often those are looked for that do so no more.
	sweepEvery = time.Second
)

// keepsWork are the operations that keep or end work that runs. A claim begins some: it can wait.
var keepsWork = map[string]bool{
	wire.RegisterWorker.ID: true, wire.HeartbeatWorker.ID: true, wire.SendWork.ID: true, wire.RenewLease.ID: true, wire.ReportProgress.ID: true,
	wire.CompleteExecution.ID: true, wire.FailExecution.ID: true, wire.ReleaseExecution.ID: true, wire.DelayExecution.ID: true, wire.PutStep.ID: true,
	wire.SuspendExecution.ID: true, wire.WaitForChildren.ID: true,
}

// request lets a request into the namespaces that it is for, or answers rate_limited. Keys for all namespaces are not counted: operators must
// be able to act while a tenant sends too much. Neither is what needs no key, nor metrics.
func (k *keyLimits) request(ctx context.Context, x *exchange) error {
	if x.caller.key == nil || x.caller.everywhere || x.route.Roles&wire.Open != 0 || x.route.ID == wire.GetMetrics.ID {
		return nil
	}
	for _, namespace := range x.caller.Namespaces {
		if err := k.requestIn(ctx, namespace, keepsWork[x.route.ID]); err != nil {
			return err
		}
	}
	return nil
}

func (k *keyLimits) requestIn(ctx context.Context, namespace string, running bool) error {
	wait, limit := k.active.take(namespace, running)
	bounds, err := k.shared.NamespaceBounds(ctx, namespace)
	set := bounds.Requests
	switch {
	case err != nil: // while the store does not answer nothing is limited: the store then refuses the calls itself
		return nil
	case set > 0 && running:
		limit = set * runningShare
		wait = k.take(ctx, "running/"+namespace, limit, 1)
	case set > 0:
		limit = set
		wait = k.take(ctx, "requests/"+namespace, limit, 1)
	}
	if wait <= 0 {
		return nil
	}
	return refuse("rate_limited", "the namespace sends more requests a second than it may").after(wait).
		current("setting", "max_requests_per_second").current("limit", limit).
		hint("send fewer requests, submit in bulk, or raise `max_requests_per_second` of the namespace")
}

// activity tracks which namespaces send requests to this process, and bounds those without a setting of their own. A single
// active namespace is not bounded, because no other needs protection from it.
type activity struct {
	clock     clock.Clock
	perSecond int // of each namespace

	mu    sync.Mutex
	by    map[string]*active
	swept time.Time
}

// active is a namespace that sends requests.
type active struct {
	last           time.Time
	calls, running *rate.Limiter
}

func newActivity() *activity {
	return &activity{clock: clock.System(), perSecond: requestsPerProcessor * runtime.GOMAXPROCS(0), by: map[string]*active{}}
}

// take takes one request of the default, or returns how long there is none.
func (a *activity) take(namespace string, running bool) (wait time.Duration, limit int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	a.sweep(now)
	one := a.by[namespace]
	if one == nil {
		one = &active{calls: limiter(a.perSecond), running: limiter(a.perSecond * runningShare)}
		a.by[namespace] = one
	}
	one.last = now
	if len(a.by) == 1 {
		return 0, 0
	}
	from := one.calls
	if running {
		from = one.running
	}
	reserved := from.ReserveN(now, 1)
	if wait = reserved.DelayFrom(now); wait > 0 {
		reserved.CancelAt(now)
	}
	return wait, from.Burst()
}

// limiter lets so many through in a second, all of them at once if need be.
func limiter(perSecond int) *rate.Limiter { return rate.NewLimiter(rate.Limit(perSecond), perSecond) }

// sweep forgets namespaces that have sent nothing for long. The lock is held.
func (a *activity) sweep(now time.Time) {
	if now.Sub(a.swept) < sweepEvery {
		return
	}
	a.swept = now
	for name, one := range a.by {
		if now.Sub(one.last) >= activeFor {
			delete(a.by, name)
		}
	}
}
