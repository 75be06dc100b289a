package core

import (
	"cmp"
	"crypto/sha256"
	"hash"
	"slices"
	"strconv"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Fingerprint distinguishes submissions of flows under one key or id (F11): SHA-256 over kind, output, seal, budgets, the nodes with their names as
// in NodeFingerprint, and the edges with kind and pass, including those of after lists. Nodes and edges are sets: neither their order nor whether a
// value came from the defaults matters. As in L83, ids, priority, delay, deadline, tags, creator and trace are not included. It returns nil if the
// submission has not passed its checks.
func (s *FlowSubmission) Fingerprint() []byte {
	budgets, err := s.OwnBudgets()
	if err != nil {
		return nil
	}
	w := policyWriter{JSONObject: base.NewObject(0)}
	w.budgets("budgets", budgets)
	h := sha256.New()
	base.AddPart(h, []byte(s.Kind))
	base.AddPart(h, []byte(s.Output))
	addFlag(h, s.Unsealed)
	base.AddPart(h, w.Done())
	if !s.addNodes(h) {
		return nil
	}
	edges := s.AllEdges()
	slices.SortFunc(edges, func(a, b FlowEdge) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	for _, e := range edges {
		for _, text := range []string{e.From, e.To, string(e.Kind), e.Pass} {
			base.AddPart(h, []byte(text))
		}
	}
	return h.Sum(nil)
}

// addNodes adds the nodes by name, followed by an empty name, so that no edge can be mistaken for a node. It reports whether it succeeded.
func (s *FlowSubmission) addNodes(h hash.Hash) bool {
	order := make([]int, len(s.Nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(s.Nodes[a].Name, s.Nodes[b].Name) })
	for _, i := range order {
		sub := s.Submission(i)
		if sub.Normalize(base.Limits{MaxPayload: base.MaxPayloadSetting}) != nil {
			return false
		}
		base.AddPart(h, []byte(s.Nodes[i].Name))
		base.AddPart(h, NodeFingerprint(&sub, &s.Nodes[i]))
	}
	base.AddPart(h, nil)
	return true
}

// NodeFingerprint distinguishes nodes of one name (F16, F39): the fingerprint of the node's normalized submission (L83), its join, may_fail and its
// sub-flow. Only these three fields of the node are used, so that the fingerprint can be recomputed from an execution. Edges into it are checked
// separately (F19).
func NodeFingerprint(s *Submission, n *FlowNode) []byte {
	join := valueOr(n.Join)
	h := sha256.New()
	base.AddPart(h, s.Fingerprint())
	base.AddPart(h, []byte(join.Policy.String()))
	base.AddPart(h, strconv.AppendInt(nil, int64(join.K), 10))
	base.AddPart(h, []byte(join.OnSatisfied.String()))
	addFlag(h, n.MayFail)
	if n.Flow != nil {
		base.AddPart(h, n.Flow.Fingerprint())
	}
	return h.Sum(nil)
}

func addFlag(h hash.Hash, flag bool) { base.AddPart(h, strconv.AppendBool(nil, flag)) }
