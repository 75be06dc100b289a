package apifuzz

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
)

// memory is what the answers so far told: things that exist.
type memory struct {
	names      map[string][]string // texts by the name of the field that told them
	executions map[string]string   // status by id
	leases     []lease             // the newest last
	waits      []wait              // the newest last
	graphs     []graph             // the newest last
	posts      []post              // deliveries of webhooks
	ended      string              // a flow that has ended
	own        map[string]bool     // ids of the keys that the fuzzer itself uses: they must not be changed
}

// lease is one that a claim answered.
type lease struct {
	execution string
	text      raw // as JSON
	fence     string
}

// kept bounds every list of the memory.
const kept = 64

// told are the fields whose values are used again.
var told = map[string]bool{
	"job_id": true, "key_id": true, "kid": true, "worker_instance_id": true, "lane": true, "next_cursor": true, "next": true, "grant_key": true,
	"budget_id": true,
}

func newMemory() *memory {
	return &memory{names: map[string][]string{}, executions: map[string]string{}, own: map[string]bool{}}
}

// learn takes what an answer tells.
func (m *memory) learn(body []byte) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) == nil {
		m.walk(v)
	}
}

func (m *memory) walk(v any) {
	switch v := v.(type) {
	case []any:
		for _, member := range v {
			m.walk(member)
		}
	case map[string]any:
		m.look(v)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if text, ok := v[name].(string); ok && told[name] && !m.own[text] {
				m.remember(name, text)
			}
			m.walk(v[name])
		}
	}
}

// look finds executions and leases.
func (m *memory) look(v map[string]any) {
	id, _ := v["execution_id"].(string)
	if id == "" {
		return
	}
	if fence, ok := v["fence"].(string); ok {
		if text, err := json.Marshal(v); err == nil {
			m.leases = append(m.leases, lease{id, raw(text), fence})
			m.leases = m.leases[max(0, len(m.leases)-kept):]
		}
		m.executions[id] = "running"
		return
	}
	if status, ok := v["status"].(string); ok {
		m.executions[id] = status
	} else if _, known := m.executions[id]; !known {
		m.executions[id] = ""
	}
	if len(m.executions) > 4*kept {
		delete(m.executions, slices.Min(slices.Collect(maps.Keys(m.executions))))
	}
}

func (m *memory) remember(name, text string) {
	if slices.Contains(m.names[name], text) || text == "." || text == ".." { // those stand for another path
		return
	}
	m.names[name] = append(m.names[name], text)
	m.names[name] = m.names[name][max(0, len(m.names[name])-kept):]
}

// some is one of the texts that a field had; otherwise one of the given.
func (m *memory) some(r *rand.Rand, name string, otherwise ...string) string {
	if known := m.names[name]; len(known) > 0 && (len(otherwise) == 0 || r.IntN(3) == 0) {
		return pick(r, known)
	}
	if len(otherwise) == 0 {
		return "unknown"
	}
	return pick(r, otherwise)
}

// execution is the id of one, mostly of one in one of these states.
func (m *memory) execution(r *rand.Rand, states ...string) string {
	var fit, all []string
	for _, id := range slices.Sorted(maps.Keys(m.executions)) {
		all = append(all, id)
		if slices.Contains(states, m.executions[id]) {
			fit = append(fit, id)
		}
	}
	if len(fit) > 0 && r.IntN(5) > 0 {
		return pick(r, fit)
	}
	if len(all) == 0 {
		return "0198f0a0-0000-7000-8000-000000000000"
	}
	return pick(r, all)
}

// lease is one that was given out, mostly a recent one.
func (m *memory) lease(r *rand.Rand) lease {
	switch n := len(m.leases); {
	case n == 0:
		return lease{"0198f0a0-0000-7000-8000-000000000000", `"a.1.b"`, "a.1.b"}
	case r.IntN(4) == 0:
		return pick(r, m.leases)
	default:
		return m.leases[n-1-r.IntN(min(n, 3))]
	}
}

func pick[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }
