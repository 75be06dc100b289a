// Package cluster lets several engines work on one database at once, some of them in processes that are killed with kill -9, and
// replays the event log afterwards: what was acknowledged is there, leases never overlap, no stale writer was accepted, nothing
// fired early, and a reader that followed all the while saw everything in order. It contains tests alone, and sees the engine
// from outside.
package cluster
