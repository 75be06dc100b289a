package httptransport

// Queued reports how many groups of commands under leases, and how many submits, wait for the answers to those before them.
func (t *Transport) Queued() (commands, submits int) { return t.batch.queued(), t.submit.queued() }

func (b *batcher[A]) queued() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}
