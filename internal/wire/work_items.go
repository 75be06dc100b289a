package wire

import (
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Conversion of commands of a batch between package api and JSON (U77).

// Item converts the JSON to a command.
func (w *WorkItem) Item() api.WorkItem {
	item := api.WorkItem{
		Op: api.Op(w.Op), ID: api.ID(w.ExecutionID), Lease: api.Lease{ID: w.Lease.LeaseID, Epoch: w.Lease.Epoch, AttemptID: w.Lease.AttemptID},
		TTL: jsonx.Duration(w.TTLMS), Percent: w.Percent, Result: w.Result, Class: w.Class, Category: w.Category, Detail: w.Detail,
		Reason: w.Reason, Until: w.Until.Time, Step: w.Name, Usage: api.Usage{Amounts: w.Usage}, Frames: w.Frames, ClientSeq: w.ClientSeq,
	}
	if w.Message != nil {
		item.Message = *w.Message
	}
	if w.RetryAfterMS != nil {
		after := jsonx.Duration(*w.RetryAfterMS)
		item.RetryAfter = &after
	}
	item.Default = w.DefaultPolicy
	if w.DelayMS != nil {
		item.Delay = jsonx.Duration(*w.DelayMS)
	}
	switch item.Op {
	case api.OpSuspend:
		item.Suspension = w.suspension()
	case api.OpUsage:
		item.Usage.DedupKey, item.Usage.AlreadySpent = w.DedupKey, w.AlreadySpent
	case api.OpWaitpoint:
		item.Waitpoint = &api.NewWaitpoint{Key: w.WaitpointKey, ExpiresIn: limited(w.ExpiresInMS), ID: w.WaitpointID, IdempotencyKey: w.IdempotencyKey}
	case api.OpSpawn:
		item.Spawn = &api.Spawn{Children: w.Children, Defaults: w.Defaults, Edges: w.Edges, OnParentEnd: api.ParentEnd(w.OnParentEnd)}
		if w.Wait != nil {
			item.Children, item.Usage.Amounts = w.Wait.options(w.Wait.TimeoutMS), w.Wait.Usage
		}
	case api.OpWaitChildren:
		item.Children = w.options(w.TimeoutMS)
	}
	return item
}

func (w *WorkItem) suspension() *api.Suspension {
	f := &w.SuspendFields
	s := &api.Suspension{
		Key: w.IdempotencyKey, Waitpoints: f.Waitpoints, ReasonCode: f.ReasonCode, TimeoutAt: f.TimeoutAt.Time, OnTimeout: api.TimeoutBehavior(f.TimeoutBehavior),
		ResumeDelay: jsonx.Duration(f.ResumeDelayMS), Continuation: f.Continuation, ID: f.SuspensionID,
	}
	if w.ResumeCondition != nil {
		s.Until = *w.ResumeCondition
	}
	switch {
	case f.TimeoutMS == nil:
	case *f.TimeoutMS == 0:
		s.Timeout = 1 // 0 would mean the policy's
	default:
		s.Timeout = jsonx.Duration(*f.TimeoutMS)
	}
	return s
}

// limited converts a duration that has a default. An invalid one that would become 0, the default, is changed to one that the
// rules refuse.
func limited(ms *int64) time.Duration {
	switch {
	case ms == nil:
		return 0
	case *ms == 0:
		return -time.Millisecond
	default:
		return jsonx.Duration(*ms)
	}
}

func (f *ChildrenWaitFields) options(timeout *int64) *api.ChildrenOptions {
	return &api.ChildrenOptions{
		Names: f.Names, Policy: api.JoinPolicy(f.Policy), K: f.K, Kind: api.EdgeKind(f.Kind), CancelRemaining: f.OnSatisfied == CancelRemaining,
		Timeout: limited(timeout),
	}
}

// Set fills in w, which is zero, from a command. Commands whose form a server would refuse are refused here, because they would
// fail the whole batch.
func (w *WorkItem) Set(i *api.WorkItem) error {
	w.Op, w.ExecutionID, w.Lease = string(i.Op), string(i.ID), FenceOf(&i.Lease)
	switch i.Op {
	case api.OpRenew:
		w.TTLMS = jsonx.Milliseconds(i.TTL)
	case api.OpProgress:
		w.Percent, w.Message = i.Percent, Given(i.Message)
	case api.OpComplete:
		w.Result, w.Usage = i.Result, i.Usage.Amounts
		return i.Result.Problem("result")
	case api.OpFail:
		w.Class, w.Category, w.Message, w.RetryAfterMS = i.Class, i.Category, &i.Message, Span(i.RetryAfter)
		w.Detail, w.Usage, w.DefaultPolicy = i.Detail, i.Usage.Amounts, i.Default
		return i.Detail.Problem("detail")
	case api.OpRelease, api.OpCancel:
		w.Reason = i.Reason
	case api.OpDelay:
		w.Usage = i.Usage.Amounts
		return w.DelayFields.Set(i)
	case api.OpUsage:
		w.Usage, w.DedupKey, w.AlreadySpent = i.Usage.Amounts, i.Usage.DedupKey, i.Usage.AlreadySpent
		if w.Usage == nil { // the field is required in JSON
			w.Usage = map[string]int64{}
		}
	case api.OpStep:
		if w.Name, w.Result = i.Step, i.Result; i.Step == "" {
			return refused(jsonx.CodeInvalidArgument, "the step has no name").At("name", "set its name")
		}
		return i.Result.Problem("result")
	case api.OpFrames:
		w.Frames, w.ClientSeq = i.Frames, i.ClientSeq
		return api.CheckFrames(i.Frames)
	case api.OpSuspend, api.OpWaitpoint, api.OpSpawn, api.OpWaitChildren:
		return w.setWait(i)
	default:
		return NoCommand(i.Op)
	}
	return nil
}

// refused returns the refusal of a command.
func refused(code, text string) *api.Error { return api.Errorf(code, "%s", text) }

// NoCommand refuses an unknown command.
func NoCommand(op api.Op) error {
	return api.Errorf(jsonx.CodeInvalidArgument, "%q is not a command", op).At("op", "use one of the Op constants")
}

// setWait is Set for commands with nested structures, which a server reads strictly.
func (w *WorkItem) setWait(i *api.WorkItem) error {
	switch i.Op {
	case api.OpSuspend:
		s := i.Suspension
		if s == nil {
			return NoSuspensionGiven()
		}
		if err := s.Continuation.Problem("continuation"); err != nil {
			return err
		}
		w.ResumeCondition, w.SuspendFields, w.IdempotencyKey, w.Usage = &s.Until, SuspendFieldsOf(s), s.Key, i.Usage.Amounts
	case api.OpWaitpoint:
		n := i.Waitpoint
		switch {
		case n == nil:
			return NoWaitpointGiven()
		case n.Key == "":
			return refused("invalid_waitpoint", "the waitpoint has no key").At("waitpoint_key", "set its key")
		}
		w.WaitpointKey, w.ExpiryFields, w.IdempotencyKey = n.Key, ExpiryFieldsOf(n), n.IdempotencyKey
		return nil
	case api.OpSpawn:
		if i.Spawn == nil {
			return NothingToSpawn()
		}
		w.Children, w.SpawnFields = i.Spawn.Children, SpawnFieldsOf(i)
	case api.OpWaitChildren:
		wait := ChildrenWaitOf(i)
		w.ChildrenWaitFields, w.TimeoutMS, w.Usage = wait.ChildrenWaitFields, wait.TimeoutMS, wait.Usage
	}
	return w.readable()
}

// readable returns what a server would refuse about the form of a command.
func (w *WorkItem) readable() error {
	text, err := Marshal(w)
	if err == nil {
		err = DecodeJSON(text, new(WorkItem))
	}
	return api.FaultsError(err)
}

// NoSuspensionGiven refuses a suspend without a suspension.
func NoSuspensionGiven() error {
	return refused(jsonx.CodeInvalidArgument, "the suspension is missing").At("suspension", "set Suspension")
}

// NoWaitpointGiven refuses a waitpoint command without a waitpoint.
func NoWaitpointGiven() error {
	return refused(jsonx.CodeInvalidArgument, "the waitpoint is missing").At("waitpoint", "set Waitpoint")
}

// NothingToSpawn refuses a spawn without children.
func NothingToSpawn() error {
	return refused(jsonx.CodeInvalidArgument, "there are no children to spawn").At("children", "set Spawn")
}

// FenceOf returns the fence of a lease for requests.
func FenceOf(l *api.Lease) LeaseRef {
	return LeaseRef{LeaseID: l.ID, Epoch: l.Epoch, AttemptID: l.AttemptID}
}

// Given returns an optional text; nil if empty.
func Given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Span returns an optional duration in milliseconds.
func Span(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	ms := jsonx.Milliseconds(*d)
	return &ms
}

// spanUnlessZero returns a duration, or nil for 0.
func spanUnlessZero(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	return Span(&d)
}

// Set sets the end of a delay, as a duration or a time.
func (f *DelayFields) Set(i *api.WorkItem) error {
	switch {
	case i.Until.IsZero():
		f.DelayMS = Span(&i.Delay)
	case i.Delay == 0:
		f.Until = TimeOf(i.Until)
	default:
		return refused(jsonx.CodeInvalidArgument, "both until and delay are given").At("until", "set Until or Delay")
	}
	return nil
}

// SuspendFieldsOf converts a suspension, without its condition and its key.
func SuspendFieldsOf(s *api.Suspension) SuspendFields {
	return SuspendFields{
		Waitpoints: s.Waitpoints, ReasonCode: s.ReasonCode, TimeoutMS: spanUnlessZero(s.Timeout), TimeoutAt: TimeOf(s.TimeoutAt),
		TimeoutBehavior: string(s.OnTimeout), ResumeDelayMS: jsonx.Milliseconds(s.ResumeDelay), SuspensionID: s.ID, Continuation: s.Continuation,
	}
}

// ExpiryFieldsOf converts the options of a waitpoint other than its key.
func ExpiryFieldsOf(n *api.NewWaitpoint) ExpiryFields {
	return ExpiryFields{ExpiresInMS: spanUnlessZero(n.ExpiresIn), WaitpointID: n.ID}
}

// SpawnFieldsOf converts a spawn, without its children.
func SpawnFieldsOf(i *api.WorkItem) SpawnFields {
	f := SpawnFields{Defaults: i.Spawn.Defaults, Edges: i.Spawn.Edges, OnParentEnd: string(i.Spawn.OnParentEnd)}
	if i.Children != nil {
		wait := ChildrenWaitOf(i)
		f.Wait = &wait
	}
	return f
}

// ChildrenWaitOf converts a wait for children.
func ChildrenWaitOf(i *api.WorkItem) ChildrenWait {
	w := ChildrenWait{UsageField: UsageField{i.Usage.Amounts}}
	if o := i.Children; o != nil {
		w.ChildrenWaitFields = ChildrenWaitFields{Names: o.Names, Policy: string(o.Policy), K: o.K, Kind: string(o.Kind)}
		w.TimeoutMS = spanUnlessZero(o.Timeout)
		if o.CancelRemaining {
			w.OnSatisfied = CancelRemaining
		}
	}
	return w
}
