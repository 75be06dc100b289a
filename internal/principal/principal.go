// Package principal carries who makes a request, and the trace that it belongs to, from the server to the client that acts for it.
// It knows nothing of HTTP and nothing of executions.
package principal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync/atomic"
)

// Principal is who a call is made for. The zero value is nobody: the client then acts as itself.
type Principal struct {
	Name       string   // of the API key, or of whatever stands in its place
	KeyID      string   // "" without an API key
	Namespace  string   // where new work goes, "" when none was chosen
	Namespaces []string // what may be seen and changed; nil: all
	Operator   bool     // it has the role operate or admin: its changes are an operator's
	RequestID  string   // X-Request-Id (U12)
	RequestKey string   // Idempotency-Key (U13)
	Address    string   // of the caller, for the audit log

	// LineKey is the Idempotency-Key of a request whose lines are submitted in batches; Lines are the indexes of those of this batch.
	// Each line has an id of its own by them, and RequestKey is "".
	LineKey string
	Lines   []int

	// Feed bounds what it reads of the event log to the feeds of the instances that it registered (U106); nil: not bounded.
	Feed *Feed

	// OwnWork bounds what it reads, and what it adds to flows, to executions and flows that it submitted itself (U122): the client refuses to show one of another with
	// role_required, and leaves those of others out of lists of flows.
	OwnWork bool

	// Lanes bounds what it works on to executions in these (U122); nil: not bounded.
	Lanes []string

	// OwnInstances bounds its commands on workers to the instances that its key registered (U103).
	OwnInstances bool

	// Repeated is set by the client when the request repeats one that was answered before (U13); nil: nobody asks.
	Repeated *atomic.Bool
}

// OnceKey names what a request makes by the key of the request, for work that brings no name of its own: the same request makes it once,
// another one under that key is a conflict (U13). "" without a key.
func (p *Principal) OnceKey() string {
	if p.RequestKey == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("request\x00" + p.Name + "\x00" + p.KeyID + "\x00" + p.RequestKey))
	return hex.EncodeToString(sum[:])
}

// Feed is what a worker may read of the event log.
type Feed struct {
	Lanes []string // only what happens in these; none: in all
}

type key struct{}

// With returns a context whose calls are made for p.
func With(ctx context.Context, p Principal) context.Context { return context.WithValue(ctx, key{}, p) }

// From finds for whom calls in this context are made.
func From(ctx context.Context) (p Principal, ok bool) {
	p, ok = ctx.Value(key{}).(Principal)
	return p, ok
}
