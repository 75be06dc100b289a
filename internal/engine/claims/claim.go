package claims

import (
	"context"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/work"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Limits of a claim (S15).
const (
	maxClaimLanes = 64
	maxClaimTasks = 1000
	maxClaimWait  = 60 * time.Second
	// maxClaimBytes bounds the inputs of one answer: what one call may bring, one call may take (L6). One task is always given.
	maxClaimBytes = work.MaxBulkBytes
)

// claim is one call that waits for work. The picker's lock protects its state while it waits. While serving is set, the transaction that serves it
// sets since and answer, and reads the rest without the lock: what others change meanwhile is for the picker alone, or atomic.
type claim struct {
	caller    txn.Caller
	req       txn.ClaimRequest
	filter    string // equal for calls that match the same classes
	deadline  time.Time
	began     time.Time
	closing   bool        // there is nothing for it: the next look records that
	looked    bool        // it has read the store at least once
	looks     int         // number of picks that have looked for it
	asked     bool        // the poll has checked whether it was answered before
	whole     bool        // it has read its queues from their starts
	patient   time.Time   // until when it waits for what others hold, past its deadline; zero: it has met nothing of the kind
	bystander bool        // it asks for grants of an instance that is not the caller's: it keeps nothing alive
	gone      bool        // its caller has given up
	serving   bool        // a transaction for it is under way
	check     bool        // its worker's record may have changed: read it again
	before    atomic.Bool // it came before that change; read by a pick under way while other calls set it
	since     base.Time   // when the caller got the instance: earlier leases belong to another caller
	struck    base.UUID   // the row with which it made a pick panic
	answer    txn.ClaimAnswer
	err       error
	done      chan struct{}
	span      txn.Span // nil: none
}

// Claim takes work for a worker (S15..S23). It waits for up to r.Wait while there is none.
func (e *Claims) Claim(ctx context.Context, c txn.Caller, r txn.ClaimRequest) (answer txn.ClaimAnswer, err error) {
	defer func() { e.Meter.Claimed(len(answer.Tasks), err) }()
	call, err := e.newClaim(c, r)
	if err != nil {
		return txn.ClaimAnswer{}, err
	}
	if !call.grants() { // which registers no instance
		if err := e.Fleet.Admit(ctx, call.req.Namespaces, call.req.InstanceID); err != nil { // a claim registers its instance (S50)
			return txn.ClaimAnswer{}, err
		}
	}
	call.span = e.StartSpan(ctx, "claim")
	if err := e.served(ctx, call); err != nil {
		return call.answer, err
	}
	answer = call.answer // a copy: the picker may still read its own
	answer.Tasks, err = e.attachAll(ctx, answer.Tasks)
	return answer, err
}

// served waits until the picker has answered a call.
func (e *Claims) served(ctx context.Context, call *claim) error {
	if err := e.picker.add(call); err != nil {
		txn.EndSpan(call.span, err)
		return err
	}
	select {
	case <-call.done:
	case <-ctx.Done():
		// If a transaction serves the call, the call may have leases by now: its answer is waited for, and a caller that is gone finds them under
		// its request key.
		if e.picker.abandon(call) {
			err := base.Errorf(base.CodeTimeout, "the caller gave up: %w", context.Cause(ctx))
			txn.EndSpan(call.span, err)
			return err
		}
		<-call.done // its transaction is under way
	}
	return call.err
}

func (e *Claims) newClaim(c txn.Caller, r txn.ClaimRequest) (*claim, error) {
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

func (e *Claims) normalizeClaim(c txn.Caller, r *txn.ClaimRequest) error {
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
	txn.SetDefault(&r.Max, 1)
	if r.Max < 1 || r.Max > maxClaimTasks {
		return base.Invalid("max", "%d tasks, want 1..%d", r.Max, maxClaimTasks)
	}
	if r.Wait < 0 || r.Wait > maxClaimWait {
		return base.Invalid("wait_ms", "%s, want 0..%s", r.Wait, maxClaimWait)
	}
	txn.SetDefault(&r.LaneOrder, "rotate")
	if r.LaneOrder != "rotate" && r.LaneOrder != "listed" {
		return base.Invalid("lane_order", "%q, want rotate or listed", r.LaneOrder)
	}
	txn.SetDefault(&r.TTL, e.Cfg.LeaseTTL)
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
	r.Namespaces, err = work.Serving(c, r.Namespaces)
	return err
}

func checkWorker(workerID, instanceID string) error {
	if err := base.CheckWorkerID("worker_id", workerID); err != nil {
		return err
	}
	return base.CheckWorkerID("worker_instance_id", instanceID)
}

// matches reports whether the call may take work of a class (S11, S15).
func (c *claim) matches(class *core.Class) bool {
	r := &c.req
	return (r.Kinds == nil || txn.Contains(r.Kinds, class.Kind)) &&
		(r.Namespaces == nil || txn.Contains(r.Namespaces, class.Namespace)) &&
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
	c.attachSpan()
	txn.EndSpan(c.span, err)
}

// lookedFor records that a pick has looked for the call and is over.
func (c *claim) lookedFor() {
	c.looked, c.serving = true, false
	c.looks++
}

// mayRepeat reports whether it is still unknown if the call was answered before (L117).
func (c *claim) mayRepeat() bool { return c.req.RequestKey != "" && !c.looked && !c.asked }

// sweepClaims removes the record of a claim if none of its leases is held and none of its grants is outstanding any more (L117).
func (e *Claims) sweepClaims(ctx context.Context, t store.Timer) error {
	return e.OnDocs(ctx, docClaim, t.Texts, func(u *txn.Tx, doc *store.Doc) error {
		loaded, err := e.Store.Read(ctx, store.Want{Executions: claimedIDs(doc)})
		if err != nil {
			return err
		}
		instance, key, _ := strings.Cut(doc.Key, "\x01")
		key, grants := strings.CutSuffix(key, grantMark)
		for _, x := range loaded.Executions {
			if grants && x.HoldsGrantOf(instance, key) || !grants && x.HoldsLeaseOf(instance, key) {
				timer := u.TimerAt(timerClaims, txn.RoundUp(u.Now.Add(txn.ClaimRecordLook), base.Second))
				timer.Texts = append(timer.Texts, doc.Key)
				return nil
			}
		}
		u.DropDoc(doc.DocRef)
		return nil
	})
}

// attachSpan sets the execution in the span of a claim, if the claim got exactly one.
func (c *claim) attachSpan() {
	if c.span != nil && len(c.answer.Tasks) == 1 {
		c.span.Attach(txn.FactsOf(c.answer.Tasks[0].Execution))
	}
}
