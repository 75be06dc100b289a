package txn

import (
	"context"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Limits of a claim (S15).
const (
	maxClaimLanes = 64
	maxClaimTasks = 1000
	maxClaimWait  = 60 * time.Second
	// maxClaimBytes bounds the inputs of one answer: what one call may bring, one call may take (L6). One task is always given.
	maxClaimBytes = maxBulkBytes
)

// claim is one call that waits for work. The picker's lock protects its state while it waits. While serving is set, the transaction that serves it
// sets since and answer.
type claim struct {
	caller    Caller
	req       ClaimRequest
	filter    string // equal for calls that match the same classes
	deadline  time.Time
	began     time.Time
	closing   bool      // there is nothing for it: the next look records that
	looked    bool      // it has read the store at least once
	looks     int       // number of picks that have looked for it
	asked     bool      // the poll has checked whether it was answered before
	whole     bool      // it has read its queues from their starts
	patient   time.Time // until when it waits for what others hold, past its deadline; zero: it has met nothing of the kind
	bystander bool      // it asks for grants of an instance that is not the caller's: it keeps nothing alive
	gone      bool      // its caller has given up
	serving   bool      // a transaction for it is under way
	check     bool      // its worker's record may have changed: read it again
	since     base.Time // when the caller got the instance: earlier leases belong to another caller
	struck    base.UUID // the row with which it made a pick panic
	answer    ClaimAnswer
	err       error
	done      chan struct{}
	span      Span // nil: none
}

// Claim takes work for a worker (S15..S23). It waits for up to r.Wait while there is none.
func (e *Engine) Claim(ctx context.Context, c Caller, r ClaimRequest) (answer ClaimAnswer, err error) {
	defer func() { e.Meter.claimed(len(answer.Tasks), err) }()
	call, err := e.newClaim(c, r)
	if err != nil {
		return ClaimAnswer{}, err
	}
	call.span = e.startSpan(ctx, "claim")
	if err := e.served(ctx, call); err != nil {
		return call.answer, err
	}
	answer = call.answer // a copy: the picker may still read its own
	answer.Tasks, err = e.tellTasks(ctx, answer.Tasks)
	return answer, err
}

// served waits until the picker has answered a call.
func (e *Engine) served(ctx context.Context, call *claim) error {
	if err := e.picker.add(call); err != nil {
		endSpan(call.span, err)
		return err
	}
	select {
	case <-call.done:
	case <-ctx.Done():
		if e.picker.abandon(call) {
			err := base.Errorf(base.CodeTimeout, "the caller gave up: %w", context.Cause(ctx))
			endSpan(call.span, err)
			return err
		}
		<-call.done // its transaction is under way
	}
	return call.err
}

func (e *Engine) newClaim(c Caller, r ClaimRequest) (*claim, error) {
	if err := e.normalizeClaim(c, &r); err != nil {
		return nil, err
	}
	call := &claim{caller: c, req: r, done: make(chan struct{})}
	call.check = call.grants() // the store must say whether there is a key that signs, also if there is no work (S29)
	call.began = e.Cfg.Clock.Now()
	call.deadline = call.began.Add(r.Wait)
	var b strings.Builder
	for _, list := range [][]string{r.Lanes, r.Kinds, r.Namespaces, r.Capabilities} {
		sorted := slices.Sorted(slices.Values(list))
		b.WriteString(strings.Join(sorted, "\x01"))
		if list == nil {
			b.WriteByte(2)
		}
		b.WriteByte(0)
	}
	call.filter = b.String()
	return call, nil
}

func (e *Engine) normalizeClaim(c Caller, r *ClaimRequest) error {
	if err := checkWorker(r.WorkerID, r.InstanceID); err != nil {
		return err
	}
	if len(r.Lanes) < 1 || len(r.Lanes) > maxClaimLanes {
		return base.Invalid("lanes", "%d lanes, want 1..%d", len(r.Lanes), maxClaimLanes)
	}
	for _, lane := range r.Lanes {
		if err := base.CheckLane(lane); err != nil {
			return err
		}
	}
	setDefault(&r.Max, 1)
	if r.Max < 1 || r.Max > maxClaimTasks {
		return base.Invalid("max", "%d tasks, want 1..%d", r.Max, maxClaimTasks)
	}
	if r.Wait < 0 || r.Wait > maxClaimWait {
		return base.Invalid("wait_ms", "%s, want 0..%s", r.Wait, maxClaimWait)
	}
	setDefault(&r.LaneOrder, "rotate")
	if r.LaneOrder != "rotate" && r.LaneOrder != "listed" {
		return base.Invalid("lane_order", "%q, want rotate or listed", r.LaneOrder)
	}
	setDefault(&r.TTL, e.Cfg.LeaseTTL)
	if err := base.CheckTTL(r.TTL); err != nil {
		return err
	}
	if r.RequestKey != "" {
		if err := base.CheckRequestKey(r.RequestKey); err != nil {
			return err
		}
	}
	capabilities, err := core.ParseCapabilities("worker", r.Capabilities)
	if err != nil {
		return err
	}
	r.Capabilities = capabilities
	if err := core.CheckWorkerNames(&r.Namespaces, &r.Kinds); err != nil {
		return err
	}
	r.Namespaces, err = c.serving(r.Namespaces)
	return err
}

func checkWorker(workerID, instanceID string) error {
	if err := base.CheckWorkerID("worker_id", workerID); err != nil {
		return err
	}
	return base.CheckWorkerID("worker_instance_id", instanceID)
}

// narrow returns the wanted namespaces that are allowed. A nil list stands for all.
func narrow(wanted, allowed []string) []string {
	switch {
	case wanted == nil:
		return allowed
	case allowed == nil:
		return wanted
	}
	kept := []string{}
	for _, name := range wanted {
		if contains(allowed, name) {
			kept = append(kept, name)
		}
	}
	return kept
}

// matches reports whether the call may take work of a class (S11, S15).
func (c *claim) matches(class *core.Class) bool {
	r := &c.req
	return (r.Kinds == nil || contains(r.Kinds, class.Kind)) &&
		(r.Namespaces == nil || contains(r.Namespaces, class.Namespace)) &&
		subset(class.Capabilities, r.Capabilities)
}

// subset reports whether every token of the sorted list a is in the sorted list b.
func subset(a, b []string) bool {
	for _, token := range a {
		at := sort.SearchStrings(b, token)
		if at == len(b) || b[at] != token {
			return false
		}
	}
	return true
}

func (c *claim) finish(err error) {
	defer close(c.done) // also if the span panics
	c.err = err
	c.tell()
	endSpan(c.span, err)
}

// lookedFor records that a pick has looked for the call and is over.
func (c *claim) lookedFor() {
	c.looked, c.serving = true, false
	c.looks++
}

// mayRepeat reports whether it is still unknown if the call was answered before (L117).
func (c *claim) mayRepeat() bool { return c.req.RequestKey != "" && !c.looked && !c.asked }
