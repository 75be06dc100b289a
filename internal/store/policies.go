package store

import (
	"sync"

	"github.com/flowfabric/flowfabric/internal/core"
)

const (
	policiesKept  = 4096
	longestPolicy = 1 << 10 // bytes of the longest text that is kept
)

// Policies remembers what the texts of stored policies say: executions of one origin have the same, and to read it anew costs more than
// the rest of the row. The zero value remembers nothing yet; nil never does.
type Policies struct {
	mu    sync.RWMutex
	known map[string]*core.Policy
}

// decode reads the text of a policy, which is immutable and shared. Errors: corruption.
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

// keep remembers a policy. When there are too many all are forgotten: those in use are soon read again.
func (p *Policies) keep(text string, policy *core.Policy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= policiesKept {
		p.known = map[string]*core.Policy{}
	}
	p.known[text] = policy
}
