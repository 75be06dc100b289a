package flowfabric

import (
	"time"

	"github.com/flowfabric/flowfabric/api"
)

// ExplainOptions are the options of Explain.
type ExplainOptions struct {
	// Wait makes the call wait up to this long for a change of status, reason or causes; 0: it returns at once; more than a
	// minute counts as one minute.
	Wait time.Duration
}

// Explanation describes why an execution is not running, according to the rules that govern its start.
type Explanation = api.Explanation

// Blocker is one cause that keeps an execution from running.
type Blocker = api.Blocker

// LinePlace is the place of an execution in the queue of its lane.
type LinePlace = api.LinePlace

// NearWorkers are the workers that could claim an execution.
type NearWorkers = api.NearWorkers

// NearWorker is a worker instance and why it cannot claim an execution.
type NearWorker = api.NearWorker

// StatusChange is a change of status or reason.
type StatusChange = api.StatusChange

// LeaseHolder is the worker that runs an execution.
type LeaseHolder = api.LeaseHolder
