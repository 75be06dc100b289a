package bulk

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/claims"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/engine/waits"
	"github.com/flowfabric/flowfabric/internal/engine/work"
)

// BulkRequest starts a bulk job (L137).
type BulkRequest struct {
	Action      string // cancel, replay, priority, hold, release_hold, resume, signal, tag, retain, delete
	Args        BulkArgs
	Filter      core.Filter
	IDs         []base.GivenID
	All         bool
	DryRun      bool
	MaxAffected *int
	RequestKey  string
	Reason      string

	RatePerSecond int // executions a second at most; 0: as fast as it goes
}

// BulkArgs is what the action needs.
type BulkArgs struct {
	Priority int                `json:"priority,omitempty"`
	Tags     map[string]*string `json:"tags,omitempty"`
	Until    base.Time          `json:"until,omitzero"`
	DelayMS  base.Millis        `json:"delay_ms,omitempty"` // of resume
	Signal   *BulkSignal        `json:"signal,omitempty"`

	work.ReplayRequest // of replay
}

// BulkView is a bulk job (L138).
type BulkView struct {
	JobID     base.UUID
	Action    string
	State     string // running, done, stopped
	Total     int
	Done      int
	Refused   map[base.Code]int
	Failed    int
	StartedAt base.Time
	EndedAt   base.Time
	Sample    []base.ID // dry run: up to 20
	DryRun    bool

	RatePerSecond int
}

// BulkSignal is the signal that the bulk action signal delivers to each execution, as Approve does.
type BulkSignal struct {
	Name    string        `json:"name"`
	Suffix  string        `json:"suffix,omitempty"`
	Lane    string        `json:"lane,omitempty"`
	Comment string        `json:"comment,omitempty"`
	Payload *core.Payload `json:"payload,omitempty"`
}

func (s *BulkSignal) command() core.ApproveCommand {
	return core.ApproveCommand{Name: s.Name, Suffix: s.Suffix, Lane: s.Lane, Comment: s.Comment, Payload: s.Payload}
}

// check checks the arguments of bulk actions that have more than a word.
func (a *BulkArgs) check(action string) error { return claims.Under("args", a.checkFor(action)) }

// checkAt checks what depends on the time: a repeat of a job that was started must not get it.
func (a *BulkArgs) checkAt(now base.Time) error {
	return claims.Under("args", core.CheckDeadline(a.DeadlineAt, now))
}

func (a *BulkArgs) checkFor(action string) error {
	switch action {
	case bulkReplay:
		return core.CheckCascade(a.Cascade)
	case bulkTag:
		return core.CheckTagChanges("tags", a.Tags)
	case bulkResume:
		return (&core.ResumeCommand{DelayMS: a.DelayMS}).Check()
	case bulkSignal:
		if a.Signal == nil {
			return base.Invalid("name", "the action needs a signal")
		}
		cmd := a.Signal.command()
		return cmd.Check()
	}
	return nil
}

// withoutPayload returns the arguments as they may be shown.
func (a BulkArgs) withoutPayload() BulkArgs {
	if a.Signal != nil {
		shown := *a.Signal
		shown.Payload = nil
		a.Signal = &shown
	}
	return a
}

// The bulk actions that look at the waits of executions.
const (
	bulkResume = "resume"
	bulkSignal = "signal"
)

// resumeOne is a bulk action.
func resumeOne(u *txn.Tx, j *job, ent *txn.Row, fx *core.Effects) (bool, error) {
	d, err := waits.StateOf(u, ent)
	if err != nil {
		return false, err
	}
	already, err := ent.Exec.Resume(fx, d, core.ResumeCommand{By: j.Caller.Principal, DelayMS: j.Args.DelayMS, Reason: j.Reason})
	return !already, err
}

// signalOne is a bulk action.
func signalOne(u *txn.Tx, j *job, ent *txn.Row, fx *core.Effects) (bool, error) {
	d, err := waits.StateOf(u, ent)
	if err != nil {
		return false, err
	}
	cmd := j.Args.Signal.command()
	cmd.Principal, cmd.MintedID = j.Caller.Principal, u.Engine.Mint()
	answer, err := ent.Exec.Approve(fx, d, cmd)
	return !answer.Duplicate, err
}
