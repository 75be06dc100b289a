package engine

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

// What the log tells beside trouble (U217). No line has a payload, a text that users wrote, or a secret in it.

// slowCommand is how long a command may take before the log tells.
const slowCommand = time.Second

// tellSlow tells of commands that took long. errs has one answer each, or one for all.
func (e *Engine) tellSlow(batch []*request, errs ...error) {
	now := e.meter.now()
	for i, r := range batch {
		took := now - r.began
		if took <= slowCommand {
			continue
		}
		code := "done"
		if err := errs[min(i, len(errs)-1)]; err != nil {
			code = string(core.CodeOf(err))
		}
		e.notes.Info("slow command", "command", r.name(), "code", code, "duration_ms", took.Milliseconds())
	}
}

// tellAudits tells of rows that the audit log has from now on. What was changed stands there alone.
func (u *unit) tellAudits(err error) {
	if err != nil {
		return
	}
	for i := range u.audits {
		row := &u.audits[i]
		log := u.e.cfg.Logger
		if row.Entity == "execution" {
			log = log.With("execution_id", row.EntityID)
		} else {
			log = log.With("entity_id", row.EntityID)
		}
		log.Info("audit", "namespace", row.Namespace, "audit_id", row.ID, "action", row.Action, "entity", row.Entity,
			"principal", row.Principal, "request_id", row.RequestID, "address", row.Address, "code", row.Outcome)
	}
}

// tellSwept tells of timers that a sweep found due, by what they are for.
func (e *Engine) tellSwept(timers []store.Timer) {
	found := map[string]int{}
	for i := range timers {
		found[timerName(timers[i].Kind)]++
	}
	for kind, n := range found {
		e.notes.InfoMany(n, "a sweep found timers that were due", "kind", kind)
	}
}
