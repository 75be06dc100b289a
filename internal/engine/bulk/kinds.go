package bulk

import (
	"github.com/flowfabric/flowfabric/internal/store"
)

// The kinds of small records. Values are stored: never renumber them. The tests of the tree find a number that is given twice.
const (
	docJob      store.DocKind = 6  // key: job id
	docJobItems store.DocKind = 12 // key: job id and number of the batch; what it did
)

// The kinds of timers. Values are stored: never renumber them.
const (
	timerJobs store.TimerKind = 7 // Texts: bulk jobs to continue
)
