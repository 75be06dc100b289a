package wire

import (
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// The commands of a batch as values of package api, and as JSON has them (U77).

// Item is the command that the JSON says.
func (w *WorkItem) Item() api.WorkItem {
	item := api.WorkItem{
		Op: api.Op(w.Op), ID: api.ID(w.ExecutionID), Lease: api.Lease{ID: w.Lease.LeaseID, Epoch: w.Lease.Epoch, AttemptID: w.Lease.AttemptID},
		TTL: jsonx.Duration(w.TTLMS), Percent: w.Percent, Result: w.Result, Class: w.Class, Category: w.Category, Detail: w.Detail,
		Reason: w.Reason, Until: w.Until.Time, Step: w.Name, Usage: api.Usage{Amounts: w.Usage},
	}
	if w.Message != nil {
		item.Message = *w.Message
	}
	if w.RetryAfterMS != nil {
		after := jsonx.Duration(*w.RetryAfterMS)
		item.RetryAfter = &after
	}
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
		s.Timeout = 1 // no span at all would be the policy's
	default:
		s.Timeout = jsonx.Duration(*f.TimeoutMS)
	}
	return s
}

// limited is a span that the rules have a default for. No span at all would be the default, so what is given as that becomes one that they
// refuse.
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

// Set makes w, which is zero, the JSON of a command. What a server would refuse as no command at all is refused here: it would take the
// whole batch with it.
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
		w.Detail, w.Usage = i.Detail, i.Usage.Amounts
		return i.Detail.Problem("detail")
	case api.OpRelease, api.OpCancel:
		w.Reason = i.Reason
	case api.OpDelay:
		w.Usage = i.Usage.Amounts
		return w.DelayFields.Set(i)
	case api.OpUsage:
		w.Usage, w.DedupKey, w.AlreadySpent = i.Usage.Amounts, i.Usage.DedupKey, i.Usage.AlreadySpent
		if w.Usage == nil { // JSON needs the field
			w.Usage = map[string]int64{}
		}
	case api.OpStep:
		if w.Name, w.Result = i.Step, i.Result; i.Step == "" {
			return refused(jsonx.CodeInvalidArgument, "the step has no name").At("name", "give it one")
		}
		return i.Result.Problem("result")
	case api.OpSuspend, api.OpWaitpoint, api.OpSpawn, api.OpWaitChildren:
		return w.setWait(i)
	default:
		return NoCommand(i.Op)
	}
	return nil
}

// refused is the refusal of a command.
func refused(code, text string) *api.Error { return api.Errorf(code, "%s", text) }

// NoCommand refuses a command that there is not.
func NoCommand(op api.Op) error {
	return api.Errorf(jsonx.CodeInvalidArgument, "%q is not a command", op).At("op", "use one of the Op constants")
}

// setWait is Set of commands that have structures of their own. Those a server reads strictly.
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
			return refused("invalid_waitpoint", "the waitpoint has no key").At("waitpoint_key", "give it one")
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

// readable returns what a server would find wrong with the form of a command.
func (w *WorkItem) readable() error {
	text, err := Marshal(w)
	if err == nil {
		err = DecodeJSON(text, new(WorkItem))
	}
	return api.FaultsError(err)
}

// NoSuspensionGiven refuses a suspend that does not say what to wait for.
func NoSuspensionGiven() error {
	return refused(jsonx.CodeInvalidArgument, "there is nothing to wait for").At("suspension", "say what it is")
}

// NoWaitpointGiven refuses a command that makes a waitpoint and does not say which.
func NoWaitpointGiven() error {
	return refused(jsonx.CodeInvalidArgument, "there is no waitpoint to make").At("waitpoint", "say what it is")
}

// NothingToSpawn refuses a spawn that names no work.
func NothingToSpawn() error {
	return refused(jsonx.CodeInvalidArgument, "there is nothing to spawn").At("children", "name some work")
}

// FenceOf is the fence of a lease in the form of requests.
func FenceOf(l *api.Lease) LeaseRef {
	return LeaseRef{LeaseID: l.ID, Epoch: l.Epoch, AttemptID: l.AttemptID}
}

// Given is a text that may be left out; nil: it was.
func Given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Span is a span that may be left out, in milliseconds.
func Span(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	ms := jsonx.Milliseconds(*d)
	return &ms
}

// spanUnlessZero is a span that is left out where there is none.
func spanUnlessZero(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	return Span(&d)
}

// Set says until when a delay lasts: one of two ways to say it.
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

// SuspendFieldsOf are a wait as requests have it, without its condition and its key.
func SuspendFieldsOf(s *api.Suspension) SuspendFields {
	return SuspendFields{
		Waitpoints: s.Waitpoints, ReasonCode: s.ReasonCode, TimeoutMS: spanUnlessZero(s.Timeout), TimeoutAt: TimeOf(s.TimeoutAt),
		TimeoutBehavior: string(s.OnTimeout), ResumeDelayMS: jsonx.Milliseconds(s.ResumeDelay), SuspensionID: s.ID, Continuation: s.Continuation,
	}
}

// ExpiryFieldsOf are what is said of a waitpoint besides its key.
func ExpiryFieldsOf(n *api.NewWaitpoint) ExpiryFields {
	return ExpiryFields{ExpiresInMS: spanUnlessZero(n.ExpiresIn), WaitpointID: n.ID}
}

// SpawnFieldsOf are a spawn as requests have it, without its children.
func SpawnFieldsOf(i *api.WorkItem) SpawnFields {
	f := SpawnFields{Defaults: i.Spawn.Defaults, Edges: i.Spawn.Edges, OnParentEnd: string(i.Spawn.OnParentEnd)}
	if i.Children != nil {
		wait := ChildrenWaitOf(i)
		f.Wait = &wait
	}
	return f
}

// ChildrenWaitOf is a wait for children as requests have it.
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
