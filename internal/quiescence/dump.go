package quiescence

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// goroutine is one entry of the runtime's dump.
type goroutine struct {
	id     uint64
	family string // "": none
	state  string
	text   string
}

// idleStates are the states in which a goroutine waits for another one, or for nothing at all. A goroutine in a system call, in
// real sleep or at a mutex goes on by itself or by one that does.
var idleStates = map[string]bool{
	"chan receive": true, "chan receive (nil chan)": true, "chan send": true, "chan send (nil chan)": true,
	"select": true, "select (no cases)": true, "sync.Cond.Wait": true, "sync.WaitGroup.Wait": true,
}

// idle reports whether the goroutine stands still. One that listens for hints of other processes does, although it reads from a
// connection: hints change nothing but latency. One that waits for the background reader of a connection does not: the driver
// starts that reader from a timer, so that it is the child of none. One that tries again to begin a transaction on SQLite does not, either:
// it goes on by a timer of the host, whatever clock the test turns.
func (g *goroutine) idle() bool {
	if strings.Contains(g.text, ".WaitForNotification(") {
		return true
	}
	return idleStates[g.state] && !strings.Contains(g.text, "bgreader.(*BGReader).") && !strings.Contains(g.text, "sqlite.beginImmediate(")
}

// shared reports whether the goroutine serves the whole process: os/signal starts one for all, when the first asks for signals.
func (g *goroutine) shared() bool { return strings.Contains(g.text, "os/signal.loop(") }

// dump lists all goroutines of the process at one moment.
func (fam *Family) dump() []goroutine {
	fam.mu.Lock()
	defer fam.mu.Unlock()
	for {
		n := runtime.Stack(fam.buffer, true)
		if n < len(fam.buffer) {
			return parse(string(fam.buffer[:n]))
		}
		fam.buffer = make([]byte, 2*len(fam.buffer)+1<<16)
	}
}

func parse(text string) []goroutine {
	var all []goroutine
	for entry := range strings.SplitSeq(text, "\n\n") {
		if g, ok := parseOne(entry); ok {
			all = append(all, g)
		}
	}
	return all
}

// label is that of the members of families. Its values are their addresses.
const label = "quiescence"

// showLabels has the runtime show labels in dumps.
var showLabels = sync.OnceFunc(func() {
	settings := "tracebacklabels=1"
	if others := os.Getenv(debugVariable); others != "" {
		settings = others + "," + settings
	}
	if err := os.Setenv(debugVariable, settings); err != nil {
		panic(err)
	}
})

const debugVariable = "GODEBUG"

// parseOne reads `goroutine 7 [select, 2 minutes labels:{"quiescence": "0xc000012080"}]:`.
func parseOne(entry string) (goroutine, bool) {
	header, _, _ := strings.Cut(entry, "\n")
	number, rest, ok := strings.Cut(strings.TrimPrefix(header, "goroutine "), " ")
	if !ok {
		return goroutine{}, false
	}
	id, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return goroutine{}, false
	}
	_, rest, _ = strings.Cut(rest, "[")
	state, labels, _ := strings.Cut(rest, " labels:{")
	state, _, _ = strings.Cut(state, "]")
	state, _, _ = strings.Cut(state, ",")
	_, family, _ := strings.Cut(labels, `"`+label+`": "`)
	family, _, _ = strings.Cut(family, `"`)
	return goroutine{id: id, family: family, state: strings.TrimSuffix(state, " (scan)"), text: entry}, true
}

// self is the id of the calling goroutine.
func self() uint64 {
	var buffer [64]byte
	line := buffer[:runtime.Stack(buffer[:], false)]
	fields := bytes.Fields(line)
	id, _ := strconv.ParseUint(string(fields[1]), 10, 64)
	return id
}

func join(all []goroutine) string {
	texts := make([]string, len(all))
	for i, g := range all {
		texts[i] = g.text
	}
	return strings.Join(texts, "\n\n")
}
