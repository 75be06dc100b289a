package store

import (
	"sync"

	"github.com/flowfabric/flowfabric/internal/core"
)

const (
	policiesKept  = 4096
	longestPolicy = 1 << 10 // bytes of the longest text that is cached
)

// Policies caches decoded policies by their stored text: executions of one origin share a policy, and decoding it again costs more than the rest of
// the row. The zero value is an empty cache; nil caches nothing.
type Policies struct {
	mu    sync.RWMutex
	known map[string]*core.Policy
}

// decode returns the policy of a text, which is immutable and shared. Errors: corruption.
func (p *Policies) decode(text []byte) (*core.Policy, error) {
	if p == nil || len(text) == 0 || len(text) > longestPolicy {
		return core.DecodePolicy(text)
	}
	p.mu.RLock()
	policy := p.known[string(text)]
	p.mu.RUnlock()
	if policy != nil {
		return policy, nil
	}
	policy, err := core.DecodePolicy(text)
	if err == nil {
		p.keep(string(text), policy)
	}
	return policy, err
}

// keep caches a policy. When there are too many, all are dropped: those in use are soon decoded again.
func (p *Policies) keep(text string, policy *core.Policy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= policiesKept {
		p.known = map[string]*core.Policy{}
	}
	p.known[text] = policy
}
