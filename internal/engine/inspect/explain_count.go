package inspect

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/limits"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// Bounds of what an explanation counts.
const (
	leasesCounted = 100    // instances whose leases are counted: those that come nearest
	lineCounted   = 10_000 // executions ahead
	lineClasses   = 200    // classes asked in one read
	budgetHolders = 10
)

// countLeases counts the leases of the instances that are the best candidates for the execution and have a maximum. The numbers are those of lists,
// at most a second old.
func (l *explainLook) countLeases(ctx context.Context) error {
	class, now := l.in.Execution.Class, l.in.Now
	near := slices.DeleteFunc(slices.Clone(l.in.Workers), func(w core.Worker) bool { return w.MaxConcurrent == 0 || !w.Live(now) })
	if len(near) == 0 {
		return nil
	}
	slices.SortStableFunc(near, func(a, b core.Worker) int { return cmp.Compare(len(a.Unmet(class, 0)), len(b.Unmet(class, 0))) })
	views := make([]txn.WorkerView, min(len(near), leasesCounted))
	for i := range views {
		views[i].Worker = near[i]
	}
	if err := l.e.Follower.Reach(ctx); err != nil {
		return err
	}
	if err := l.e.CountLeases(ctx, l.caller, views); err != nil {
		return err
	}
	l.in.Leases = make(map[string]int, len(views))
	for _, view := range views {
		l.in.Leases[view.Worker.InstanceID] = view.Leases
	}
	return nil
}

// findLine counts the ready executions of the lane that come before this one, of those that the caller sees.
func (l *explainLook) findLine(ctx context.Context) error {
	x, lane := l.in.Execution, l.in.Lane
	if !x.Queued() || lane == nil {
		return nil
	}
	line := &lineCount{look: l, fairness: lane.Settings.Fairness, keys: map[string]bool{}}
	line.own = core.FairnessKeyOf(line.fairness, x.Class)
	line.keys[line.own] = true
	classes := slices.Clone(l.dict.OfLane[lane.Name])
	classes = slices.DeleteFunc(classes, func(class *core.Class) bool { return !l.caller.Sees(class.Namespace) })
	for some := range slices.Chunk(classes, lineClasses) {
		if err := line.count(ctx, some); err != nil {
			return err
		}
		if line.ahead > lineCounted {
			break
		}
	}
	l.in.Line = core.Line{Ahead: min(line.ahead, lineCounted), AtLeast: line.ahead > lineCounted}
	if line.own != "" && (line.fairness != core.FairnessAuto || len(line.keys) > 1) { // a single namespace shares with no other
		l.in.Line.FairnessKey, l.in.Line.AheadOfKey, l.in.Line.Keys = line.own, min(line.aheadOfOwn, lineCounted), len(line.keys)
		l.in.Line.Weight = max(lane.Settings.FairnessWeights[line.own], 1)
	}
	return nil
}

// lineCount counts the executions that come before an execution.
type lineCount struct {
	look       *explainLook
	fairness   string
	own        string // fairness key
	ahead      int
	aheadOfOwn int
	keys       map[string]bool // with ready work
}

// count reads the heads of the queues of some classes, and again those that were not read completely.
func (n *lineCount) count(ctx context.Context, classes []*core.Class) error {
	picks, err := n.queues(ctx, classes)
	if err != nil {
		return err
	}
	some := max(lineCounted/max(len(picks), 1), 50)
	for i := range picks {
		picks[i].Limit = some
	}
	more, err := n.read(ctx, classes, picks)
	if err != nil {
		return err
	}
	for _, pick := range more {
		if n.ahead > lineCounted {
			return nil
		}
		pick.Limit = some + lineCounted + 1
		if _, err := n.read(ctx, classes, []store.Pick{pick}); err != nil {
			return err
		}
	}
	return nil
}

// queues returns the queues in which ready executions of the classes are filed.
func (n *lineCount) queues(ctx context.Context, classes []*core.Class) (picks []store.Pick, err error) {
	loaded, err := n.look.e.Store.Read(ctx, store.Want{Blocks: limits.ClassNumbers(classes)})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	for _, class := range classes {
		picks = append(picks, store.Pick{Class: class.ID, Floor: math.MinInt64})
		for _, block := range loaded.Blocks[class.ID] {
			if !core.KeyBlock(block) {
				picks = append(picks, store.Pick{Class: class.ID, Block: block, Floor: math.MinInt64})
			}
		}
	}
	return picks, nil
}

// read counts the rows of the queues that come before the execution. Queues that have more of them than were asked for are not counted, but
// returned.
func (n *lineCount) read(ctx context.Context, classes []*core.Class, picks []store.Pick) (more []store.Pick, err error) {
	loaded, err := n.look.e.Store.Read(ctx, store.Want{Pick: picks})
	if err != nil {
		return nil, txn.PublicFault(err)
	}
	rows := loaded.Picked
	for _, pick := range picks {
		ahead, seen := 0, 0
		for ; seen < len(rows) && rows[seen].Class == pick.Class && rows[seen].Block == pick.Block; seen++ {
			if n.before(&rows[seen]) {
				ahead++
			}
		}
		rows = rows[seen:]
		if ahead == pick.Limit && pick.Limit <= lineCounted {
			more = append(more, pick)
			continue
		}
		n.add(classes, pick.Class, seen, ahead)
	}
	return more, nil
}

func (n *lineCount) add(classes []*core.Class, number int32, seen, ahead int) {
	i := slices.IndexFunc(classes, func(class *core.Class) bool { return class.ID == number })
	key := core.FairnessKeyOf(n.fairness, classes[i])
	n.ahead += ahead
	if key == n.own {
		n.aheadOfOwn += ahead
	}
	if seen > 0 {
		n.keys[key] = true
	}
}

// before reports whether a row comes before the execution in order (S6).
func (n *lineCount) before(row *store.QueueRow) bool {
	id := n.look.in.Execution.ID.UUID
	if row.Order != n.look.order {
		return row.Order < n.look.order
	}
	return bytes.Compare(row.ID[:], id[:]) < 0
}

// findHolders finds the holders of what the execution waits for: the first twenty of slots, the first ten of budgets. It reports whether there was
// anything to look for.
func (l *explainLook) findHolders(ctx context.Context, blockers []core.Blocker) (found bool, err error) {
	for _, b := range blockers {
		switch b.Code {
		case core.BlockerConcurrency:
			found, err = true, l.slotHolders(ctx, b.Key)
		case core.BlockerBudget:
			found, err = true, l.budgetHolders(ctx, b.Key)
		}
		if err != nil {
			return false, err
		}
	}
	return found, nil
}

func (l *explainLook) slotHolders(ctx context.Context, key string) error {
	uses := l.in.Execution.Policy.Quotas
	i := slices.IndexFunc(uses, func(use core.QuotaUse) bool { return use.SlotsKey() == key })
	quota := limits.RulesOf(l.dict).Quotas[uses[i].Quota]
	if quota == nil {
		return nil
	}
	classes := limits.ClassesOf(l.dict, quota.ID, func(class *core.Class) bool {
		return l.caller.Sees(class.Namespace) && slices.Contains(l.dict.Needs(class.ID).Quotas, uses[i])
	})
	look := &limits.QuotaLook{Engine: l.e.Admission, Dict: l.dict, Caller: l.caller, Quota: quota, Whole: true, Classes: map[string][]*core.Class{uses[i].Key: classes}}
	views := []limits.QuotaKeyView{{Key: uses[i].Key, Held: int(l.in.Room.Slots[key])}}
	if err := l.e.Follower.Reach(ctx); err != nil {
		return err
	}
	if err := look.FindHolders(ctx, views); err != nil {
		return err
	}
	l.in.Holders[key] = views[0].Holders
	return nil
}

func (l *explainLook) budgetHolders(ctx context.Context, key string) error {
	i := slices.IndexFunc(l.in.Set, func(id base.UUID) bool { return core.BudgetKey(id) == key })
	loaded, err := l.e.Store.Read(ctx, store.Want{Scans: []store.Scan{{Kind: limits.DocBudgetHold, Prefix: limits.BudgetPrefix(l.in.Set[i]), Limit: budgetHolders}}})
	if err != nil {
		return txn.PublicFault(err)
	}
	for i := range loaded.Scanned[0] {
		hold, err := limits.DecodeHold(&loaded.Scanned[0][i])
		if err != nil {
			return err
		}
		l.in.Holders[key] = append(l.in.Holders[key], hold.ExecutionID)
	}
	return nil
}
