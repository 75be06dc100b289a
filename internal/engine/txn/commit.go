package txn

import (
	"context"
	"errors"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// ErrHeld is why a try ends that met a row which may change: the batch is tried again.
var ErrHeld = errors.New("an execution is held by another transaction")

// timerKey groups timers: one entry of the due index serves all executions with the same due time.
type timerKey struct {
	kind store.TimerKind
	at   base.Time
}

// Commit writes what the transaction has collected and publishes it. It does what follows from the commands first, in the same transaction. If
// nothing has changed it writes nothing, but the answers still wait until everything that the transaction has read is durable.
func (u *Tx) Commit(ctx context.Context, commands []string) error {
	if err := u.follow(ctx); err != nil {
		return err
	}
	for _, load := range u.Engine.points.last {
		if err := load(ctx, u); err != nil {
			return err
		}
	}
	if err := u.carries(); err != nil {
		return err
	}
	// Everything is decided and locked. What follows only turns state into rows.
	u.gather()
	if u.empty() {
		u.StoreTx.Rollback(ctx)
		// The answers may rest on commits of this process that are not durable yet. They wait for those, although there is nothing to write.
		u.StoreTx.Seen(u.Safe.reached)
		u.done()
		return nil
	}
	span := u.commitSpan(max(len(commands), len(u.spans)))
	err := u.conclude(ctx, commands)
	EndSpan(span, err)
	return err
}

// follow does what follows from the changes so far: for example, a room ends the leases that a breach ends, and another advances what the executions
// that have ended were part of. Each may cause the other, so it repeats until there is nothing left to do.
func (u *Tx) follow(ctx context.Context) error {
	for again := true; again; {
		again = false
		for i := range u.Engine.phases {
			if settle := u.Engine.phases[i].Settle; settle != nil {
				if err := settle(ctx, u); err != nil {
					return err
				}
			}
		}
		for i := range u.Engine.phases {
			unsettled := u.Engine.phases[i].Unsettled
			again = again || unsettled != nil && unsettled(u)
		}
	}
	return nil
}

// conclude writes the changes in one round trip. If that succeeds it updates the caches of this process and notifies everything that waits. The
// order matters: the meters count first, then publish runs, then the functions in after. Audit logs and answers wait for durability (safety).
func (u *Tx) conclude(ctx context.Context, commands []string) error {
	// The write waits for rows that the transaction has not locked: keys and ids that it inserts, cached rows. If one of them is known to be held,
	// the write would wait with all other rows locked. The commands that need it leave the batch instead.
	if err := u.meets(u.writes); err != nil {
		return err
	}
	if probe := u.Engine.Cfg.Probe; probe != nil {
		if err := probe.BeforeCommit(commands); err != nil {
			return &store.Fault{Kind: store.Unavailable, Err: err}
		}
	}
	// The store writes only if the database is still the incarnation on which the decisions rest.
	u.Changes.Safe, u.Changes.Incarnation = u.Safe.reached, u.Since
	err := u.writeOut(ctx)
	u.Engine.Sweep.classes.removed.Add(int64(len(u.Changes.Remove) + len(u.Changes.Strip))) // counted now: a retention round that counted them earlier would miss this removal
	// Three outcomes: written, not written, unknown. Only the fault Unknown leaves the last one, and its commands are answered with it: the same
	// call under the same key finds out.
	if u.Engine.Failed(err) != nil {
		return err
	}
	u.Engine.wrote()
	if probe := u.Engine.Cfg.Probe; probe != nil {
		if err := probe.AfterCommit(commands); err != nil {
			return &store.Fault{Kind: store.Unknown, Err: err}
		}
	}
	u.afterCommit(func() { u.Engine.Meter.committed(u, len(commands)) })
	u.Safe.Then(u.logAudits)
	u.afterCommit(u.publish)
	u.done()
	return nil
}

func (u *Tx) done() {
	for _, f := range u.After {
		u.afterCommit(f)
	}
}

// gather turns the changed executions, and what rooms have changed beside them (the phase Flush), into rows.
func (u *Tx) gather() {
	for _, ent := range u.Order {
		u.At("gather", ent.Exec.ID.UUID)
		switch {
		case ent.Removed:
			// A timer may have ended it in this transaction, so it still has queue rows and slots to give back.
			u.file(ent)
			u.count(ent)
			u.followRow(ent)
		case ent.Changed:
			u.file(ent)
			u.arm(ent)
			u.count(ent)
			u.followRow(ent)
			u.retire(ent)
			u.noteSilent(ent)
			u.write(ent, &u.Changes.Update)
		case ent.renewed:
			u.arm(ent)
			u.write(ent, &u.Changes.Renew)
		}
	}
	for i := range u.Engine.phases {
		if flush := u.Engine.phases[i].Flush; flush != nil {
			flush(u)
		}
	}
	for _, timer := range u.timers {
		u.Changes.AddTimers = append(u.Changes.AddTimers, *timer)
	}
	u.timers = nil
}

// followRow lets the rooms bring up to date what they keep beside an execution that has changed.
func (u *Tx) followRow(ent *Row) {
	for _, follow := range u.Engine.points.row {
		follow(u, ent)
	}
}

// noteSilent writes a silent change for an execution that is no longer blocked on its key, if no event of this transaction names it. Lists follow the
// log and would not notice otherwise.
func (u *Tx) noteSilent(ent *Row) {
	x := ent.Exec
	if ent.blocked == "" || ent.blocked == x.BlockedOn ||
		slices.ContainsFunc(u.Changes.Events, func(ev core.Event) bool { return ev.ExecutionID == x.ID }) {
		return
	}
	u.NoteChange(x)
}

// NoteChange writes a silent change: lists follow the log, and this execution has changed without an event.
func (u *Tx) NoteChange(x *core.Execution) {
	u.Changes.Events = append(u.Changes.Events, core.Event{
		Kind: core.SilentChange, At: u.Now, Namespace: x.Class.Namespace, ExecutionID: x.ID, Class: x.Class, AttemptIndex: -1, Actor: core.EngineActor(),
	})
}

// write adds an execution to the list of changes that fits how the transaction got it: created, used from the cache, or loaded.
func (u *Tx) write(ent *Row, loaded *[]*core.Execution) {
	switch {
	case ent.Created:
		u.Changes.Insert = append(u.Changes.Insert, ent.Exec)
	case ent.Assumed():
		u.Changes.Assume = append(u.Changes.Assume, ent.Exec)
	default:
		*loaded = append(*loaded, ent.Exec)
	}
}

func (u *Tx) empty() bool {
	ch := &u.Changes
	return len(ch.NewKeys)+len(ch.ReplaceKeys)+len(ch.DropKeys)+len(ch.Insert)+len(ch.Update)+len(ch.Renew)+len(ch.Assume)+len(ch.History)+
		len(ch.Patches)+len(ch.DropHistory)+len(ch.Enqueue)+len(ch.Dequeue)+len(ch.AddTimers)+len(ch.DropTimers)+len(ch.Counters)+len(ch.Lanes)+
		len(ch.RetireClasses)+len(ch.DropClasses)+len(ch.PutDocs)+len(ch.NewDocs)+len(ch.DropDocs)+len(ch.DropInbox)+len(ch.Remove)+len(ch.Strip)+len(ch.Events) == 0
}

// file brings the execution's queue row up to date (S6).
func (u *Tx) file(ent *Row) {
	x := ent.Exec
	var now *store.QueueRow
	if x.Queued() {
		x.OrderKey = x.RankKey(u.Ageing(x))
		now = &store.QueueRow{Class: x.Class.ID, Block: x.Block(), Order: x.OrderKey, ID: x.ID.UUID}
	}
	// The row that was loaded is the one in the store: the lock of the execution protects its queue row too. An equal row is not written again.
	if ent.Filed != nil && now != nil && *ent.Filed == *now {
		return
	}
	if ent.Filed != nil {
		u.Changes.Dequeue = append(u.Changes.Dequeue, *ent.Filed)
	}
	if now != nil {
		u.Changes.Enqueue = append(u.Changes.Enqueue, *now)
	}
}

// Ageing returns what a point of priority is worth in the execution's lane (S6).
func (u *Tx) Ageing(x *core.Execution) base.Millis {
	if lane := u.Lane(x); lane != nil {
		return lane.Settings.AgeingMS
	}
	return 0
}

// arm makes sure that the due index has an entry for the execution's earliest timer (L19). An entry that is too early is harmless: the sweep finds
// nothing due and arms it again.
func (u *Tx) arm(ent *Row) {
	x := ent.Exec
	if x.WakeAt == 0 {
		return
	}
	// The store's clock was set back since the record was written: its times lie in the future by more than their durations. The timer counts what
	// is left of the duration from now.
	if due, rest := x.Ahead(u.Now); due != 0 {
		x.TimerAt = RoundUp(min(u.Now.Add(rest), x.WakeAt), TimerGrid) // always a new entry: when it is due, that much time has passed (wake)
		u.Timer(timerWake, x.TimerAt, x.ID.UUID)
		return
	}
	due := x.WakeAt
	// A lease is extended without touching the index. Its entry comes up at the latest after leaseTimerReach, finds the lease alive, and is armed
	// again.
	if x.Status == core.Running {
		due = min(due, u.Now.Add(leaseTimerReach))
	}
	at := RoundUp(due, TimerGrid)
	// An entry that comes early enough is there already. One whose time is over may have been taken already, so it does not count.
	if !ent.idle && x.TimerAt > u.Now && x.TimerAt <= at {
		return
	}
	x.TimerAt = at
	u.Timer(timerWake, at, x.ID.UUID)
}

// Timer adds ids to the entry of that kind and time.
func (u *Tx) Timer(kind store.TimerKind, at base.Time, ids ...base.UUID) {
	timer := u.TimerAt(kind, at)
	timer.IDs = append(timer.IDs, ids...)
}

// TimerAt returns the timer of a kind and time that this transaction adds, for executions or texts to be appended to.
func (u *Tx) TimerAt(kind store.TimerKind, at base.Time) *store.Timer {
	key := timerKey{kind, at}
	if u.timers[key] == nil {
		SetIn(&u.timers, key, &store.Timer{At: at, Kind: kind})
	}
	return u.timers[key]
}

// RoundUp returns the next multiple of a duration: timers of many commits share one entry.
func RoundUp(t base.Time, grid base.Millis) base.Time {
	if rest := int64(t) % grid; rest != 0 && t < base.Time(1<<62) {
		return t + base.Time(grid-rest)
	}
	return t
}

// count brings the slot counters up to date with what the execution holds (S42).
func (u *Tx) count(ent *Row) {
	for _, key := range ent.Holds {
		if !Contains(ent.Exec.Holds, key) {
			u.addCounter(key, -1)
		}
	}
	for _, key := range ent.Exec.Holds {
		if !Contains(ent.Holds, key) {
			u.addCounter(key, 1)
		}
	}
}

func (u *Tx) addCounter(key string, n int64) {
	if u.Changes.Counters == nil {
		u.Changes.Counters = map[string]int64{}
	}
	u.Changes.Counters[key] += n
}

// retire arms the removal of an execution that has ended in this transaction (L139).
func (u *Tx) retire(ent *Row) {
	if !ent.JustEnded() || ent.Exec.Member != nil { // members are removed with their graph
		return
	}
	if at, ok := u.RemoveAt(ent.Exec); ok {
		u.Timer(TimerRetain, RemovalTimer(at, u.Now), ent.Exec.ID.UUID)
	}
}

// RemovalTimer returns when the timer of a removal fires. It is coarse, so that many removals share one entry.
func RemovalTimer(at, now base.Time) base.Time {
	if at.Sub(now) < base.Hour {
		return RoundUp(at, base.Second)
	}
	return RoundUp(at, base.Minute)
}

// RetainedUntil arms the removal of an execution that is kept until then (U54). The timer of its retention may have fired while the removal was not
// allowed. The new timer fires on the next whole second and never at once, so that the caller can still read the execution.
func (u *Tx) RetainedUntil(ent *Row, until base.Time) {
	for _, retained := range u.Engine.points.retained {
		retained(u, ent)
	}
	if until != 0 {
		u.Timer(TimerRetain, RoundUp(max(until, u.Now)+1, base.Second), ent.Exec.ID.UUID)
	}
}

// RemoveAt returns when retention may remove a finished execution (L139).
func (u *Tx) RemoveAt(x *core.Execution) (base.Time, bool) {
	settings := u.SettingsOf(x)
	return x.RemoveAt(&settings, u.Engine.Cfg.Retention)
}

// SettingsOf returns the settings of the execution's lane, or the defaults if the lane is not known.
func (u *Tx) SettingsOf(x *core.Execution) core.LaneSettings {
	if lane := u.Lane(x); lane != nil {
		return lane.Settings
	}
	return core.LaneSettings{}
}

// publish makes a commit visible to this process and to others: it wakes callers that wait for an execution, updates the caches, wakes waiting claims
// and the sweep, and sends one hint to other processes. Nothing here decides anything: a lost hint or a panic only means that the change is noticed
// later, by a poll. Everything that concerns waiting claims is passed in one call (News explains why).
func (u *Tx) publish() {
	u.Engine.Trap("publish", base.UUID{})
	hint := store.Hint{Named: true}
	classes := map[int32]bool{}
	var filed []Filing
	for _, ent := range u.Order {
		if ent.Removed {
			u.Engine.Waiters.Wake(ent.Exec.ID.UUID) // a timer may have ended it in this transaction
			continue
		}
		if ent.Exec.Queued() {
			hint.Blocked = hint.Blocked || core.KeyBlock(ent.Exec.Block())
			if ent.Exec.BlockedOn == "" {
				u.RoomBack = AppendNew(u.RoomBack, ent.blocked) // it is tried again: what blocked others may be gone (S45)
			}
			filed = append(filed, Filing{ent.Exec.Class, ent.Exec.Block(), ent.Exec.OrderKey, ent.Exec.Input.Size})
			hint.Lanes = AppendNew(hint.Lanes, ent.Exec.Class.Lane)
			if class := ent.Exec.Class.ID; !classes[class] {
				classes[class] = true
				hint.Classes = append(hint.Classes, class)
			}
		}
		if ent.JustEnded() {
			u.Engine.Waiters.Wake(ent.Exec.ID.UUID)
		}
	}
	news := News{Lanes: len(u.Changes.Lanes) > 0}
	for key, n := range u.Changes.Counters {
		if lane := LaneOfCounter(key); n < 0 && lane != "" {
			news.Places = true
			hint.Lanes = AppendNew(hint.Lanes, lane)
		} else if n < 0 {
			u.RoomBack = append(u.RoomBack, key)
		}
	}
	hint.Keys, news.Keys = u.RoomBack, u.RoomBack
	// Caches are updated only if all of them still belong to the incarnation that was written to. If not, they were dropped meanwhile; the calls
	// that wait are woken all the same, and look at the store.
	remembered := u.remembers(func() {
		u.Engine.rows.note(u.Order, u.Changes.Draw)
		for i := range u.Engine.phases {
			if committed := u.Engine.phases[i].Committed; committed != nil {
				committed(u)
			}
		}
		news.Filed = filed
		u.Engine.Dispatcher.Filed(news)
	})
	if !remembered {
		u.Engine.Dispatcher.Filed(news)
	}
	var first base.Time
	for i := range u.Changes.AddTimers {
		first = Earlier(first, u.Changes.AddTimers[i].At)
	}
	u.Engine.Sweep.armed(first)
	if len(u.Changes.Lanes)+len(u.Changes.RetireClasses)+len(u.Changes.DropClasses) > 0 {
		// Correctness does not depend on it: begin compares the version with that of the store, and a commit that has loaded nothing names the
		// version that it was decided with. If this fails, the next transaction reads the dictionary.
		_ = u.Engine.Dict.Reload(u.Engine.Background())
		hint.Dictionary = true
	}
	if hint.Log = u.Changes.Seq != 0; hint.Log {
		u.Safe.Then(u.publishLog)
	}
	u.Engine.Hints.Send(hint)
}

// publishLog passes the events to the followers of the log. If it is unknown whether they were written, followers find them in the log itself.
func (u *Tx) publishLog(err error) {
	if err == nil {
		u.Engine.Log.grew(u.Changes.Seq, u.Now, u.Changes.Events)
	}
}
