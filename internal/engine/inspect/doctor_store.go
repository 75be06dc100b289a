package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/engine/admin"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// What the doctor says of the store itself.

func (x *examination) version() Check {
	info := x.e.Info()
	return fine("%s %s is supported", info.Kind, info.Version)
}

func (x *examination) durability() Check {
	if len(x.found.Risks) > 0 {
		return worrying("mend the settings of the database and start without --unsafe-durability",
			"%s: commits that were acknowledged may be lost when the power fails", strings.Join(x.found.Risks, ", "))
	}
	return fine("what is acknowledged is on disk")
}

func (x *examination) failover() Check {
	switch s := x.found.Standbys; {
	case s == nil:
		return Check{}
	case s.Count == 0:
		return fine("no standby is connected")
	case !s.Synchronous:
		return worrying("name a standby in synchronous_standby_names and set synchronous_commit to on",
			"a failover may lose commits: of %d connected standbys none is synchronous", s.Count)
	default:
		return fine("%d standbys are connected and commits wait for one", s.Count)
	}
}

func (x *examination) schema() Check { return fine("schema %d", x.e.Info().Schema) }

func (x *examination) clock() Check {
	if x.skew.Abs() > x.bounds.Skew {
		return worrying("let both hosts follow one time server", "this host's clock is %s ahead of the store's: times in logs do not fit those of executions", x.skew)
	}
	if step := x.e.Sweep.LastStep(); step.By != 0 {
		return worrying("find out who set the clock; what fell due while it was ahead has happened",
			"the store's clock was set by %s, or this process stood still; that was seen at %s", txn.InSeconds(step.By), step.At)
	}
	return fine("this host's clock is %s ahead of the store's", x.skew)
}

func (x *examination) connections() Check {
	c := x.found.Connections
	if c == nil {
		return Check{}
	}
	free := c.Max - c.Reserved - c.Used
	state := fmt.Sprintf("%d of %d connections are in use, this process may open %d", c.Used, c.Max, c.Pool)
	switch {
	case free <= 0:
		return failing("raise max_connections, lower --store-pool, or put a pooler between", "%s: no other client can connect", state)
	case float64(c.Pool) > x.bounds.PoolShare*float64(c.Max):
		return worrying("lower --store-pool, or raise max_connections", "%s: that is more than its share, other processes may find none", state)
	default:
		return fine("%s", state)
	}
}

func (x *examination) pooler() Check {
	switch c := x.found.Connections; {
	case c == nil:
		return Check{}
	case !c.Pooled:
		return fine("the database is reached directly")
	case !c.Direct:
		return worrying("give --store-direct-url, an address past the pooler",
			"a pooler stands between and there is no direct address: if it works by transaction, hints of other processes are not heard and work is found by the poll")
	default:
		return fine("a pooler stands between, and hints are heard past it")
	}
}

func (x *examination) transactions() Check {
	if x.found.Connections == nil {
		return Check{}
	}
	if len(x.found.Transactions) == 0 || x.found.Transactions[0].Age <= x.bounds.Transaction {
		return fine("no transaction is open for long")
	}
	tx := x.found.Transactions[0] // the oldest
	return worrying(fmt.Sprintf("end it with pg_terminate_backend(%d), or the program that forgot it", tx.Session),
		"session %d (%s, %s) has a transaction open for %s: dead rows cannot be removed meanwhile and everything gets slower",
		tx.Session, cmp.Or(tx.Application, "unnamed"), tx.State, tx.Age.Round(time.Second))
}

func (x *examination) autovacuum() Check {
	switch v := x.found.Vacuum; {
	case v == nil:
		return Check{}
	case !v.On:
		return failing("set autovacuum and track_counts to on", "autovacuum is off: tables grow without bound and the database stops in the end")
	case len(v.Off) > 0:
		return worrying("take autovacuum_enabled out of the options of the table", "autovacuum leaves out %s", strings.Join(v.Off, ", "))
	default:
		return fine("autovacuum is on")
	}
}

func (x *examination) bloat() Check {
	bloated := slices.IndexFunc(x.found.Tables, func(t store.Table) bool { return t.Dead > x.bounds.DeadRows && t.Dead > t.Live })
	if bloated < 0 {
		return fine("most of what is stored is in use")
	}
	hint := "look for long transactions, then vacuum the table"
	if x.found.Vacuum == nil {
		hint = "flowfabric backup makes a copy without the unused part: restore it while the server stands"
	}
	t := x.found.Tables[bloated]
	return worrying(hint, "of %s %d are dead and %d in use: it takes more room than it needs, and reading it is slower", t.Name, t.Dead, t.Live)
}

func (x *examination) disk() Check {
	const mebi = 1 << 20
	size := fmt.Sprintf("the store takes %d MiB", x.found.Size/mebi)
	switch {
	case x.e.StoreState(x.ctx) == txn.StoreFull:
		return failing("make room: nothing can be written", "%s, and its disk is full", size)
	case x.found.Place != "" && x.found.Free < mebi:
		return failing("make room: a full disk stops every change", "%s, nothing is free in %s", size, x.found.Place)
	case x.found.Place == "":
		return fine("%s; how much room its server has is not told to clients", size)
	case x.found.Free < x.bounds.Free:
		return worrying("make room: a full disk stops every change", "%s, %d MiB are free in %s", size, x.found.Free/mebi, x.found.Place)
	default:
		return fine("%s, %d MiB are free in %s", size, x.found.Free/mebi, x.found.Place)
	}
}

func (x *examination) rollbacks() Check {
	loaded, err := x.e.Store.Read(x.ctx, store.Want{Docs: []store.DocRef{admin.RollbackRef}})
	if err != nil {
		return unknown(txn.PublicFault(err))
	}
	var known admin.Rollbacks
	if doc, found := loaded.Docs[admin.RollbackRef]; found {
		if known, err = admin.DecodeRollbacks(&doc); err != nil {
			return unknown(err)
		}
	}
	open := known.Open()
	if len(open) == 0 {
		return fine("no acknowledged commit is known to be lost")
	}
	last := open[len(open)-1]
	return failing("find out which work was done twice or lost, then run flowfabric doctor --acknowledge-rollback",
		"the database came back without commits that were acknowledged: at %s the event log ended at position %d, and position %d had been told",
		last.At.Std().UTC().Format("2006-01-02T15:04:05Z07:00"), last.To, last.From)
}
