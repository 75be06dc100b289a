package claims

import (
	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/engine/txn"
	"github.com/flowfabric/flowfabric/internal/store"
)

// What the picker learns from the commits of other processes: the log has all of them, also those whose hints were lost.

// hear applies a commit of another process.
func (p *picker) hear(c *store.Commit) {
	var news txn.News
	for i := range c.Events {
		ev := &c.Events[i]
		if mayMakeRoom(ev.Kind) {
			news.Keys = []string{"*"}
		}
		if ev.Class != nil && ev.Kind != "lease.acquired" && p.capped(ev.Class.Lane) {
			news.Places = true
		}
		switch ev.Kind {
		case "execution.blocked", core.SilentChange:
			p.blockedElsewhere()
		case "worker.registered", "worker.draining", "worker.dead":
			p.RescanWorkers(ev.InstanceID)
		}
	}
	if news.Places || len(news.Keys) > 0 {
		p.Filed(news)
	}
}

// missed handles commits whose events are unknown.
func (p *picker) missed() {
	p.Rescan()
	p.blockedElsewhere()
	p.recheckAll()
}

// hearLeases makes waiting claims look again whose requests another process may have answered (L117).
func (p *picker) hearLeases(commits []store.Commit) {
	instances := map[string]bool{}
	for i := range commits {
		for j := range commits[i].Events {
			if ev := &commits[i].Events[j]; ev.Kind == "lease.acquired" || ev.Kind == "grant.issued" {
				instances[ev.InstanceID] = true
			}
		}
	}
	if len(instances) > 0 {
		p.answeredElsewhere(instances)
	}
}

// mayMakeRoom reports whether an event may have freed an admission key. Events of work that begins or waits do not.
func mayMakeRoom(kind string) bool {
	switch kind {
	case core.SilentChange, "execution.submitted", "execution.ready", "execution.blocked", "execution.resumed", "lease.acquired", "signal.accepted":
		return false
	}
	return true
}

// capped reports whether claims may wait for a place in the lane. The poll sees rows, but not places: if the hint of a free place is lost, the log
// shows it.
func (p *picker) capped(name string) bool {
	lane := p.e.Dict.Now().Lanes[name]
	return lane != nil && lane.Settings.MaxConcurrent > 0
}
