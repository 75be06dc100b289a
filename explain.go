package flowfabric

import (
	"time"

	"github.com/flowfabric/flowfabric/api"
)

// ExplainOptions say whether to wait.
type ExplainOptions struct {
	// Wait makes the call wait until status, reason or causes change, for so long; 0: it answers at once, more than a minute
	// counts as one.
	Wait time.Duration
}

// Explanation says why an execution is not running, by the rules that decide over it.
type Explanation = api.Explanation

// Blocker is one cause that keeps an execution from running.
type Blocker = api.Blocker

// LinePlace is the place of an execution in its lane.
type LinePlace = api.LinePlace

// NearWorkers tells who could take an execution.
type NearWorkers = api.NearWorkers

// NearWorker is a worker instance and what keeps it from taking an execution.
type NearWorker = api.NearWorker

// StatusChange is a change of status or reason.
type StatusChange = api.StatusChange

// LeaseHolder is who runs an execution.
type LeaseHolder = api.LeaseHolder
