package standstill

import (
	"bytes"
	"runtime"
	"strconv"
	"strings"
)

// goroutine is one entry of the runtime's dump.
type goroutine struct {
	id     uint64
	parent uint64 // 0: the runtime's
	label  string // that of its family; "": none
	state  string
	text   string
}

// idleStates are the states in which a goroutine waits for another one, or for nothing at all. A goroutine in a system call, in
// real sleep or at a mutex goes on by itself or by one that does.
var idleStates = map[string]bool{
	"chan receive": true, "chan receive (nil chan)": true, "chan send": true, "chan send (nil chan)": true,
	"select": true, "select (no cases)": true, "sync.Cond.Wait": true, "sync.WaitGroup.Wait": true,
}

// idle tells whether the goroutine stands still. One that listens for hints of other processes does, although it reads from a
// connection: hints change nothing but latency. One that waits for the background reader of a connection does not: the driver
// starts that reader from a timer, so that it is nobody's child.
func (g *goroutine) idle() bool {
	if strings.Contains(g.text, ".WaitForNotification(") {
		return true
	}
	return idleStates[g.state] && !strings.Contains(g.text, "bgreader.(*BGReader).")
}

// dump lists all goroutines of the process at one moment.
func (fam *Family) dump() []goroutine {
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

// parseOne reads "goroutine 7 [select, 2 minutes labels:{"standstill": "XYZ"}]:" and, further down, "created by f in goroutine 3".
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
	rest, labels, _ := strings.Cut(rest, " labels:{")
	_, state, _ := strings.Cut(rest, "[")
	state, _, _ = strings.Cut(state, "]")
	state, _, _ = strings.Cut(state, ",")
	g := goroutine{id: id, state: strings.TrimSuffix(state, " (scan)"), text: entry}
	if _, after, found := strings.Cut(labels, strconv.Quote(labelKey)+`: "`); found {
		g.label, _, _ = strings.Cut(after, `"`)
	}
	if _, after, found := strings.Cut(entry, "\ncreated by "); found {
		line, _, _ := strings.Cut(after, "\n")
		if _, parent, found := strings.Cut(line, " in goroutine "); found {
			g.parent, _ = strconv.ParseUint(strings.TrimSpace(parent), 10, 64)
		}
	}
	return g, true
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
