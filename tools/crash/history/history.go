// Package history records what clients and workers asked for and were told, and checks a whole run for contradictions: between what was
// acknowledged and what is stored, between the event log and the leases, and within the life of each execution. It talks to nothing: the program that runs
// clients and processes fills it in.
package history

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"
)

// Outcome is what a caller knows of a call.
type Outcome string

// The outcomes. A call without an answer, also because its process was killed, is unknown: it may have taken effect, and may still do so later.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused"
	Unknown Outcome = "unknown"
)

// Calls of clients and workers. Commands of workers under a lease have the names of their operations in the API, such as "complete".
const (
	Submit = "submit" // Key: its idempotency key; Execution: the answer
	Flow   = "flow"   // Key: its idempotency key; Execution: the flow
	Sign   = "signal" // Key: its idempotency key; Value: the id of the signal
	Cancel = "cancel"
	Replay = "replay"
	Get    = "get"    // Value: the status; Result: the result
	Claim  = "claim"  // a handler was called: Epoch
	Effect = "effect" // the function of a step ran: Key is the name of the step, Value its effect key

	Complete = "complete"
	Fail     = "fail"
	Step     = "step" // Key: the name of the step
)

// Call is one call of a client, or one event in a worker.
type Call struct {
	Process   string  `json:"process"`
	Number    int64   `json:"number"` // in its process
	Began     int64   `json:"began"`  // ns of the host's monotonic clock, which all processes share
	Ended     int64   `json:"ended"`  // 0: there was no answer
	Name      string  `json:"name"`
	Execution string  `json:"execution,omitempty"`
	Key       string  `json:"key,omitempty"`
	Epoch     int64   `json:"epoch,omitempty"`
	Lease     string  `json:"lease,omitempty"`
	Outcome   Outcome `json:"outcome,omitempty"`
	Code      string  `json:"code,omitempty"`
	Value     string  `json:"value,omitempty"`
	Result    string  `json:"result,omitempty"`
}

// String describes the call for a story.
func (c Call) String() string {
	text := fmt.Sprintf("%s by %s", c.Name, c.Process)
	for _, part := range []struct{ name, value string }{
		{"key", c.Key}, {"lease", c.Lease}, {"value", c.Value}, {"result", c.Result}, {"code", c.Code},
	} {
		if part.value != "" {
			text += fmt.Sprintf(" %s=%s", part.name, part.value)
		}
	}
	if c.Epoch != 0 {
		text += fmt.Sprintf(" epoch=%d", c.Epoch)
	}
	return text + " " + string(c.Outcome)
}

// Journal appends the calls of one process to a file. Each call has a line when it begins and one when it ends, written at once: what a
// process that is killed has written stays.
type Journal struct {
	process string
	file    *os.File
	now     func() int64

	mu   sync.Mutex
	last int64
}

// OpenJournal opens the journal of a process for appending. now is the host's monotonic clock.
func OpenJournal(path, process string, now func() int64) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &Journal{process: process, file: file, now: now}, nil
}

// Begin writes that a call begins. The returned function writes how it ended.
func (j *Journal) Begin(c Call) (end func(Call) error, err error) {
	j.mu.Lock()
	j.last++
	c.Process, c.Number, c.Began, c.Ended, c.Outcome = j.process, j.last, j.now(), 0, ""
	j.mu.Unlock()
	if err := j.write(c); err != nil {
		return nil, err
	}
	return func(ended Call) error {
		ended.Process, ended.Number, ended.Began, ended.Ended = c.Process, c.Number, c.Began, j.now()
		return j.write(ended)
	}, nil
}

// Note writes something that has happened.
func (j *Journal) Note(c Call) error {
	j.mu.Lock()
	j.last++
	c.Process, c.Number, c.Outcome = j.process, j.last, Done
	c.Began = j.now()
	c.Ended = c.Began
	j.mu.Unlock()
	return j.write(c)
}

func (j *Journal) write(c Call) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(line, '\n')) // one write appends whole
	return err
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// ReadJournals reads journals and pairs the lines of each call. The last line of a process that was killed may be cut off. A call that has
// begun and has no answer is Unknown.
func ReadJournals(paths ...string) ([]Call, error) {
	type id struct {
		process string
		number  int64
	}
	calls := map[id]Call{}
	for _, path := range paths {
		file, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its process was killed before it had written anything
		}
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var c Call
			if json.Unmarshal(lines.Bytes(), &c) == nil {
				calls[id{c.Process, c.Number}] = c
			}
		}
		if err := errors.Join(lines.Err(), file.Close()); err != nil {
			return nil, err
		}
	}
	all := make([]Call, 0, len(calls))
	for _, c := range calls {
		if c.Ended == 0 {
			c.Outcome = Unknown
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Call) int {
		return cmp.Or(cmp.Compare(a.Began, b.Began), cmp.Compare(a.Process, b.Process), cmp.Compare(a.Number, b.Number))
	})
	return all, nil
}

// Event is an entry of the event log.
type Event struct {
	ID        string          `json:"id"`
	Kind      string          `json:"kind"`
	At        time.Time       `json:"at"`
	Execution string          `json:"execution,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
}

// Execution is an execution as it is stored at the end.
type Execution struct {
	ID, Kind, Key, Status, Result string
	Parent                        string // execution that spawned it, whose cancel cancels it too; "": none
	Expected                      string // status that its kind ends with unless it is cancelled
	WantResult                    string // result that it ends with if it succeeds; "": not compared
	Explanation                   string // of an execution that has not ended
}

// Terminal reports whether it has ended.
func (x Execution) Terminal() bool {
	return slices.Contains([]string{"succeeded", "failed", "cancelled", "expired", "skipped"}, x.Status)
}

// Lease is an entry of the lease history of an execution, by the store's clock.
type Lease struct {
	Epoch             int64
	ID                string
	Acquired, Expired time.Time // Expired: its end; zero: it has not ended
}

// Signal is a stored signal.
type Signal struct{ ID string }

// Budget is what a budget counts at the end.
type Budget struct{ Used, Reserved, Overrun, Holds int64 }

// Facts are everything that is known of a run after it has healed.
type Facts struct {
	Calls      []Call
	Log        []Event             // the whole event log
	Followed   map[string][]string // ids of the events that each follower saw, in its order, from the start of the log
	Executions map[string]Execution
	Flows      map[string]string // state of each flow
	Leases     map[string][]Lease
	Signals    map[string][]Signal
	Upstream   map[string][]string // of each member of a flow: the members that it waits for
	Usage      map[string]int64    // by execution, of those that report usage
	WantUsage  map[string]int64    // what each of them reports in a run
	Budget     Budget
	Problems   []string // that the system itself has found, such as failed checks of doctor
}

// Finding is a contradiction.
type Finding struct {
	Rule      string   `json:"rule"`
	Execution string   `json:"execution,omitempty"`
	Text      string   `json:"text"`
	Story     []string `json:"story,omitempty"`
}

// String returns the finding without its story.
func (f Finding) String() string { return fmt.Sprintf("%s: %s: %s", f.Rule, f.Execution, f.Text) }

// found makes a finding.
func found(rule, execution, format string, args ...any) Finding {
	return Finding{Rule: rule, Execution: execution, Text: fmt.Sprintf(format, args...)}
}

// Check looks for contradictions with every check.
func Check(f *Facts) []Finding {
	var all []Finding
	for _, check := range []func(*Facts) []Finding{
		checkAcknowledged, checkEnds, checkProblems, checkLog, checkFollowers, checkLeases, checkFences, checkCompletions, checkReads, checkCancels,
		checkSignals, checkJoins, checkSteps, checkBudget, checkLives,
	} {
		all = append(all, check(f)...)
	}
	return all
}

// Story tells the life of an execution: its calls, then its events and leases.
func Story(f *Facts, id string) (story []string) {
	for _, c := range f.Calls {
		if c.Execution == id {
			answer := "without an answer"
			if c.Ended != 0 {
				answer = fmt.Sprintf("to %.6f", float64(c.Ended)/1e9)
			}
			story = append(story, fmt.Sprintf("%.6f %s %s", float64(c.Began)/1e9, answer, c))
		}
	}
	for _, e := range f.Log {
		if e.Execution == id {
			story = append(story, fmt.Sprintf("%s %s %s", e.At.Format(time.RFC3339Nano), e.Kind, e.Data))
		}
	}
	for _, l := range f.Leases[id] {
		story = append(story, fmt.Sprintf("lease %d %s from %s to %s", l.Epoch, l.ID, l.Acquired.Format(time.RFC3339Nano), l.Expired.Format(time.RFC3339Nano)))
	}
	if x, there := f.Executions[id]; there {
		story = append(story, fmt.Sprintf("stored: %+v", x))
	}
	return story
}
