package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/runes"
)

// Bounds of what is sent.
const (
	mostKept  = 256 << 10              // bytes that wait to be sent
	mostFrame = 64 << 10               // bytes of a frame
	gathered  = 50 * time.Millisecond  // how long the first byte waits for more
	onePause  = 200 * time.Millisecond // before a call is repeated
	oneCall   = 5 * time.Second        // of a call that is not answered; shorter than what WaitDelay leaves to a program that has ended
	lastCalls = 10 * time.Second       // for what is left when the program has ended
)

// lines sends what a program writes to standard error to the stream of its attempt, as frames of type stderr. Its memory is bounded: a program that
// writes faster than the server takes it is slowed down, and while the server is away what has no room is dropped, with a note in its place.
type lines struct {
	send    func(ctx context.Context, frames []api.NewFrame, seq int64) error
	refused func(err error) // called once, for the refusal after which nothing is sent
	ended   chan struct{}   // closed when nothing is sent any more

	mu      sync.Mutex
	changed *sync.Cond
	kept    []byte
	begun   int  // bytes of kept that only begin a character
	dropped int  // bytes that had no room, after kept
	away    bool // the last call was not answered
	closing bool // the program has ended
	over    bool // nothing is sent any more
}

func newLines(send func(context.Context, []api.NewFrame, int64) error, refused func(error)) *lines {
	l := &lines{send: send, refused: refused, ended: make(chan struct{})}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// Write takes what the program wrote. It never fails, because that would end the program.
func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := data; len(rest) > 0; {
		for len(l.kept) >= mostKept && !l.away && !l.over && !l.closing {
			l.changed.Wait()
		}
		if l.over {
			break
		}
		room := mostKept - len(l.kept)
		if room <= 0 || l.dropped > 0 { // what follows a gap is told after it
			l.dropped += len(rest)
			break
		}
		n := min(room, len(rest))
		l.kept = append(l.kept, rest[:n]...)
		rest = rest[n:]
		l.changed.Broadcast()
	}
	return len(data), nil
}

// run sends until the program has ended and all is sent, until a call is refused, or until ctx ends.
func (l *lines) run(ctx context.Context) {
	defer close(l.ended)
	defer l.stop()
	stopped := context.AfterFunc(ctx, l.stop)
	defer stopped()
	for seq := int64(1); ; seq++ {
		frames := l.next(ctx)
		if frames == nil {
			return
		}
		if err := l.deliver(ctx, frames, seq); err != nil {
			if ctx.Err() == nil {
				l.refused(err)
			}
			return
		}
	}
}

func (l *lines) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over, l.kept = true, nil
	l.changed.Broadcast()
}

// next waits for something, lets more gather, and returns it as frames; nil: nothing follows.
func (l *lines) next(ctx context.Context) []api.NewFrame {
	for {
		l.mu.Lock()
		for len(l.kept) == l.begun && l.dropped == 0 && !l.closing && !l.over {
			l.changed.Wait()
		}
		l.mu.Unlock()
		l.pause(ctx, gathered)
		if frames, more := l.take(); len(frames) > 0 || !more {
			return frames
		}
	}
}

// take returns what is kept, except for a character whose rest may come, and whether more may follow.
func (l *lines) take() (frames []api.NewFrame, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil, false
	}
	n := len(l.kept)
	if l.dropped == 0 && !l.closing {
		n = runes.Whole(l.kept)
	}
	frames = framesOf(l.kept[:n])
	if l.dropped > 0 {
		frames = append(frames, said(fmt.Appendf(nil, "\n[flowfabric work: %d bytes of standard error are missing here]\n", l.dropped)))
	}
	l.kept, l.dropped = bytes.Clone(l.kept[n:]), 0
	l.begun = len(l.kept)
	l.changed.Broadcast()
	return frames, !l.closing
}

// pause waits unless the program ends, or ctx does.
func (l *lines) pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	stopped := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.changed.Broadcast()
	})
	defer stopped()
	l.mu.Lock()
	defer l.mu.Unlock()
	for ctx.Err() == nil && !l.closing && !l.over {
		l.changed.Wait()
	}
}

// deliver sends frames until they are stored. A repeat has the same number, so that nothing is stored twice.
func (l *lines) deliver(ctx context.Context, frames []api.NewFrame, seq int64) error {
	for {
		call, cancel := context.WithTimeout(ctx, oneCall)
		err := l.send(call, frames, seq)
		cancel()
		away := err != nil && (errors.Is(err, api.ErrUnavailable) || errors.Is(err, api.ErrLimited) || errors.Is(err, context.DeadlineExceeded))
		l.mu.Lock()
		l.away = away
		l.changed.Broadcast()
		l.mu.Unlock()
		if !away || ctx.Err() != nil {
			return err
		}
		repeat, cancel := context.WithTimeout(ctx, max(onePause, api.RetryDelay(err)))
		<-repeat.Done()
		cancel()
	}
}

// close sends what is left. It returns when that is stored, or false when the time for it is over.
func (l *lines) close(limit time.Duration, cancel context.CancelFunc) (stored bool) {
	l.mu.Lock()
	l.closing = true
	l.changed.Broadcast()
	l.mu.Unlock()
	late := time.AfterFunc(limit, cancel)
	<-l.ended
	cancel()
	return late.Stop()
}

// framesOf cuts what a program wrote into frames: after a line, else after a character.
func framesOf(data []byte) (frames []api.NewFrame) {
	for len(data) > 0 {
		n := len(data)
		if n > mostFrame {
			n = mostFrame
			if line := bytes.LastIndexByte(data[:n], '\n'); line >= 0 {
				n = line + 1
			} else if character := runes.Whole(data[:n]); character > 0 {
				n = character
			}
		}
		frames = append(frames, said(data[:n]))
		data = data[n:]
	}
	return frames
}

func said(data []byte) api.NewFrame {
	payload := api.Bytes(data, "")
	if utf8.Valid(data) {
		payload = api.Text(string(data))
	}
	return api.NewFrame{Type: "stderr", Payload: payload}
}

// streamOf starts to send the standard error of a task's program. finish returns when all of it is stored.
func (p *Program) streamOf(task context.Context, t *flowfabric.Task) (l *lines, finish func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(task)) // what the program says after a cancel is sent, too
	l = newLines(func(ctx context.Context, frames []api.NewFrame, seq int64) error {
		answers, err := p.Do(ctx, api.WorkItem{Op: api.OpFrames, ID: t.ID(), Lease: t.Lease(), Frames: frames, ClientSeq: &seq})
		if err == nil {
			err = answers[0].Err
		}
		return err
	}, func(err error) {
		if lost(err) {
			_ = t.Renew(task) // the worker learns of it, and ends the program as for every lost lease
			return
		}
		t.Logger().Warn("standard error is no longer stored", "error", err)
	})
	go l.run(ctx)
	return l, func() {
		limit := lastCalls
		if task.Err() != nil {
			limit = lastWords
		}
		if !l.close(limit, cancel) {
			t.Logger().Warn("the end of standard error was not stored", "error", fmt.Sprintf("the server did not answer for %s", limit))
		}
	}
}

// lost reports whether a refusal means that the lease is gone.
func lost(err error) bool {
	return errors.Is(err, api.ErrFenced) || api.CodeOf(err) == "execution_not_active" || api.CodeOf(err) == "execution_not_found"
}
