package flowfabric

import (
	"context"
	"iter"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
)

// Workers shows and steers the fleet.
type Workers interface {
	// List walks the instances by id. Codes: invalid_argument, invalid_cursor.
	List(ctx context.Context, o ...WorkerFilter) iter.Seq2[*WorkerInfo, error]
	// Page gives one page of the instances. Codes: invalid_argument, invalid_cursor.
	Page(ctx context.Context, o ...WorkerFilter) (Page[*WorkerInfo], error)
	// Get shows one instance. Codes: worker_not_registered.
	Get(ctx context.Context, instanceID string) (*WorkerInfo, error)
	// Leases lists the executions that the instance runs. Codes: worker_not_registered.
	Leases(ctx context.Context, instanceID string) ([]*Execution, error)
	// Drain tells workers to take nothing new and finish what they have. Codes: worker_not_registered.
	Drain(ctx context.Context, t WorkerTarget) error
	// Undrain takes Drain back. Codes: worker_not_registered.
	Undrain(ctx context.Context, t WorkerTarget) error
	// MarkDead says that an instance is gone. Codes: worker_not_registered.
	MarkDead(ctx context.Context, instanceID string, o DeadOptions) error

	sealed()
}

// WorkerFilter selects instances. The zero value: the live ones.
type WorkerFilter struct {
	Lane       string
	Capability string
	State      string // "live" (default), "draining", "dead", "all"
	Limit      int    // of a page; 0: 100, above 1000 counts as 1000
	Cursor     string // NextCursor of the page before, with the same filter
}

// WorkerTarget names one instance, or all instances of a worker.
type WorkerTarget struct {
	WorkerID   string
	InstanceID string
	// Leaving says that the one instance is about to stop by itself, as a Worker does: its drain ends when it registers again, and is
	// no operator's act.
	Leaving bool
}

// check refuses a target that names nobody, or two.
func (t WorkerTarget) check() error {
	switch {
	case (t.WorkerID == "") == (t.InstanceID == ""):
		return newError(core.CodeInvalidArgument, "give a worker or an instance").At("worker_id", "set WorkerID or InstanceID, not both")
	case t.Leaving && t.InstanceID == "":
		return newError(core.CodeInvalidArgument, "only an instance can be leaving").At("worker_id", "set InstanceID")
	default:
		return nil
	}
}

// DeadOptions say why an instance counts as dead and what becomes of its work.
type DeadOptions struct {
	Reason     string
	KeepLeases bool // its leases run on until they lapse; otherwise they lapse at once

	own bool // a worker of this process signs off itself, which is no operator's act
}

// WorkerInfo is a registered instance.
type WorkerInfo struct {
	WorkerID      string
	InstanceID    string
	State         string // live, draining, dead
	Namespaces    []string
	Lanes         []string
	Kinds         []string // empty: all
	Capabilities  []string
	MaxConcurrent int
	Version       string
	Labels        map[string]string
	RegisteredAt  time.Time
	RegisteredBy  string // principal
	LastSeen      time.Time
	ExpiresAt     time.Time // when it counts as gone, unless it is seen before
	Leases        int       // executions it runs
}
