package flowfabric

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/calls"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/stream"
)

// outbox has the frames of a task that are not stored yet: those of the call that is under way, and those of the next one. A
// goroutine makes the calls one after the other as long as there are frames, so that each call can be repeated under its number.
type outbox struct {
	task   *Task
	ctx    context.Context //nolint:containedctx // of the calls, which no single writer makes
	cancel context.CancelFunc
	die    func() // ends a handler whose process was killed in a test; nil: there is no such test

	mu      sync.Mutex
	next    []NewFrame    // of the next call
	text    bool          // text may be joined to the last of them
	size    int           // bytes of their payloads
	sending bool          // a goroutine makes calls
	taken   int64         // calls that were begun; their numbers
	stored  int64         // calls that were accepted
	err     error         // of the first call that was not; nothing is sent after it
	changed chan struct{} // closed when something has changed; nil: no goroutine waits
}

// frames returns the outbox of the task.
func (t *Task) frames(ctx context.Context) *outbox {
	if out := t.out.Load(); out != nil {
		return out
	}
	out := &outbox{task: t}
	out.ctx, out.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if killed, ok := t.runner.client.conn.Transport.(interface{ EndIfDead() }); ok {
		out.die = killed.EndIfDead
	}
	if !t.out.CompareAndSwap(nil, out) {
		out.cancel()
	}
	return t.out.Load()
}

// live ends the goroutine of a handler whose process was killed, as every other call of a task does.
func (o *outbox) live() {
	if o.die != nil {
		o.die()
	}
}

// add puts a frame into the next call, and waits while that is full.
func (o *outbox) add(ctx context.Context, f NewFrame, text bool) error {
	for {
		o.live()
		if err := o.mayAdd(ctx); err != nil {
			return err
		}
		wait, err := o.tryAdd(f, text)
		if wait == nil {
			return err
		}
		select {
		case <-wait:
		case <-ctx.Done():
		}
	}
}

// mayAdd returns why nothing can be written any more.
func (o *outbox) mayAdd(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := o.task.mayCall(ctx); err != nil {
		return err
	}
	if o.task.left.Load() != nil { // a transaction has the command that ends it
		return ErrParked
	}
	return nil
}

// tryAdd adds a frame unless there is something to wait for. Frames are added only while the task runs: a command that ends it
// sees all of them.
func (o *outbox) tryAdd(f NewFrame, text bool) (wait <-chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(o.next)
	switch {
	case o.err != nil:
		return nil, o.err
	case o.task.state.Load() != taskRuns:
		over := make(chan struct{})
		close(over)
		return over, nil // mayAdd tells why, once that is decided
	case o.size+len(f.Payload.Data) > stream.MaxCallBytes:
		return o.change(), nil
	case text && o.text && joined(&o.next[n-1], f.Payload.Data):
	case n == stream.MaxCallFrames:
		return o.change(), nil
	default:
		o.next, o.text = append(o.next, kept(f)), text
	}
	o.size += len(f.Payload.Data)
	if !o.sending {
		o.sending = true
		go o.send()
	}
	return nil, nil
}

// change returns a channel that is closed when something changes.
func (o *outbox) change() <-chan struct{} {
	if o.changed == nil {
		o.changed = make(chan struct{})
	}
	return o.changed
}

func (o *outbox) tell() {
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
}

// send makes calls until there are no frames.
func (o *outbox) send() {
	for {
		frames, number := o.take()
		if frames == nil {
			return
		}
		o.settle(o.call(frames, number))
	}
}

// take returns the frames of the next call, and its number; nil if there are none.
func (o *outbox) take() ([]NewFrame, int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	frames := o.next
	o.next, o.text, o.size = nil, false, 0
	defer o.tell() // there is room again
	if frames == nil {
		o.sending = false
		return nil, 0
	}
	o.taken++
	return frames, o.taken
}

// call makes a call until it is answered. It is repeated under the same number, so that its frames are stored once.
func (o *outbox) call(frames []NewFrame, number int64) error {
	t := o.task
	if t.state.Load() == taskLost {
		return t.gone()
	}
	item := api.WorkItem{Op: api.OpFrames, ID: t.claimed.ID, Lease: t.claimed.Lease, Frames: frames, ClientSeq: &number}
	err := t.runner.sendUntilAnswered(o.ctx, t, item).Err
	if err == nil {
		return nil
	}
	if t.left.Load() == nil { // otherwise the handler itself has ended the lease
		t.heed(err)
	}
	if t.state.Load() == taskLost {
		return t.gone()
	}
	if causeOf(err) == nil && o.ctx.Err() == nil {
		t.Logger().Warn("flowfabric: frames were not accepted", "error", err)
	}
	return err
}

// settle records the outcome of a call.
func (o *outbox) settle(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		o.stored++
	} else {
		o.err = err
		o.next, o.text, o.size = nil, false, 0
	}
	o.tell()
}

// flush waits until what was added before is stored.
func (o *outbox) flush(ctx context.Context) error {
	o.mu.Lock()
	number := o.taken
	if len(o.next) > 0 {
		number++
	}
	o.mu.Unlock()
	for {
		wait, err := o.progress(number)
		if wait == nil {
			return err
		}
		if err := checkOutsideTx(ctx); err != nil {
			return err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// progress returns nothing to wait for once a call is accepted, or none will be any more.
func (o *outbox) progress(number int64) (wait <-chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil || o.stored >= number {
		return nil, o.err
	}
	return o.change(), nil
}

// forgive lets frames be sent again after a refusal.
func (o *outbox) forgive() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		o.err, o.stored = nil, o.taken
	}
}

// stop ends the calls and waits for that.
func (o *outbox) stop() {
	o.cancel()
	for {
		o.mu.Lock()
		wait := o.change()
		sending := o.sending
		o.mu.Unlock()
		if !sending {
			return
		}
		<-wait
	}
}

// stopStream ends the calls of a task that has ended.
func (t *Task) stopStream() {
	if out := t.out.Load(); out != nil {
		out.stop()
	}
}

// settleStream waits until what the handler has written is stored, before a command that ends its lease. It returns an error only
// if that is not known. A refusal is none: the handler could learn of it from Flush, and one by the fence meets the command, too.
func (t *Task) settleStream(ctx context.Context) error {
	out := t.out.Load()
	if out == nil {
		return nil
	}
	err := out.flush(ctx)
	if ctx.Err() != nil || errors.Is(err, ErrUnavailable) {
		return err
	}
	return nil
}

// streamPatience is how long a transaction that ends the lease waits for frames.
const streamPatience = 2 * time.Second

// settleStreamIn is settleStream for a command in a transaction of the handler. Frames that were not stored when the transaction
// took the execution, or on SQLite the database, are stored only after it.
func (t *Task) settleStreamIn(ctx context.Context) error {
	if t.out.Load() == nil {
		return nil
	}
	limit, cancel := t.runner.within(ctx, streamPatience)
	defer cancel()
	err := t.settleStream(limit)
	if err == nil || ctx.Err() != nil || limit.Err() == nil {
		return err
	}
	return calls.Refuse(base.CodeInvalidArgument, "what was written to the stream is not stored, and the transaction ends the lease").
		At("", "call Flush before the transaction begins, and write nothing to the stream in it")
}
