package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

var errHeld = errors.New("an execution is held by another transaction")

// timerKey groups timers: one entry of the due index serves all executions with the same due time.
type timerKey struct {
	kind store.TimerKind
	at   core.Time
}

// commit writes what the unit has collected and publishes it. It does what follows from the commands first, so that a flow ends in the same
// transaction as its last member. If nothing has changed it writes nothing, but the answers still wait until everything that the unit has read is
// durable.
func (u *unit) commit(ctx context.Context, commands []string) error {
	if err := u.follow(ctx); err != nil {
		return err
	}
	if err := u.loadLedger(ctx); err != nil {
		return err
	}
	u.gather()
	if u.empty() {
		u.tx.Rollback(ctx)
		u.tx.Seen(u.safe.reached)
		u.done()
		return nil
	}
	span := u.commitSpan(max(len(commands), len(u.spans)))
	err := u.conclude(ctx, commands)
	endSpan(span, err)
	return err
}

// follow does what follows from the changes so far: it ends the leases that a budget breach ends, and advances the flows of members that have
// ended. Each of the two may cause the other, so it repeats until there is nothing left to do.
func (u *unit) follow(ctx context.Context) error {
	for {
		if err := u.cancelHolders(ctx); err != nil {
			return err
		}
		if err := u.advanceFlows(ctx); err != nil {
			return err
		}
		if !u.ordersCancels() {
			return nil
		}
	}
}

// conclude writes the changes in one round trip. If that succeeds it updates the caches of this process and notifies everything that waits. The
// order matters: the meters count first, then publish runs, then the functions in after. Audit logs and answers wait for durability (safety).
func (u *unit) conclude(ctx context.Context, commands []string) error {
	if err := u.meets(u.writes); err != nil {
		return err
	}
	if probe := u.e.cfg.Probe; probe != nil {
		if err := probe.BeforeCommit(commands); err != nil {
			return &store.Fault{Kind: store.Unavailable, Err: err}
		}
	}
	u.ch.Safe, u.ch.Incarnation = u.safe.reached, u.since
	err := u.writeOut(ctx)
	u.e.sweep.classes.removed.Add(int64(len(u.ch.Remove) + len(u.ch.Strip))) // counted now: a retention round that counted them earlier would miss this removal
	if u.e.failed(err) != nil {
		return err
	}
	u.e.wrote()
	if probe := u.e.cfg.Probe; probe != nil {
		if err := probe.AfterCommit(commands); err != nil {
			return &store.Fault{Kind: store.Unknown, Err: err}
		}
	}
	u.told(func() { u.e.meter.committed(u, len(commands)) })
	u.safe.then(u.tellAudits)
	u.told(u.publish)
	u.done()
	return nil
}

func (u *unit) done() {
	for _, f := range u.after {
		u.told(f)
	}
}

// gather turns the changed executions, budgets, audit chains and flows into rows.
func (u *unit) gather() {
	for _, ent := range u.order {
		u.at("gather", ent.x.ID.UUID)
		switch {
		case ent.removed:
			// A timer may have ended it in this transaction, so it still has queue rows and slots to give back.
			u.file(ent)
			u.count(ent)
			u.markWaits(ent)
			u.markHolds(ent)
		case ent.changed:
			u.file(ent)
			u.arm(ent)
			u.count(ent)
			u.markWaits(ent)
			u.markHolds(ent)
			u.retire(ent)
			u.noteSilent(ent)
			u.write(ent, &u.ch.Update)
		case ent.renewed:
			u.arm(ent)
			u.write(ent, &u.ch.Renew)
		}
	}
	u.writeRates()
	u.writeBooks()
	u.writeChains()
	u.writeFlows()
	for _, timer := range u.timers {
		u.ch.AddTimers = append(u.ch.AddTimers, *timer)
	}
	u.timers = nil
}

// noteSilent writes a silent change for an execution that is no longer blocked on its key, if no event of this unit names it. Lists follow the log
// and would not notice otherwise.
func (u *unit) noteSilent(ent *entry) {
	x := ent.x
	if ent.blocked == "" || ent.blocked == x.BlockedOn ||
		slices.ContainsFunc(u.ch.Events, func(ev core.Event) bool { return ev.ExecutionID == x.ID }) {
		return
	}
	u.noteChange(x)
}

// noteChange writes a silent change: lists follow the log, and this execution has changed without an event.
func (u *unit) noteChange(x *core.Execution) {
	u.ch.Events = append(u.ch.Events, core.Event{
		Kind: core.SilentChange, At: u.now, Namespace: x.Class.Namespace, ExecutionID: x.ID, Class: x.Class, AttemptIndex: -1, Actor: core.EngineActor(),
	})
}

// write adds an execution to the list of changes that fits how the unit got it: created, used from the cache, or loaded.
func (u *unit) write(ent *entry, loaded *[]*core.Execution) {
	switch {
	case ent.created:
		u.ch.Insert = append(u.ch.Insert, ent.x)
	case ent.assumed():
		u.ch.Assume = append(u.ch.Assume, ent.x)
	default:
		*loaded = append(*loaded, ent.x)
	}
}

func (u *unit) empty() bool {
	ch := &u.ch
	return len(ch.NewKeys)+len(ch.ReplaceKeys)+len(ch.DropKeys)+len(ch.Insert)+len(ch.Update)+len(ch.Renew)+len(ch.Assume)+len(ch.History)+
		len(ch.Patches)+len(ch.DropHistory)+len(ch.Enqueue)+len(ch.Dequeue)+len(ch.AddTimers)+len(ch.DropTimers)+len(ch.Counters)+len(ch.Lanes)+
		len(ch.RetireClasses)+len(ch.DropClasses)+len(ch.PutDocs)+len(ch.NewDocs)+len(ch.DropDocs)+len(ch.DropInbox)+len(ch.Remove)+len(ch.Strip)+len(ch.Events) == 0
}

// file brings the execution's queue row up to date (S6).
func (u *unit) file(ent *entry) {
	x := ent.x
	var now *store.QueueRow
	if x.Queued() {
		x.OrderKey = x.RankKey(u.ageing(x))
		now = &store.QueueRow{Class: x.Class.ID, Block: x.Block(), Order: x.OrderKey, ID: x.ID.UUID}
	}
	if ent.filed != nil && now != nil && *ent.filed == *now {
		return
	}
	if ent.filed != nil {
		u.ch.Dequeue = append(u.ch.Dequeue, *ent.filed)
	}
	if now != nil {
		u.ch.Enqueue = append(u.ch.Enqueue, *now)
	}
}

// ageing returns what a point of priority is worth in the execution's lane (S6).
func (u *unit) ageing(x *core.Execution) core.Millis {
	if lane := u.lane(x); lane != nil {
		return lane.Settings.AgeingMS
	}
	return 0
}

// arm makes sure that the due index has an entry for the execution's earliest timer (L19). An entry that is too early is harmless: the sweep finds
// nothing due and arms it again.
func (u *unit) arm(ent *entry) {
	x := ent.x
	if x.WakeAt == 0 {
		return
	}
	if due, rest := x.Ahead(u.now); due != 0 {
		x.TimerAt = roundUp(min(u.now.Add(rest), x.WakeAt), timerGrid) // always a new entry: when it is due, that much time has passed (wake)
		u.timer(timerWake, x.TimerAt, x.ID.UUID)
		return
	}
	due := x.WakeAt
	if x.Status == core.Running {
		due = min(due, u.now.Add(leaseTimerReach))
	}
	at := roundUp(due, timerGrid)
	if !ent.idle && x.TimerAt > u.now && x.TimerAt <= at {
		return
	}
	x.TimerAt = at
	u.timer(timerWake, at, x.ID.UUID)
}

// timer adds ids to the entry of that kind and time.
func (u *unit) timer(kind store.TimerKind, at core.Time, ids ...core.UUID) {
	timer := u.timerAt(kind, at)
	timer.IDs = append(timer.IDs, ids...)
}

func (u *unit) timerAt(kind store.TimerKind, at core.Time) *store.Timer {
	key := timerKey{kind, at}
	if u.timers[key] == nil {
		setIn(&u.timers, key, &store.Timer{At: at, Kind: kind})
	}
	return u.timers[key]
}

func roundUp(t core.Time, grid core.Millis) core.Time {
	if rest := int64(t) % grid; rest != 0 && t < core.Time(1<<62) {
		return t + core.Time(grid-rest)
	}
	return t
}

// count brings the slot counters up to date with what the execution holds (S42).
func (u *unit) count(ent *entry) {
	for _, key := range ent.holds {
		if !contains(ent.x.Holds, key) {
			u.addCounter(key, -1)
		}
	}
	for _, key := range ent.x.Holds {
		if !contains(ent.holds, key) {
			u.addCounter(key, 1)
		}
	}
}

func (u *unit) addCounter(key string, n int64) {
	if u.ch.Counters == nil {
		u.ch.Counters = map[string]int64{}
	}
	u.ch.Counters[key] += n
}

// retire arms the removal of an execution that has ended in this unit (L139).
func (u *unit) retire(ent *entry) {
	if !ent.justEnded() || ent.x.Member != nil { // members are removed with their flow
		return
	}
	if at, ok := u.removeAt(ent.x); ok {
		u.timer(timerRetain, removalTimer(at, u.now), ent.x.ID.UUID)
	}
}

// removalTimer returns when the timer of a removal fires. It is coarse, so that many removals share one entry.
func removalTimer(at, now core.Time) core.Time {
	if at.Sub(now) < core.Hour {
		return roundUp(at, core.Second)
	}
	return roundUp(at, core.Minute)
}

// retainedUntil arms the removal of an execution that is kept until then (U54). The timer of its retention may have fired while the removal was not
// allowed. The new timer fires on the next whole second and never at once, so that the caller can still read the execution.
func (u *unit) retainedUntil(ent *entry, until core.Time) {
	if f := u.flow(ent.x.FlowID.UUID); f != nil { // a removal of the flow under way has to check again
		f.Touch(u.now)
		u.touchFlow(f)
	}
	if until != 0 {
		u.timer(timerRetain, roundUp(max(until, u.now)+1, core.Second), ent.x.ID.UUID)
	}
}

// removeAt returns when retention may remove a finished execution (L139).
func (u *unit) removeAt(x *core.Execution) (core.Time, bool) {
	settings := u.settingsOf(x)
	return x.RemoveAt(&settings, u.e.cfg.Retention)
}

// settingsOf returns the settings of the execution's lane, or the defaults if the lane is not known.
func (u *unit) settingsOf(x *core.Execution) core.LaneSettings {
	if lane := u.lane(x); lane != nil {
		return lane.Settings
	}
	return core.LaneSettings{}
}

func contains(list []string, text string) bool {
	for _, item := range list {
		if item == text {
			return true
		}
	}
	return false
}

// publish makes a commit visible to this process and to others: it wakes callers that wait for an execution, updates the caches, wakes the picker
// and the sweep, and sends one hint to other processes. Nothing here decides anything: a lost hint or a panic only means that the change is noticed
// later, by a poll. Everything that concerns the picker is passed in one call (pickNews explains why).
func (u *unit) publish() {
	u.e.trap("publish", core.UUID{})
	hint := store.Hint{Named: true}
	classes := map[int32]bool{}
	var filed []filing
	for _, ent := range u.order {
		if ent.removed {
			u.e.waits.wake(ent.x.ID.UUID) // a timer may have ended it in this transaction
			continue
		}
		if ent.x.Queued() {
			hint.Blocked = hint.Blocked || core.KeyBlock(ent.x.Block())
			if ent.x.BlockedOn == "" {
				u.roomBack = appendNew(u.roomBack, ent.blocked) // it is tried again: what blocked others may be gone (S45)
			}
			filed = append(filed, filing{ent.x.Class, ent.x.Block(), ent.x.OrderKey, ent.x.Input.Size})
			hint.Lanes = appendNew(hint.Lanes, ent.x.Class.Lane)
			if class := ent.x.Class.ID; !classes[class] {
				classes[class] = true
				hint.Classes = append(hint.Classes, class)
			}
		}
		if ent.justEnded() {
			u.e.waits.wake(ent.x.ID.UUID)
		}
	}
	news := pickNews{lanes: len(u.ch.Lanes) > 0}
	for key, n := range u.ch.Counters {
		if lane := laneOfCounter(key); n < 0 && lane != "" {
			news.places = true
			hint.Lanes = appendNew(hint.Lanes, lane)
		} else if n < 0 {
			u.roomBack = append(u.roomBack, key)
		}
	}
	hint.Keys, news.keys = u.roomBack, u.roomBack
	remembered := u.remembers(func() {
		u.e.recall.note(u.order, u.ch.Draw)
		u.e.slots.learn(u)
		u.e.picker.sawWorkers(u.ch.PutDocs)
		news.filed = filed
		u.e.picker.committed(news)
	})
	if !remembered {
		u.e.picker.committed(news)
	}
	var first core.Time
	for i := range u.ch.AddTimers {
		first = earlier(first, u.ch.AddTimers[i].At)
	}
	u.e.sweep.armed(first)
	if len(u.ch.Lanes)+len(u.ch.RetireClasses)+len(u.ch.DropClasses) > 0 {
		// If this fails, the next transaction reads the dictionary.
		_ = u.e.dict.reload(u.e.background())
		hint.Dictionary = true
	}
	if hint.Log = u.ch.Seq != 0; hint.Log {
		u.safe.then(u.tellLog)
	}
	u.e.hints.send(hint)
}

// tellLog passes the events to the followers of the log. If it is unknown whether they were written, followers find them in the log itself.
func (u *unit) tellLog(err error) {
	if err == nil {
		u.e.log.grew(u.ch.Seq, u.now, u.ch.Events)
	}
}

func earlier(a, b core.Time) core.Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func appendNew(list []string, text string) []string {
	if text == "" || contains(list, text) {
		return list
	}
	return append(list, text)
}

// once removes the duplicates of a list and keeps the first of each. Unlike appendNew it does not search the whole list for each item.
func once[T comparable](list []T) []T {
	seen := make(map[T]bool, len(list))
	return slices.DeleteFunc(list, func(t T) bool {
		before := seen[t]
		seen[t] = true
		return before
	})
}
