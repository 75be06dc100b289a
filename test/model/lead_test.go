package model

import (
	"slices"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// leads says what an operation works on, and which operation makes it. One drawn too early gives way to that one most of the time: so
// the rare kinds succeed within a round or two, and are still refused now and then.
var leads = func() map[string]lead {
	all := map[string]lead{
		"claim":        {queued, "submit"},
		"release_hold": {func(r *record) bool { return r.x.Held != nil }, "hold"}, "bulk release_hold": {func(r *record) bool { return r.x.Held != nil }, "bulk hold"},
		"retain": {terminal, "complete"}, "end_retain": {func(r *record) bool { return r.x.Retain != nil }, "retain"},
		"replay": {terminal, "complete"}, "delete": {terminal, "complete"},
		"approve": {asleep, "suspend"},
	}
	for _, op := range []string{
		"renew", "heartbeat", "progress", "complete", "fail", "delay", "release", "step", "cancel by the holder", "revoke", "complete_override",
		"fail_override", "create_waitpoint", "suspend",
	} {
		all[op] = lead{running, "claim"}
	}
	for _, op := range []string{"hold", "bulk hold", "bulk cancel", "cancel", "set_priority"} {
		all[op] = lead{func(r *record) bool { return !terminal(r) }, "submit"}
	}
	for _, op := range []string{"signal", "close_waitpoint", "read_waitpoint_token", "reissue_token", "create_link"} {
		all[op] = lead{func(r *record) bool { return r.x.Waits != nil && len(r.x.Waits.Open) > 0 }, "create_waitpoint"}
	}
	for _, op := range []string{"decide", "read_link_url", "revoke_link"} {
		all[op] = lead{func(r *record) bool { return len(r.d.Links) > 0 }, "create_link"}
	}
	return all
}()

type lead struct {
	needs func(r *record) bool
	first string
}

// operation is the one of that name, or what must come before it.
func (d *drawing) operation(name string) command {
	for !d.rarely("too early", 8) {
		l, known := leads[name]
		if !known || slices.ContainsFunc(d.m.sorted(), func(id base.UUID) bool { return l.needs(d.m.records[id]) }) {
			break
		}
		name = l.first
	}
	for _, o := range operations {
		if o.name == name {
			return o.draw(d)
		}
	}
	panic("no operation is called " + name)
}
