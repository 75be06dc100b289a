package txn

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

const (
	// LogRead is how many commits are read at a time.
	LogRead = 256
	logKeep = 50_000 // events kept in memory

	gapPatience = 20 * time.Millisecond
)

// logReader follows the event log for the whole process. Commits of this process are passed to it directly; those of others are read from the store
// after a hint, a gap or the poll. It keeps the newest part in memory for followers.
type logReader struct {
	e    *Engine
	kick chan struct{}
	gap  chan struct{} // a commit came before an earlier one: usually that one follows in a moment

	mu      sync.Mutex
	life    int                    // how often it was reset: what was read before a reset belongs to another log
	end     int64                  // position of the newest commit of a sequence without gaps
	recent  []store.Commit         // the newest commits, without gaps, ending at end
	events  int                    // in recent
	early   map[int64]store.Commit // commits of this process that arrived before an earlier one
	changed chan struct{}          // closed and replaced whenever end moves
	Readers atomic.Int64           // calls that wait for events
}

func newLogReader(e *Engine) *logReader {
	return &logReader{e: e, kick: make(chan struct{}, 1), gap: make(chan struct{}, 1), early: map[int64]store.Commit{}, changed: make(chan struct{})}
}

// start finds the current end of the log.
func (l *logReader) start(ctx context.Context) error {
	seen, err := l.e.Store.Poll(ctx, store.PollAsk{})
	if err != nil {
		return err
	}
	l.end = seen.LogEnd
	l.e.Rates.start(seen.Now)
	l.e.Follower.begin(l.e.Incarnation())
	l.e.Follower.moved(seen.Incarnation, seen.Projected)
	return nil
}

// grew adds a commit of this process.
func (l *logReader) grew(seq int64, at base.Time, events []core.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq <= l.end {
		return
	}
	// Commits of this process are passed on when they are durable, and two lines may come in the other order than their numbers. early keeps what
	// came too soon. Readers see a commit only when all before it are there, because a cursor that has passed a number never looks at it again
	// (E33).
	l.early[seq] = store.Commit{Seq: seq, At: at, Events: events}
	l.advance()
	if len(l.early) > 0 {
		l.wait()
	}
}

// wait makes the reader look at a gap in a moment.
func (l *logReader) wait() {
	select {
	case l.gap <- struct{}{}:
	default:
	}
}

// advance moves the end over commits that follow it without a gap. The lock is held.
func (l *logReader) advance() {
	before := l.end
	for {
		next, ok := l.early[l.end+1]
		if !ok {
			break
		}
		delete(l.early, next.Seq)
		l.append(next)
	}
	if l.end != before {
		l.wake()
	}
}

func (l *logReader) append(c store.Commit) {
	l.end = c.Seq
	l.e.Rates.hear(&c)
	l.e.Meter.readable(c.At, l.e.Sweep.StoreNow())
	if cap(c.Events) > len(c.Events)+len(c.Events)/4 { // the list has spare capacity from when the commit was decided: keeping that for long is waste
		c.Events = slices.Clone(c.Events)
	}
	for _, hear := range l.e.extensions.logged {
		hear(&c)
	}
	l.recent = append(l.recent, c)
	l.events += len(c.Events)
	for l.events > logKeep && len(l.recent) > 1 {
		l.events -= len(l.recent[0].Events)
		l.recent = l.recent[1:]
	}
}

// logWitness is how many of the newest commits are compared with the log of another incarnation. It is more than one because the newest may have
// been read from that log already, before this process noticed the change.
const logWitness = 64

// forget drops the events in memory, and returns the newest commits that were known, in order: in another incarnation they may not exist. setBack
// then finds the end of the log.
func (l *logReader) forget() []store.Commit {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := slices.Clone(l.recent[max(0, len(l.recent)-logWitness):])
	if len(known) == 0 {
		known = append(known, store.Commit{Seq: l.end})
	}
	for _, seq := range slices.Sorted(maps.Keys(l.early)) {
		known = append(known, l.early[seq])
	}
	known = known[max(0, len(known)-logWitness):]
	l.life++
	l.recent, l.events = nil, 0
	clear(l.early)
	return known
}

// setBack follows the log from its current end. Calls that wait for it to grow look again.
func (l *logReader) setBack(end int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end, l.recent, l.events = end, nil, 0
	clear(l.early)
	l.wake()
}

// renamed makes calls that wait for events look again: their positions have no meaning in a log of another identity.
func (l *logReader) renamed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake()
}

// wake wakes the calls that wait for the log. The lock is held.
func (l *logReader) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// look makes the reader read the store.
func (l *logReader) look() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// run reads the commits of other processes until ctx ends.
func (l *logReader) run(ctx context.Context) {
	patience := gapPatience
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.kick:
		case <-l.gap:
			if !l.gapStays(ctx, patience) {
				continue
			}
		}
		before, _ := l.Position()
		l.CatchUp(ctx)
		patience = l.comeBack(before, patience)
	}
}

// comeBack makes the reader look again at a gap that the store cannot explain yet: its commit is under way, or was rolled back, and then there is
// no further notice (E33). It returns how long to wait before that: longer each time the end stays at before.
func (l *logReader) comeBack(before int64, patience time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.early) > 0 {
		l.wait()
		if l.end == before {
			return min(2*patience, l.e.Cfg.PollInterval)
		}
	}
	return gapPatience
}

// gapStays waits a moment for commits of this process to close a gap. It reports whether the gap stays, which means that it is a commit of another
// process.
func (l *logReader) gapStays(ctx context.Context, patience time.Duration) bool {
	before, _ := l.Position()
	timer := l.e.Cfg.Clock.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-l.kick:
		return true
	case <-timer.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.early) > 0 && l.end != before {
		l.wait() // for a later one
		return false
	}
	return len(l.early) > 0
}

// CatchUp reads what other processes have committed so far.
func (l *logReader) CatchUp(ctx context.Context) {
	for l.readOn(ctx) {
	}
}

// readOn reads the next commits and reports whether there may be more.
func (l *logReader) readOn(ctx context.Context) bool {
	end, life := l.reads()
	commits, err := l.load(ctx, end, LogRead)
	if l.e.Follower.failed(l.e.Failed(err)) || len(commits) == 0 {
		return false // the poll comes back to it
	}
	fresh, missed := l.absorb(life, commits)
	if missed {
		_ = l.e.Guard(inLog, l.missed)
	}
	for _, c := range fresh {
		if l.e.Guard(inLog, func() { l.hear(c) }) != nil {
			_ = l.e.Guard(inLog, l.missed)
		}
	}
	_ = l.e.Guard(inLog, func() {
		for _, other := range l.e.listeners {
			other.Read(fresh)
		}
	})
	return store.Full(commits, LogRead)
}

// reads returns where the reader continues, and in which of its lives.
func (l *logReader) reads() (end int64, life int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end, l.life
}

// absorb adds commits that were read in a life. It returns those that are new to this process, and whether others were removed before it could read
// them.
func (l *logReader) absorb(life int, commits []store.Commit) (fresh []store.Commit, missed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The read began before the log was reset: its numbers belong to the log of another incarnation.
	if life != l.life {
		return nil, false
	}
	for _, c := range commits {
		// What is in early was handed on before: by publish, or by an earlier read that met a gap.
		if _, own := l.early[c.Seq]; !own && c.Seq > l.end {
			l.early[c.Seq] = c
			fresh = append(fresh, c)
		}
	}
	// What the store left out was removed, or is known to be no commit: skip it.
	first := commits[0].Seq
	if missed = first > l.end+1; missed {
		l.end = first - 1
		l.recent, l.events = nil, 0
		maps.DeleteFunc(l.early, func(seq int64, _ store.Commit) bool { return seq <= l.end })
	}
	l.advance()
	return fresh, missed
}

// missed handles commits whose events are unknown, because they cannot be read, or were removed while this process was cut off from the store:
// everything that depends on the log is read again.
func (l *logReader) missed() {
	l.e.Waiters.wakeAll()
	for _, other := range l.e.listeners {
		other.Missed()
	}
}

// hear applies a commit of another process.
func (l *logReader) hear(c store.Commit) {
	l.e.Trap("hear", base.UUID{})
	if c.Unreadable != nil {
		l.missed()
	}
	for i := range c.Events {
		ev := &c.Events[i]
		if ev.Kind == "execution.completed" {
			l.e.Waiters.Wake(ev.ExecutionID.UUID)
		} else if about := l.e.extensions.wakes[ev.Kind]; about != nil {
			l.e.Waiters.Wake(about(ev))
		}
	}
	for _, other := range l.e.listeners {
		other.Heard(&c)
	}
}

// Position is the current end, and a channel that is closed when it moves.
func (l *logReader) Position() (int64, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end, l.changed
}

// Read returns commits after a position, from memory if they are there.
func (l *logReader) Read(ctx context.Context, after int64, limit int) ([]store.Commit, error) {
	if part, known := l.remembered(after, limit); known {
		return part, nil
	}
	return l.load(ctx, after, limit)
}

// remembered returns commits after a position that are in memory; known is false if they must be read from the store.
func (l *logReader) remembered(after int64, limit int) (part []store.Commit, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.recent) > 0 && after >= l.recent[0].Seq-1 {
		skip := int(after - l.recent[0].Seq + 1)
		if skip < len(l.recent) && l.recent[skip].Seq == after+1 {
			return l.recent[skip:min(skip+limit, len(l.recent))], true
		}
	}
	return nil, after >= l.end
}

// load reads commits from the store. The content of a commit that cannot be read is lost: followers get an event in its place, and do not wait for
// it (S63, I6).
func (l *logReader) load(ctx context.Context, after int64, limit int) ([]store.Commit, error) {
	commits, err := l.e.Store.Log(ctx, after, limit)
	l.Readable(commits)
	return commits, err
}

// Readable puts an event in the place of the content of commits that cannot be read.
func (l *logReader) Readable(commits []store.Commit) {
	for i := range commits {
		c := &commits[i]
		if l.e.Failed(c.Unreadable) == nil {
			continue
		}
		l.e.QuietLog.Error("a commit of the event log cannot be read: its events are lost, and lists may show what it changed as it was",
			"seq", c.Seq, "error", c.Unreadable)
		row := "log:" + strconv.FormatInt(c.Seq, 10)
		c.Events = []core.Event{Quarantined(row, base.CodeOf(c.Unreadable), 1, c.At, c.At)} // the same to every reader
	}
}

// Holds reports whether the position is in memory, or just behind it.
func (l *logReader) Holds(seq int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return seq == l.end+1 || len(l.recent) > 0 && seq >= l.recent[0].Seq && seq <= l.end
}
