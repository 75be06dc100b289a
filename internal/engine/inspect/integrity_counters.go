package inspect

import (
	"context"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// A counter and what it counts cannot be read in one snapshot: there may be millions of executions, and the search rows that they are found by
// follow the log at a distance. While one key is taken and given back all the time, every walk meets the counter with another holder than the
// records, and by the same amount. So a walk judges only what nothing has touched meanwhile: every claim, end and wait is in the log.

// counterCheck is a comparison of counters with what executions hold.
type counterCheck struct {
	// walk compares, and returns what differs by key. If there are changes of what is held that the log does not name, it returns the versions of
	// the holders as well.
	walk func(ctx context.Context) (wrong map[string]Difference, holders map[base.UUID]int64, err error)
	// subject returns what a key is about, in the terms of concerns.
	subject func(key string) string
	// concerns returns what an execution may hold, or have held a moment ago.
	concerns func(x *core.Execution) []string
}

// lasting walks until everything that differs is judged, a few times at most. A key that is in use during every walk is not judged.
func (e *Inspector) lasting(ctx context.Context, c counterCheck) (found []Difference, err error) {
	judged := map[string]Difference{}
	for unsure, try := true, 0; unsure && try < integrityTries; try++ {
		if unsure, err = e.judgeWalk(ctx, c, judged); err != nil {
			return nil, err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(judged)) {
		found = append(found, judged[key])
	}
	return found, nil
}

// judgeWalk walks once, and adds what is wrong for certain. It reports whether there was more that differed.
func (e *Inspector) judgeWalk(ctx context.Context, c counterCheck, judged map[string]Difference) (unsure bool, err error) {
	began, err := e.Follower.Target(ctx)
	if err != nil {
		return false, err
	}
	wrong, holders, err := c.walk(ctx)
	if err != nil || len(wrong) == 0 {
		return false, err
	}
	disturbed, all, err := e.disturbed(ctx, began.LogEnd, holders, c.concerns)
	if err != nil {
		return false, err
	}
	for key, difference := range wrong {
		if all || disturbed[c.subject(key)] {
			unsure = true
		} else {
			judged[key] = difference
		}
	}
	return unsure, nil
}

// disturbed returns what the executions concern that have changed since a position of the log, or that have another version than they had. all is
// true if that cannot be told.
func (e *Inspector) disturbed(
	ctx context.Context, since int64, versions map[base.UUID]int64, concerns func(*core.Execution) []string,
) (subjects map[string]bool, all bool, err error) {
	changed, all, err := e.changedSince(ctx, since)
	if err != nil || all {
		return nil, all, err
	}
	looked := maps.Clone(versions)
	if looked == nil {
		looked = map[base.UUID]int64{}
	}
	for id := range changed {
		looked[id] = 0 // no row has this version
	}
	subjects = map[string]bool{}
	for some := range slices.Chunk(slices.Collect(maps.Keys(looked)), integrityBatch) {
		loaded, err := e.Store.Read(ctx, store.Want{Executions: some, SkipUnreadable: true})
		if err != nil {
			return nil, false, txn.PublicFault(err)
		}
		if len(loaded.Executions) < len(some) { // what one held that was removed since is not known
			return nil, true, nil
		}
		for id, x := range loaded.Executions {
			if x.Version == looked[id] {
				continue
			}
			for _, subject := range concerns(x) {
				subjects[subject] = true
			}
		}
	}
	return subjects, false, nil
}

// changedSince returns the executions that the log names after a position. all is true if there are too many, or if a commit cannot be read.
func (e *Inspector) changedSince(ctx context.Context, since int64) (changed map[base.UUID]bool, all bool, err error) {
	// A walk reads every commit, also one whose number is above that of an open transaction. The log is not read beyond that number before the
	// transaction has ended.
	end, err := e.Follower.Target(ctx)
	if err == nil {
		err = e.Follower.ReachAll(ctx)
	}
	if err != nil {
		return nil, false, err
	}
	changed = map[base.UUID]bool{}
	for at := since; at < end.LogNewest && len(changed) <= mostDisturbed; {
		commits, err := e.Store.Log(ctx, at, txn.LogRead)
		if err != nil {
			return nil, false, txn.PublicFault(err)
		}
		if len(commits) == 0 {
			return nil, true, nil // the log was set back
		}
		for i := range commits {
			all = all || commits[i].Unreadable != nil
			for _, event := range commits[i].Events {
				if !event.ExecutionID.IsZero() {
					changed[event.ExecutionID.UUID] = true
				}
			}
		}
		at = commits[len(commits)-1].Seq
	}
	return changed, all || len(changed) > mostDisturbed, nil
}

// checkPlaces compares the counters of places and slots with what executions hold.
func (e *Inspector) checkPlaces(ctx context.Context) ([]Difference, error) {
	return e.lasting(ctx, counterCheck{walk: e.wrongPlaces, subject: func(key string) string { return key }, concerns: e.mayHold})
}

// mayHold are the keys of the counters that an execution may have changed.
func (e *Inspector) mayHold(x *core.Execution) []string {
	keys := append(slices.Clone(x.Holds), txn.LaneCounter(x.Class.Lane))
	if needs := limits.NeedsOf(e.Dict.Now(), x.Class); needs != nil {
		for _, use := range needs.Quotas {
			keys = append(keys, use.SlotsKey())
		}
	}
	return keys
}

// wrongPlaces compares the counters. Slots and places are taken and given back with events alone.
func (e *Inspector) wrongPlaces(ctx context.Context) (wrong map[string]Difference, _ map[base.UUID]int64, err error) {
	held := map[string]int64{}
	err = e.eachStatus(ctx, limits.Holding, func(_ core.Status, _ []base.UUID, loaded *store.Loaded) error {
		for _, x := range loaded.Executions {
			for _, key := range x.Holds {
				held[key]++
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	wrong = map[string]Difference{}
	for some := range slices.Chunk(e.counterKeys(held), limits.ClassesAsked) {
		loaded, err := e.Store.Read(ctx, store.Want{Counters: some})
		if err != nil {
			return nil, nil, txn.PublicFault(err)
		}
		for _, key := range some {
			if loaded.Counters[key] != held[key] {
				wrong[key] = Difference{What: whatCounted(key), Key: key, Stored: loaded.Counters[key], Found: held[key]}
			}
		}
	}
	return wrong, nil, nil
}

// counterKeys are the keys of all counters there may be: of what is held, of every lane and of every quota that a class names.
func (e *Inspector) counterKeys(held map[string]int64) []string {
	dict := e.Dict.Now()
	keys := maps.Clone(held)
	for name := range dict.Lanes {
		keys[txn.LaneCounter(name)] = 0
	}
	for class := range dict.All() {
		if needs := dict.Needs(class.ID); needs != nil {
			for _, use := range needs.Quotas {
				keys[use.SlotsKey()] = 0
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

func whatCounted(key string) string {
	if txn.LaneOfCounter(key) != "" {
		return checkPlaces
	}
	return checkSlots
}
