package work

import (
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The kinds of small records. Values are stored: never renumber them. The tests of the tree find a number that is given twice.
const (
	docStep      store.DocKind = 4  // owner: execution; key: run index and name
	docSteps     store.DocKind = 5  // owner: execution; how many steps there are, and which runs see which
	docOutcomes  store.DocKind = 44 // owner: execution; what users' own transactions have done under its lease, there until it is applied
	docRetention store.DocKind = 40 // one record: the default retention that was last in force; absent: the built-in one
)

// The kinds of follow-up work. Names and timers are stored: never change them.
var (
	// a lane got a cap: what runs in it takes its places (S5)
	taskCountLane = txn.TaskKind{Name: "count_lane", Timer: 32}
	// a lane's ageing changed: its queued rows get new order keys (S8)
	taskRefileLane = txn.TaskKind{Name: "refile_lane", Timer: 33}
	// a lane's retention got shorter: it applies to what has ended before (L139)
	TaskRetireLane = txn.TaskKind{Name: "retire_lane", Timer: 34, Later: true}
	// the default retention got shorter: it applies to what has ended before (L139)
	TaskRetireAll = txn.TaskKind{Name: "retire_all", Timer: 52, Later: true}
)
