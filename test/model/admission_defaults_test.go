package model

import (
	"context"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/engine"
)

// defaultsOf are what the namespace gives to its submits. Nobody names q3.
var defaultsOf = [][]need{nil, {{"q1", ""}}, {{"q3", ""}}, {{"q3", ""}, {"q2", "y"}}}

// putDefaults changes which quotas the namespace gives to its submits (U101). One that is not there is refused.
func (m *machine) putDefaults() {
	gives := pickOne(m.d, "defaults", defaultsOf...)
	if m.w.quotas["q3"] == nil && !m.d.rarely("there is none", 3) {
		r := rations["q3"]
		r.slots = 1
		m.setQuota("q3", r)
	}
	code := base.Code("")
	var uses []core.QuotaUse
	for _, n := range gives {
		uses = append(uses, core.QuotaUse{Quota: n.quota, Key: n.key})
		if m.w.quotas[n.quota] == nil {
			code = base.CodeInvalidArgument
		}
	}
	if code == "" {
		m.w.gives = gives
		m.did("put_namespace")
	}
	m.each(fmt.Sprintf("put_namespace with %v", gives), code, func(ctx context.Context, s *subject) error {
		_, err := s.e.PutNamespace(ctx, operator, home, core.NamespaceSettings{DefaultQuotas: uses}, engine.AdminAction{})
		return err
	})
	if len(gives) == 0 || code != "" {
		return
	}
	if id := gives[0].quota; !m.attached(id) || m.d.rarely("take it away", 2) {
		m.deleteQuotaOf(id, m.attached(id) || m.d.rarely("force", 3))
	}
	m.submit()
	for range 2 {
		m.sendTo("b", func(*job) {})
	}
	m.claimWith(engine.ClaimRequest{WorkerID: workerOf("i1"), InstanceID: "i1", LaneOrder: "listed", Max: 3, Lanes: []string{"b"}}, 90_000)
}

// addDefaults attaches to a job what its namespace gives and it does not name. What is gone limits nothing.
func (m *machine) addDefaults(j *job) {
	named := slices.Clone(j.needs)
	for _, n := range m.w.gives {
		switch {
		case m.w.quotas[n.quota] == nil:
			m.did("default: gone")
		case slices.ContainsFunc(named, func(other need) bool { return other.quota == n.quota }):
			m.did("default: named already")
		default:
			m.did("default: added")
			j.needs, j.given = append(slices.Clone(j.needs), n), append(j.given, n)
		}
	}
}
