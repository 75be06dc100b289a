package store

import "github.com/flowfabric/flowfabric/internal/core"

// waits codes the waitpoints and the suspension in an execution record.
func (c *coder) waits(w *core.Waits) {
	c.int(&w.Signals)
	c.int(&w.TimeoutSignals)
	c.int(&w.Suspensions)
	list(c, &w.Open, c.openWaitpoint)
	suspended := w.Suspension != nil
	c.flag(&suspended)
	if suspended {
		c.openSuspension(present(c, &w.Suspension))
	}
}

func (c *coder) openWaitpoint(w *core.OpenWaitpoint) {
	c.uuid(&w.ID)
	c.text(&w.Key)
	c.flag(&w.Active)
	c.time(&w.ExpiresAt)
}

func (c *coder) openSuspension(s *core.OpenSuspension) {
	c.int(&s.Seq)
	c.uuid(&s.ID)
	c.time(&s.At)
	c.time(&s.TimeoutAt)
	c.text(&s.Behavior)
	c.int64(&s.ResumeDelay)
	c.text(&s.ReasonCode)
	c.uuid(&s.PrimaryID)
	c.text(&s.PrimaryKey)
	c.time(&s.EscalatedAt)
}
