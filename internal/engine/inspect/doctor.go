package inspect

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// The doctor examines the store and the work in it and reports problems (U165). Stores return facts; what they mean and what to do is decided here,
// once for all stores.

// Check is what the doctor says of one thing.
type Check struct {
	Name   string
	State  CheckState
	Detail string // what was found and what it means
	Hint   string // what to do; "" when nothing is to be done
}

// CheckState is how a thing is.
type CheckState string

// The states of a check.
const (
	CheckOK   CheckState = "ok"
	CheckWarn CheckState = "warn" // it works, but an operator should look at it
	CheckFail CheckState = "fail" // it does not work, or promises are not kept
)

// Bounds are what is still as it should be.
type Bounds struct {
	Skew        time.Duration // between the clocks of host and store
	Transaction time.Duration // age of an open transaction
	Ready       time.Duration // that work waits for a worker
	Lapsed      time.Duration // after its end in which a lease is taken back
	Overdue     time.Duration // that a timer, or the search rows, may be late
	Job         time.Duration // that a bulk job runs
	Expiry      time.Duration // before the end of an API key
	DeadRows    int64         // of a table, if they are also the greater part
	Free        int64         // bytes on the disk
	PoolShare   float64       // of the server's connections that one process may take
	Looked      int           // unfinished executions that are looked at
}

// DefaultBounds are good for production.
func DefaultBounds() Bounds {
	return Bounds{
		Skew: time.Second, Transaction: 5 * time.Minute, Ready: 10 * time.Minute, Lapsed: 10 * time.Second, Overdue: time.Minute,
		Job: time.Hour, Expiry: 14 * 24 * time.Hour, DeadRows: 100_000, Free: 1 << 30, PoolShare: 0.5, Looked: 20_000,
	}
}

// checks is the table of all that is looked at, in the order of the report. A check without a state does not concern this store.
var checks = []struct {
	name string
	look func(x *examination) Check
}{
	{"version", (*examination).version},
	{"durability", (*examination).durability},
	{"failover", (*examination).failover},
	{"rollbacks", (*examination).rollbacks},
	{"schema", (*examination).schema},
	{"clock", (*examination).clock},
	{"connections", (*examination).connections},
	{"pooler", (*examination).pooler},
	{"transactions", (*examination).transactions},
	{"autovacuum", (*examination).autovacuum},
	{"bloat", (*examination).bloat},
	{"disk", (*examination).disk},
	{"ready_work", (*examination).readyWork},
	{"leases", (*examination).leases},
	{"unreadable", (*examination).unreadable},
	{"timers", (*examination).timers},
	{"search_rows", (*examination).searchRows},
	{"bulk_jobs", (*examination).bulkJobs},
	{"api_keys", (*examination).apiKeys},
	{"signing_key", (*examination).signingKey},
	{"master_key", (*examination).masterKey},
	{"audit_seals", (*examination).auditSeals},
	{"retention", (*examination).retention},
}

// examination is one look at everything.
type examination struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one call
	e      *Inspector
	bounds Bounds
	now    base.Time       // of the store
	skew   time.Duration   // that the host is ahead
	found  store.Condition // zero if the store reports nothing

	looked      int
	lapsed      []base.UUID
	unreadables []base.UUID
}

// Doctor looks at everything. What cannot be looked at is a check that failed, not an error.
func (e *Inspector) Doctor(ctx context.Context, bounds Bounds) []Check {
	x := &examination{ctx: ctx, e: e, bounds: bounds}
	if err := x.begin(); err != nil {
		return []Check{named("store", unknown(err))}
	}
	all := []Check{named("store", fine("%s answers", e.Info().Kind))}
	for _, check := range checks {
		if said := check.look(x); said.State != "" {
			all = append(all, named(check.name, said))
		}
	}
	return all
}

// begin gathers the facts that several checks look at.
func (x *examination) begin() error {
	read := txn.ClockRead{From: x.e.Cfg.Clock.Now()}
	now, err := x.e.Store.Now(x.ctx)
	if err != nil {
		return txn.PublicFault(err)
	}
	read.To = x.e.Cfg.Clock.Now()
	x.now, x.skew = now, -time.Duration(read.Offset(now, x.e.Sweep.Ahead()))*time.Millisecond
	if examiner, able := x.e.Store.(store.Examiner); able {
		found, err := examiner.Examine(x.ctx, now)
		if err != nil {
			return txn.PublicFault(err)
		}
		x.found = *found
	}
	return x.walkUnfinished()
}

// walkUnfinished looks at the records of unfinished executions, the oldest first.
func (x *examination) walkUnfinished() error {
	q := store.Query{Order: store.CreatedAsc, Limit: integrityBatch}
	for _, status := range core.Statuses() {
		if !status.Terminal() {
			q.Statuses = append(q.Statuses, status)
		}
	}
	for x.looked < x.bounds.Looked {
		hits, err := x.e.Store.Find(x.ctx, q)
		if err != nil {
			return txn.PublicFault(err)
		}
		ids := make([]base.UUID, len(hits))
		for i, hit := range hits {
			ids[i] = hit.ID
		}
		loaded, err := x.e.Store.Read(x.ctx, store.Want{Executions: ids, SkipUnreadable: true})
		if err != nil {
			return txn.PublicFault(err)
		}
		for _, id := range ids {
			x.note(id, loaded)
		}
		if x.looked += len(hits); len(hits) < integrityBatch {
			break
		}
		q.After = &hits[len(hits)-1]
	}
	return nil
}

// note keeps what is wrong with one execution.
func (x *examination) note(id base.UUID, loaded *store.Loaded) {
	if loaded.Unreadable[id] != nil {
		x.unreadables = append(x.unreadables, id)
	}
	lease := (*core.Lease)(nil)
	if found := loaded.Executions[id]; found != nil && found.Status == core.Running {
		lease = found.Lease
	}
	if lease != nil && x.since(lease.ExpiresAt) > x.bounds.Lapsed {
		x.lapsed = append(x.lapsed, id)
	}
}

// since is how long ago a moment is by the store's clock.
func (x *examination) since(at base.Time) time.Duration { return x.now.Std().Sub(at.Std()) }

func named(name string, c Check) Check { c.Name = name; return c }

func fine(format string, args ...any) Check {
	return Check{State: CheckOK, Detail: fmt.Sprintf(format, args...)}
}

func worrying(hint, format string, args ...any) Check {
	return Check{State: CheckWarn, Detail: fmt.Sprintf(format, args...), Hint: hint}
}

func failing(hint, format string, args ...any) Check {
	return Check{State: CheckFail, Detail: fmt.Sprintf(format, args...), Hint: hint}
}

// unknown is what is said of a thing that cannot be looked at.
func unknown(err error) Check {
	return failing("look at the log of the server and of the database", "it cannot be looked at: %s", err)
}

// some names a few of many things.
func some[T fmt.Stringer](all []T) string {
	const shown = 3
	var names []string
	for _, one := range all[:min(shown, len(all))] {
		names = append(names, one.String())
	}
	if len(all) > shown {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}
