package txn

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/metrics"
)

// outcome is how a command ended.
type outcome int

const (
	outcomeDone outcome = iota
	outcomeRefused
	outcomeUnknown // the store was lost while committing
)

// outcomeOf classifies an answer: a timeout is the only error that leaves the outcome unknown.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return outcomeDone
	case base.CodeOf(err) == base.CodeTimeout:
		return outcomeUnknown
	default:
		return outcomeRefused
	}
}

// RenewName is the name of the command that extends a lease, which has counters of its own.
const RenewName = "renew"

// commandMeter are the instruments of one command.
type commandMeter struct {
	name     string
	answers  [3]*metrics.Tally // by outcome
	renewals [3]*metrics.Count // of renew alone
	seconds  *metrics.Spread
}

// command finds the instruments of a command. The lock is held.
func (m *meter) command(name string) *commandMeter {
	if c := m.byCommand[name]; c != nil {
		return c
	}
	c := &commandMeter{name: name, seconds: m.commandSeconds.With(name)}
	for i, text := range []string{outcomeDone: "done", outcomeRefused: "refused", outcomeUnknown: "unknown"} {
		c.answers[i] = m.commands.With(name, text)
		if name == RenewName {
			c.renewals[i] = m.renewals.With(text)
		}
	}
	m.byCommand[name] = c
	return c
}

// answered counts the commands of a batch, before their callers learn of it. errs has one answer each, or one for all.
func (m *meter) answered(batch []*Request, errs ...error) {
	if m == nil || len(batch) == 0 {
		return
	}
	now := m.clock()
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, r := range batch {
		m.count(r, errs[min(i, len(errs)-1)], now)
	}
}

// count counts one command. The lock is held.
func (m *meter) count(r *Request, err error, now time.Duration) {
	c, how := m.command(r.Name()), outcomeOf(err)
	c.answers[how].Inc()
	if c.renewals[how] != nil {
		c.renewals[how].Inc()
	}
	c.seconds.Observe((now - r.began).Seconds())
	if err == nil {
		return
	}
	switch base.CodeOf(err) {
	case base.CodeStaleLease, base.CodeLeaseExpired, base.CodeLeaseRevoked:
		m.fenced.With(c.name).Inc()
	}
}
