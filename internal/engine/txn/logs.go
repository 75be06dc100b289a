package txn

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/store"
)

// What the engine logs besides errors (U217). No line contains a payload, a text written by users, or a secret.

// slowCommand is how long a command may take before it is logged.
const slowCommand = time.Second

// logSlow logs commands that took long. errs has one answer each, or one for all.
func (e *Engine) logSlow(batch []*Request, errs ...error) {
	now := e.Meter.now()
	for i, r := range batch {
		took := now - r.began
		if took <= slowCommand {
			continue
		}
		code := "done"
		if err := errs[min(i, len(errs)-1)]; err != nil {
			code = string(base.CodeOf(err))
		}
		e.QuietLog.Info("slow command", "command", r.Name(), "code", code, "duration_ms", took.Milliseconds())
	}
}

// logAudits logs the new rows of the audit log. What was changed is only in the audit log.
func (u *Tx) logAudits(err error) {
	if err != nil {
		return
	}
	for i := range u.Audits {
		row := &u.Audits[i]
		log := u.Engine.Cfg.Logger
		if row.Entity == "execution" {
			log = log.With("execution_id", row.EntityID)
		} else {
			log = log.With("entity_id", row.EntityID)
		}
		log.Info("audit", "namespace", row.Namespace, "audit_id", row.ID, "action", row.Action, "entity", row.Entity,
			"principal", row.Principal, "request_id", row.RequestID, "address", row.Address, "code", row.Outcome)
	}
}

// logFailed logs an attempt that failed without a report of its worker: it ran out of time, or its leases lapsed too often. What a worker reports
// is logged by the worker, so that each failed attempt has one line.
func (e *Engine) logFailed(f core.FailedAttempt) {
	log := e.Cfg.Logger.With("execution_id", f.ID.UUID.String(), "kind", f.Kind, "attempt", f.Attempt, "class", f.Class, "category", f.Category)
	if f.RetryAt == 0 {
		log = log.With("reason", f.Reason.String())
	} else {
		log = log.With("retry_at", f.RetryAt.Std())
	}
	log.Warn("attempt failed")
}

// logSwept logs the timers that a sweep found due, by kind.
func (e *Engine) logSwept(timers []store.Timer) {
	found := map[string]int{}
	for i := range timers {
		found[e.TimerLabel(timers[i].Kind)]++
	}
	for kind, n := range found {
		e.QuietLog.DebugMany(n, "a sweep found timers that were due", "kind", kind)
	}
}
