package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/keyring"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// What the doctor says of the work in the store.

// everyone sees what all namespaces have.
var everyone = txn.Caller{Principal: "doctor"}

func (x *examination) readyWork() Check {
	oldest, cursor := txn.LaneView{}, ""
	for {
		lanes, next, err := x.e.Lanes(x.ctx, everyone, cursor, nil)
		if err != nil {
			return unknown(err)
		}
		for _, lane := range lanes {
			if !lane.OldestReady.IsZero() && (oldest.OldestReady.IsZero() || lane.OldestReady < oldest.OldestReady) {
				oldest = lane
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if oldest.OldestReady.IsZero() {
		return fine("no work waits for a worker")
	}
	waited := x.since(oldest.OldestReady).Round(time.Second)
	state := fmt.Sprintf("the oldest ready work waits for %s, in lane %s with %d workers", waited, oldest.Lane.Name, oldest.Workers)
	switch {
	case waited <= x.bounds.Ready:
		return fine("%s", state)
	case !oldest.Lane.Settings.State.Claimable():
		return worrying("flowfabric lanes resume "+oldest.Lane.Name, "%s; the lane is %s", state, oldest.Lane.Settings.State)
	default:
		return worrying("start workers for its kinds and capabilities", "%s", state)
	}
}

func (x *examination) leases() Check {
	if len(x.lapsed) > 0 {
		return worrying("see that a server with an engine runs on this store: it takes lapsed leases back",
			"%d of the %d oldest unfinished executions have a lease that ran out and was not taken back: %s", len(x.lapsed), x.looked, some(x.lapsed))
	}
	return fine("no lease that ran out is still held, of the %d oldest unfinished executions", x.looked)
}

func (x *examination) unreadable() Check {
	if x.e.Health.Damaged.Load() {
		return failing("keep a copy of the database, and restore one from before; flowfabric doctor --integrity tells where it is damaged",
			"this server has met parts of the store that are damaged and cannot be read")
	}
	if len(x.unreadables) > 0 {
		return failing("keep a copy of the database, and mend the rows or restore a copy from before",
			"%d of the %d oldest unfinished executions cannot be read and are set aside: %s", len(x.unreadables), x.looked, some(x.unreadables))
	}
	if n := x.e.Gauges.Rows.Count(x.e.Sweep.StoreNow()); n > 0 {
		return worrying("read the events sweep.quarantined and the log of the server: each such row is a fault to be reported",
			"every one of the %d oldest unfinished executions can be read, but this server has set %d rows aside because their rules fail", x.looked, n)
	}
	return fine("every one of the %d oldest unfinished executions can be read", x.looked)
}

func (x *examination) timers() Check {
	if x.found.Overdue == 0 {
		return fine("no timer is overdue")
	}
	late, many := x.since(x.found.OldestDue).Round(time.Millisecond), ""
	if x.found.Overdue >= store.OverdueBound {
		many = " or more"
	}
	if late > x.bounds.Overdue {
		return worrying("see that a server with an engine runs on this store, and that the store is not overloaded",
			"%d%s timers are overdue, the oldest since %s: retries, delays and deadlines come late", x.found.Overdue, many, late)
	}
	return fine("%d%s timers are due, the oldest since %s", x.found.Overdue, many, late)
}

// searchRows compares how far the log was followed with its end.
func (x *examination) searchRows() Check {
	seen, err := x.e.Store.Poll(x.ctx, store.PollAsk{})
	if err != nil {
		return unknown(txn.PublicFault(err))
	}
	if seen.Projected >= seen.LogEnd {
		return fine("lists and searches are up to date")
	}
	commits, err := x.e.Store.Log(x.ctx, seen.Projected, 1)
	if err != nil {
		return unknown(txn.PublicFault(err))
	}
	if len(commits) == 0 {
		return fine("lists and searches are up to date")
	}
	behind, late := seen.LogEnd-seen.Projected, x.since(commits[0].At).Round(time.Millisecond)
	if late > x.bounds.Overdue {
		return worrying("see that a server with an engine runs on this store", "lists and searches are %d commits behind, since %s", behind, late)
	}
	return fine("lists and searches are %d commits behind, since %s", behind, late)
}

func (x *examination) bulkJobs() Check {
	jobs, err := x.e.JobsRunning(x.ctx)
	if err != nil {
		return unknown(err)
	}
	if jobs.Count == 0 {
		return fine("no bulk job runs")
	}
	since := x.since(jobs.Since).Round(time.Second)
	state := fmt.Sprintf("%d bulk jobs run, the oldest since %s with %d of %d done", jobs.Count, since, jobs.Done, jobs.Total)
	if since > x.bounds.Job {
		return worrying("flowfabric bulk get "+jobs.Oldest.String()+" shows whether it goes on", "%s", state)
	}
	return fine("%s", state)
}

func (x *examination) apiKeys() Check {
	admins, expiring := 0, keyring.APIKey{}
	for cursor := ""; ; {
		keys, next, err := x.e.APIKeys(x.ctx, everyone, cursor, nil)
		if err != nil {
			return unknown(err)
		}
		for _, key := range keys {
			if key.RevokedAt != 0 || key.ExpiresAt != 0 && key.ExpiresAt <= x.now {
				continue
			}
			if slices.Contains(key.Roles, "admin") {
				admins++
			}
			if key.ExpiresAt != 0 && (expiring.ExpiresAt == 0 || key.ExpiresAt < expiring.ExpiresAt) {
				expiring = key
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	switch {
	case admins == 0:
		return worrying("flowfabric api-keys create --store … --role admin --name me",
			"there is no admin key: a server starts on this store only if it is told to be open, and then every caller on its host may do everything")
	case expiring.ExpiresAt != 0 && -x.since(expiring.ExpiresAt) < x.bounds.Expiry:
		return worrying("give its users a new key, or the key a later end", "key %s (%s) ends at %s", expiring.ID, expiring.Name, expiring.ExpiresAt)
	default:
		return fine("keys with the role admin: %d", admins)
	}
}

func (x *examination) retention() Check {
	kept, cfg := x.e.Cfg.Retention, x.e.Cfg
	var forever []string
	for _, one := range []struct {
		name string
		keep *base.Millis
	}{{"succeeded", kept.Succeeded}, {"failed", kept.Failed}, {"cancelled", kept.Cancelled}, {"expired", kept.Expired}, {"skipped", kept.Skipped}} {
		if one.keep != nil && *one.keep < 0 {
			forever = append(forever, one.name)
		}
	}
	if cfg.EventRetention < 0 {
		forever = append(forever, "events")
	}
	if len(forever) > 0 {
		return worrying("set --retention and --event-retention", "%s are kept for ever: the store only grows", strings.Join(forever, ", "))
	}
	return fine("finished executions and events are dropped in time; audit rows are kept for %s", keptFor(cfg.AuditRetention))
}

func keptFor(d time.Duration) string {
	if d < 0 {
		return "ever"
	}
	return d.String()
}
