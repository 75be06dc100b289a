package top

import (
	"fmt"
	"strings"
)

// detailLines draws one execution.
func (m Model) detailLines() []string {
	x := m.detail.execution
	lines := []string{""}
	add := func(name, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); strings.TrimSpace(text) != "" {
			lines = append(lines, strings.TrimRight(fit(fmt.Sprintf("  %-10s %s", name, text), m.width), " "))
		}
	}
	now := m.cfg.Now()
	add("id", "%s", bare(x.ID))
	add("kind", "%s in lane %s, priority %d", x.Kind, x.Lane, x.Priority)
	add("status", "%s for %s %s", x.Status, since(now, x.StatusSince), x.Reason)
	add("attempts", "%d, of them %d retries, %d reclaims, %d replays", x.TotalAttempts, x.RetryCount, x.ReclaimCount, x.ReplayCount)
	if x.Lease != nil {
		add("lease", "%s, epoch %d, %s left", x.Lease.InstanceID, x.Lease.Epoch, left(now, x.Lease.ExpiresAt))
	}
	if x.Held != nil {
		add("held", "by %s %s", x.Held.By, x.Held.Reason)
	}
	if x.Failure != nil {
		add("failure", "%s (%s, %s)", x.Failure.Message, x.Failure.Class, x.Failure.Category)
	}
	if x.Cancellation != nil {
		add("cancelled", "by %s %s", x.Cancellation.By, x.Cancellation.Reason)
	}
	for _, s := range m.shown().Stuck {
		if s.Execution.ID == x.ID {
			add("stuck", "%s", s.Why)
		}
	}
	lines = append(lines, "")
	for i := len(m.detail.events) - 1; i >= 0; i-- {
		e := m.detail.events[i]
		line := fmt.Sprintf("  %6s ago  %-26s %s %s", since(now, e.At), e.Kind, e.Actor.Type, e.Actor.ID)
		lines = append(lines, strings.TrimRight(fit(line, m.width), " "))
	}
	return lines
}
