package core

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/condition"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
)

// storySecret is the secret of the one key that signs in stories.
const storySecret = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

// storyKeys is a ring with one active key.
func storyKeys(t tester) *keyring.Ring {
	t.Helper()
	seed, err := keyring.NewSeed("k1", storySecret)
	if err != nil {
		t.Fatalf("seed: %v", err)
	}
	var set keyring.KeySet
	if _, err = set.Seed(&Effects{Now: 1}, keyring.Sealing{}, seed); err != nil {
		t.Fatalf("seed: %v", err)
	}
	ring, err := set.Open(keyring.MasterKey{})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return ring
}

// fresh binds new waitpoints with these keys.
func fresh(keys ...string) []Binding {
	var bindings []Binding
	for _, key := range keys {
		bindings = append(bindings, Binding{Key: &key})
	}
	return bindings
}

// pending binds waitpoints that are there.
func pending(ids ...base.UUID) []Binding {
	var bindings []Binding
	for _, id := range ids {
		bindings = append(bindings, Binding{UsePending: true, ID: id})
	}
	return bindings
}

// suspendFor fills in what every suspend of a story needs.
func (s *story) suspendFor(f Fence, resume string, edits ...func(*SuspendCommand)) (a SuspendAnswer, err error) {
	s.t.Helper()
	c := SuspendCommand{Fence: f, Condition: parsed(s.t, resume)}
	for _, edit := range edits {
		edit(&c)
	}
	return s.suspendWith(c)
}

func (s *story) suspendWith(c SuspendCommand) (a SuspendAnswer, err error) {
	s.t.Helper()
	c.Recorded, c.Mint = s.recorded(c.Fence.Epoch), s.mint
	if c.Keys == nil {
		c.Keys = s.keys
	}
	err = s.do(func(fx *Effects) error {
		a, err = s.x.Suspend(fx, &s.d, c)
		return err
	})
	return a, err
}

// bound binds waitpoints.
func bound(bindings ...Binding) func(*SuspendCommand) {
	return func(c *SuspendCommand) { c.Waitpoints = append(c.Waitpoints, bindings...) }
}

// timedOut gives a timeout and what happens then.
func timedOut(ms base.Millis, behavior string) func(*SuspendCommand) {
	return func(c *SuspendCommand) { c.TimeoutMS, c.Behavior = &ms, behavior }
}

func keyed(key string) func(*SuspendCommand) {
	return func(c *SuspendCommand) { c.IdempotencyKey = key }
}

// suspend and resume are the plainest: an operator alone ends the wait.
func (s *story) suspend() {
	s.t.Helper()
	must[SuspendAnswer](s.t)(s.suspendFor(s.fence(), operatorOnly))
}

func (s *story) resume() {
	s.t.Helper()
	must[bool](s.t)(s.resumeWith(ResumeCommand{By: "ann"}))
}

func (s *story) resumeWith(c ResumeCommand) (already bool, err error) {
	s.t.Helper()
	err = s.do(func(fx *Effects) error {
		already, err = s.x.Resume(fx, &s.d, c)
		return err
	})
	return already, err
}

func (s *story) createWaitpoint(f Fence, key string, edits ...func(*CreateWaitpointCommand)) (a CreateWaitpointAnswer, err error) {
	s.t.Helper()
	c := CreateWaitpointCommand{Fence: f, Key: key, MintedID: s.mint(), Keys: s.keys}
	for _, edit := range edits {
		edit(&c)
	}
	err = s.do(func(fx *Effects) error {
		a, err = s.x.CreateWaitpoint(fx, &s.d, c)
		return err
	})
	return a, err
}

// pendingAt makes pending waitpoints under the present lease.
func (s *story) pendingAt(keys ...string) []base.UUID {
	s.t.Helper()
	var ids []base.UUID
	for _, key := range keys {
		ids = append(ids, must[CreateWaitpointAnswer](s.t)(s.createWaitpoint(s.fence(), key)).Waitpoint.ID)
	}
	return ids
}

func (s *story) closeWaitpoint(f *Fence, id base.UUID) (already bool, err error) {
	s.t.Helper()
	err = s.do(func(fx *Effects) error {
		already, err = s.x.CloseWaitpoint(fx, &s.d, CloseWaitpointCommand{Fence: f, WaitpointID: id})
		return err
	})
	return already, err
}

func (s *story) signal(waitpoint base.UUID, name string, edits ...func(*SignalCommand)) (a SignalAnswer, err error) {
	s.t.Helper()
	c := SignalCommand{WaitpointID: waitpoint, Name: name, MintedID: s.mint(), TokenKid: "k1", TokenFingerprint: "0123456789abcdef"}
	for _, edit := range edits {
		edit(&c)
	}
	err = s.do(func(fx *Effects) error {
		a, err = s.x.Deliver(fx, &s.d, c)
		return err
	})
	return a, err
}

// from declares a source.
func from(sourceType, identity string) func(*SignalCommand) {
	return func(c *SignalCommand) { c.SourceType, c.SourceIdentity = sourceType, identity }
}

func (s *story) approve(c ApproveCommand) (a SignalAnswer, err error) {
	s.t.Helper()
	c.MintedID = s.mint()
	err = s.do(func(fx *Effects) error {
		a, err = s.x.Approve(fx, &s.d, c)
		return err
	})
	return a, err
}

func (s *story) createLink(c CreateLinkCommand) (l Link, err error) {
	s.t.Helper()
	c.LinkID, c.Keys = s.mint(), s.keys
	err = s.do(func(fx *Effects) error {
		l, err = s.x.CreateLink(fx, &s.d, c)
		return err
	})
	return l, err
}

func (s *story) decide(link base.UUID, decision, comment string) (a DecideAnswer, err error) {
	s.t.Helper()
	err = s.do(func(fx *Effects) error {
		a, err = s.x.Decide(fx, &s.d, DecideCommand{LinkID: link, Decision: decision, Comment: comment, MintedID: s.mint()})
		return err
	})
	return a, err
}

func (s *story) revokeLink(f *Fence, link base.UUID) (already bool, err error) {
	s.t.Helper()
	err = s.do(func(fx *Effects) error {
		already, err = s.x.RevokeLink(fx, &s.d, RevokeLinkCommand{Fence: f, LinkID: link, By: "ann"})
		return err
	})
	return already, err
}

func (s *story) reissue(waitpoint base.UUID) (w Waitpoint, err error) {
	s.t.Helper()
	err = s.do(func(fx *Effects) error {
		w, err = s.x.ReissueToken(fx, &s.d, waitpoint, s.keys)
		return err
	})
	return w, err
}

// observed is what observe shows; the present run must have been suspended.
func (s *story) observed() *Observation {
	s.t.Helper()
	shown, err := s.x.Observe(&s.d)
	if err != nil || shown == nil {
		s.t.Fatalf("observe shows %v, %v", shown, err)
	}
	return shown
}

// namesOf lists the names of signals.
func namesOf(signals []Signal) []string {
	var names []string
	for _, signal := range signals {
		names = append(names, signal.Name)
	}
	return names
}

// wantClosed asks how a waitpoint closed; "" for one that is open.
func (s *story) wantClosed(id base.UUID, reason CloseReason) {
	s.t.Helper()
	var is CloseReason
	if end := s.d.waitpointEnd(id); end != nil {
		is = end.Reason
	}
	if is != reason {
		s.t.Fatalf("the waitpoint is closed %q, want %q", is, reason)
	}
}

// wantCause asks how a suspension ended; "" for one that is open.
func (s *story) wantCause(suspension base.UUID, cause SuspensionCause) {
	s.t.Helper()
	var is SuspensionCause
	if end := s.d.suspensionEnd(s.d.suspensionByID(suspension).Seq); end != nil {
		is = end.Cause
	}
	if is != cause {
		s.t.Fatalf("the suspension ended by %q, want %q", is, cause)
	}
}

// keepWaits does what a store does with the records of waits: they are written, read back, and stay as they are.
func (s *story) keepWaits(writes []WaitWrite) {
	s.t.Helper()
	for _, write := range writes {
		if write.ExecutionID != s.x.ID {
			s.t.Fatalf("a record of %s", write.ExecutionID)
		}
		again, err := decodeText(write.Record, write.Record.Encode())
		if err != nil || !bytes.Equal(again.Encode(), write.Record.Encode()) {
			s.t.Fatalf("%s is read back as %s: %v", write.Record.Encode(), again.Encode(), err)
		}
	}
	s.d.Apply(writes)
}

// decodeText reads a text as a record of the same kind.
func decodeText(kind WaitRecord, text []byte) (WaitRecord, error) {
	switch kind.(type) {
	case *Waitpoint:
		v, err := DecodeWaitpoint(text)
		return &v, err
	case *WaitpointEnd:
		v, err := DecodeWaitpointEnd(text)
		return &v, err
	case *Suspension:
		v, err := DecodeSuspension(text)
		return &v, err
	case *SuspensionEnd:
		v, err := DecodeSuspensionEnd(text)
		return &v, err
	case *Signal:
		v, err := DecodeSignal(text)
		return &v, err
	case *Link:
		v, err := DecodeLink(text)
		return &v, err
	case *LinkEnd:
		v, err := DecodeLinkEnd(text)
		return &v, err
	default:
		return nil, fmt.Errorf("no kind of record: %T", kind)
	}
}

// copyOfState is a copy that shares nothing that Apply may change.
func copyOfState(d *WaitState) WaitState {
	copied := *d
	copied.Waitpoints = slices.Clone(d.Waitpoints)
	return copied
}

// checkWaits holds the record and its WaitState to WI7, WI9, WI11, WI12 and WI20.
func (s *story) checkWaits(x *Execution) {
	s.t.Helper()
	suspension := x.openSuspension()
	if (suspension != nil) != (x.Status == Suspended) {
		s.t.Fatalf("WI7: %s with suspension %+v", x.Status, suspension)
	}
	s.checkOpenWaitpoints(x)
	s.checkSuspensions(x)
	s.checkSignals(x)
	decided := map[base.UUID]int{}
	for _, end := range s.d.LinkEnds {
		if decided[end.LinkID]++; decided[end.LinkID] > 1 {
			s.t.Fatalf("WI20: %+v is the second end of its link", end)
		}
	}
	for kind, records := range map[string]int{
		"waitpoint.created": len(s.d.Waitpoints), "waitpoint.closed": len(s.d.WaitpointEnds), "signal.accepted": len(s.d.Signals),
		"approval_link.created": len(s.d.Links),
	} {
		if told := s.toldOf(kind); told != records {
			s.t.Fatalf("W86: %d records, but %s was told %d times", records, kind, told)
		}
	}
}

func (s *story) toldOf(kind string) (n int) {
	for _, event := range s.events {
		if event.Kind == kind {
			n++
		}
	}
	return n
}

func (s *story) checkOpenWaitpoints(x *Execution) {
	s.t.Helper()
	open := x.openWaitpoints()
	if x.Status.Terminal() && len(open) > 0 || len(open) > MaxOpenWaitpoints {
		s.t.Fatalf("WI7: %s with waitpoints %+v", x.Status, open)
	}
	ended := map[base.UUID]int{}
	for _, end := range s.d.WaitpointEnds {
		ended[end.WaitpointID]++
	}
	for i := range s.d.Waitpoints {
		w := &s.d.Waitpoints[i]
		there := x.openWaitpoint(w.ID)
		bound := s.d.suspensionByID(w.SuspensionID)
		byBudget := bound != nil && !bound.Budget.IsZero() // hands out no token (B29)
		if (there == nil) != (ended[w.ID] == 1) || ended[w.ID] > 1 || (w.TokenKid == "") != byBudget {
			s.t.Fatalf("WI7: %+v, open %+v, ended %d times", w, there, ended[w.ID])
		}
		if there == nil {
			continue
		}
		fits := w.RunIndex == x.RunIndex() && there.Key == w.Key && there.Active == (w.ActivatedAt != 0)
		if there.Active {
			fits = fits && x.Status == Suspended && w.SuspensionID == x.Waits.Suspension.ID
		} else {
			fits = fits && w.ExpiresAt == there.ExpiresAt && w.ExpiresAt != 0
		}
		if !fits {
			s.t.Fatalf("WI7: %+v is open as %+v in %s", w, there, x.Status)
		}
	}
	if len(open)+len(s.d.WaitpointEnds) != len(s.d.Waitpoints) {
		s.t.Fatalf("WI7: %d waitpoints, %d open, %d ended", len(s.d.Waitpoints), len(open), len(s.d.WaitpointEnds))
	}
}

func (s *story) checkSuspensions(x *Execution) {
	s.t.Helper()
	ended := map[int]int{}
	for _, end := range s.d.SuspensionEnds {
		ended[end.Seq]++
	}
	for i := range s.d.Suspensions {
		one := &s.d.Suspensions[i]
		isOpen := x.openSuspension() != nil && x.openSuspension().ID == one.ID
		if one.Seq != i+1 || ended[one.Seq] > 1 || (ended[one.Seq] == 0) != isOpen || one.Early && isOpen {
			s.t.Fatalf("WI9: suspension %d of number %d ended %d times, open %v", i, one.Seq, ended[one.Seq], isOpen)
		}
	}
	for _, end := range s.d.SuspensionEnds {
		timeout := s.d.suspension(end.Seq).TimeoutAt
		byTimer := end.Cause == CauseTimeout
		beaten := end.Resumed && !byTimer && end.Cause != CauseEarlySignals && end.EscalatedAt == 0 && timeout.Reached(end.At)
		if byTimer && (timeout == 0 || timeout > end.At) || beaten {
			s.t.Fatalf("WI14, W77: %+v, the timeout was at %s", end, timeout)
		}
	}
	if x.Waits != nil && x.Waits.Suspensions != len(s.d.Suspensions) {
		s.t.Fatalf("%d suspensions are counted, %d stored", x.Waits.Suspensions, len(s.d.Suspensions))
	}
}

func (s *story) checkSignals(x *Execution) {
	s.t.Helper()
	type key struct {
		waitpoint base.UUID
		text      string
		verified  bool
	}
	keys, ids, timeouts := map[key]bool{}, map[base.UUID]bool{}, 0
	for i := range s.d.Signals {
		one := &s.d.Signals[i]
		if one.Ordinal != i+1 {
			s.t.Fatalf("W60: signal %d has the ordinal %d", i+1, one.Ordinal)
		}
		known := key{one.WaitpointID, one.IdempotencyKey, one.SourceVerified}
		if ids[one.ID] || one.IdempotencyKey != "" && keys[known] {
			s.t.Fatalf("WI11: stored twice: %+v", one)
		}
		ids[one.ID], keys[known] = true, true
		if one.SourceType == condition.SourceEngine {
			timeouts++
		}
	}
	if x.Waits != nil && (x.Waits.Signals != len(s.d.Signals) || x.Waits.TimeoutSignals != timeouts) {
		s.t.Fatalf("W60: counted %+v, stored %d, of timeouts %d", x.Waits, len(s.d.Signals), timeouts)
	}
	if len(s.d.Signals)-timeouts > x.Policy.MaxSignals {
		s.t.Fatalf("WI12: %d signals stored", len(s.d.Signals))
	}
}

// wantUntouched holds a refused or repeated command to having left the WaitState alone.
func wantUntouched(t tester, before, after *WaitState) {
	t.Helper()
	if !reflect.DeepEqual(before, after) {
		t.Fatalf("the dossier changed: %s", cmp.Diff(before, after))
	}
}
