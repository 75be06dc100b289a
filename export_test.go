package flowfabric

// QueuedCommands tells how many groups of commands wait in the batcher of a client of a server.
func QueuedCommands(c Client) func() int {
	b := c.(*remote).batch
	return func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.queue)
	}
}
