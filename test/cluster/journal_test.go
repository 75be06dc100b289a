package cluster

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// journal is what callers were told, over all engines. Those in other processes write it down line by line.
type journal struct {
	mu        sync.Mutex
	out       io.Writer // nil: it is not read elsewhere
	violation func(format string, args ...any)
	ids       []base.ID
	seen      map[base.UUID]bool
	keys      map[string]base.ID
	leases    map[base.UUID][]core.Fence // acknowledged claims
	newest    map[base.UUID]int64        // highest acknowledged epoch
	completed map[string]bool            // "id epoch" of acknowledged completions
	cancelled map[base.UUID]bool
	submits   int
	haunted   atomic.Int64 // commands sent with fences known to be stale
}

func newJournal(out io.Writer, violation func(format string, args ...any)) *journal {
	return &journal{
		out: out, violation: violation, seen: map[base.UUID]bool{}, keys: map[string]base.ID{}, leases: map[base.UUID][]core.Fence{},
		newest: map[base.UUID]int64{}, completed: map[string]bool{}, cancelled: map[base.UUID]bool{},
	}
}

// tell notes an acknowledgement: "submitted key id", "completed id epoch", "cancelled id".
func (j *journal) tell(what string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	line := what
	for _, arg := range args {
		line += fmt.Sprint(" ", arg)
	}
	if j.out != nil {
		fmt.Fprintln(j.out, line)
	}
	j.note(line)
}

// hear takes over a line of another process.
func (j *journal) hear(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.note(line)
}

func (j *journal) note(line string) {
	var what, a, b string
	_, _ = fmt.Sscan(line, &what, &a, &b) // the last one may be missing, and then is not looked at
	switch what {
	case "submitted":
		id := mustID(b)
		j.submits++
		if known, ok := j.keys[a]; ok && known != id {
			j.violation("I8: key %s names %s and %s", a, known, id)
		}
		j.keys[a] = id
		if !j.seen[id.UUID] {
			j.seen[id.UUID] = true
			j.ids = append(j.ids, id)
		}
	case "completed":
		j.completed[a+" "+b] = true
	case "cancelled":
		j.cancelled[mustID(a).UUID] = true
	default:
		j.violation("a process says %q", line)
	}
}

func mustID(text string) base.ID {
	given, err := base.ParseID(text)
	if err != nil {
		return base.ID{}
	}
	return given.ID()
}

// took notes an acknowledged claim.
func (j *journal) took(id base.ID, f core.Fence) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.leases[id.UUID] = append(j.leases[id.UUID], f)
	j.newest[id.UUID] = max(j.newest[id.UUID], f.Epoch)
}

// stale finds a fence that was superseded by an acknowledged claim.
func (j *journal) stale(rng *rand.Rand) (base.ID, core.Fence, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.ids) == 0 {
		return base.ID{}, core.Fence{}, false
	}
	for range 20 {
		id := j.ids[rng.IntN(len(j.ids))]
		for _, f := range j.leases[id.UUID] {
			if f.Epoch < j.newest[id.UUID] {
				return id, f, true
			}
		}
	}
	return base.ID{}, core.Fence{}, false
}

// any is some execution.
func (j *journal) any(rng *rand.Rand) (base.ID, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.ids) == 0 {
		return base.ID{}, false
	}
	return j.ids[rng.IntN(len(j.ids))], true
}

func (j *journal) size() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.submits
}

// all lists every execution of which somebody was told.
func (j *journal) all() []base.ID {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.ids)
}

// outcomes lists the acknowledged completions and cancellations.
func (j *journal) outcomes() (completed []string, cancelled []base.UUID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Collect(maps.Keys(j.completed)), slices.Collect(maps.Keys(j.cancelled))
}
