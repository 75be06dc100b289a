package commands

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// flowRunView writes the id of a flow that was created.
var flowRunView = show.View[*flowfabric.FlowRun]{ID: func(r *flowfabric.FlowRun) string { return bareID(r.ID) }}

// flowView are the columns of lists.
func (s *session) flowView() show.View[*flowfabric.FlowView] {
	p := s.printer
	type x = *flowfabric.FlowView
	return show.View[x]{ID: func(f x) string { return bareID(f.ID) }, None: "no flows", Columns: []show.Column[x]{
		{Name: "ID", Text: func(f x) string { return bareID(f.ID) }},
		{Name: "KIND", Text: func(f x) string { return f.Kind }},
		{Name: "STATE", Text: func(f x) string { return string(f.State) }},
		{Name: "SEALED", Text: func(f x) string { return strconv.FormatBool(f.Sealed) }, Wide: true},
		{Name: "MEMBERS", Text: func(f x) string { return strconv.Itoa(f.Nodes) }},
		{Name: "EDGES", Text: func(f x) string { return strconv.Itoa(f.Edges) }, Wide: true},
		{Name: "REVISION", Text: func(f x) string { return strconv.FormatInt(f.Revision, 10) }, Wide: true},
		{Name: "CREATED", Text: func(f x) string { return p.Time(f.CreatedAt) }},
		{Name: "ENDED", Text: func(f x) string { return p.Time(f.EndedAt) }},
		{Name: "CREATOR", Text: func(f x) string { return f.Creator }, Wide: true},
		{Name: "TAGS", Text: func(f x) string { return tagText(f.Tags) }, Wide: true},
	}}
}

// flowDetails shows one flow in full.
func (s *session) flowDetails() show.View[*flowfabric.FlowView] {
	view := s.flowView()
	type x = *flowfabric.FlowView
	for i := range view.Columns {
		view.Columns[i].Wide = false
	}
	view.Columns = append(view.Columns, []show.Column[x]{
		{Name: "PHASE", Text: func(f x) string { return f.Phase }},
		{Name: "COUNTS", Text: func(f x) string { return tallyText(f.Counts) }},
		{Name: "JOINS", Text: func(f x) string { return tallyText(f.Joins) }},
		{Name: "OUTPUT", Text: func(f x) string { return f.Output }},
		{Name: "PARENT", Text: func(f x) string { return bareID(f.ParentID) }},
		{Name: "ROOT", Text: func(f x) string {
			if f.RootID == f.ID {
				return ""
			}
			return bareID(f.RootID)
		}},
		{Name: "CANCELLED", Text: func(f x) string {
			if f.Cancelled == nil {
				return ""
			}
			return string(f.Cancelled.Policy) + " " + byWhom(f.Cancelled.By, f.Cancelled.Reason)
		}},
	}...)
	return view
}

// flowRun shows a flow after a change.
func (s *session) flowRun() show.View[*flowfabric.FlowRun] {
	details := s.flowDetails()
	type x = *flowfabric.FlowRun
	view := show.View[x]{ID: func(r x) string { return bareID(r.ID) }}
	for _, column := range details.Columns {
		view.Columns = append(view.Columns, show.Column[x]{Name: column.Name, Text: func(r x) string { return column.Text(&r.FlowView) }})
	}
	return view
}

// tallyText lists the counts that are not zero.
func tallyText(counts map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > 0 {
			all = append(all, fmt.Sprintf("%s=%d", name, counts[name]))
		}
	}
	return strings.Join(all, " ")
}

func (s *session) memberView() show.View[api.FlowMember] {
	p := s.printer
	type x = api.FlowMember
	return show.View[x]{ID: func(m x) string { return bareID(m.ID) }, None: "no members", Columns: []show.Column[x]{
		{Name: "NAME", Text: func(m x) string { return m.Name }},
		{Name: "ID", Text: func(m x) string { return bareID(m.ID) }},
		{Name: "KIND", Text: func(m x) string { return m.Kind }},
		{Name: "STATE", Text: func(m x) string { return m.PublicState }},
		{Name: "REASON", Text: func(m x) string { return m.Reason }},
		{Name: "JOIN", Text: func(m x) string { return joinText(m.Join) }},
		{Name: "STARTED", Text: func(m x) string { return p.Time(m.StartedAt) }},
		{Name: "ENDED", Text: func(m x) string { return p.Time(m.EndedAt) }},
		{Name: "LANE", Text: func(m x) string { return m.Lane }, Wide: true},
		{Name: "RUN", Text: func(m x) string { return strconv.Itoa(m.RunIndex) }, Wide: true},
		{Name: "DELETED", Text: func(m x) string { return p.Time(m.DeletedAt) }, Wide: true},
	}}
}

// joinText is the progress of a join: 1/2 pending.
func joinText(j *api.JoinView) string {
	if j == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d %s", j.Satisfied, needed(j), j.State)
}

// needed is the number of edges that a join needs.
func needed(j *api.JoinView) int {
	switch j.Policy {
	case flowfabric.JoinAny:
		return 1
	case flowfabric.JoinQuorum:
		return j.K
	default:
		return j.N
	}
}

func (s *session) edgeView() show.View[api.EdgeView] {
	p := s.printer
	type x = api.EdgeView
	return show.View[x]{ID: func(e x) string { return e.ID }, None: "no edges", Columns: []show.Column[x]{
		{Name: "FROM", Text: func(e x) string { return e.From }},
		{Name: "TO", Text: func(e x) string { return e.To }},
		{Name: "KIND", Text: func(e x) string { return string(e.Kind) }},
		{Name: "PASS", Text: func(e x) string { return e.Pass }},
		{Name: "STATE", Text: func(e x) string { return e.State }},
		{Name: "OUTCOME", Text: func(e x) string { return string(e.Outcome) }},
		{Name: "RESOLVED", Text: func(e x) string { return p.Time(e.ResolvedAt) }},
		{Name: "ID", Text: func(e x) string { return e.ID }, Wide: true},
	}}
}

func (s *session) joinView(member string) show.View[*api.JoinView] {
	p := s.printer
	type x = *api.JoinView
	return show.View[x]{ID: func(x) string { return member }, Columns: []show.Column[x]{
		{Name: "MEMBER", Text: func(x) string { return member }},
		{Name: "POLICY", Text: policyText},
		{Name: "STATE", Text: func(j x) string { return j.State }},
		{Name: "EDGES", Text: func(j x) string {
			return fmt.Sprintf("%d, %d satisfied, %d impossible", j.N, j.Satisfied, j.Impossible)
		}},
		{Name: "DETAIL", Text: func(j x) string { return j.Detail }},
		{Name: "DECIDED", Text: func(j x) string { return p.Time(j.DecidedAt) }},
		{Name: "WAITS FOR", Text: func(j x) string {
			var names []string
			for _, m := range j.Waiting {
				names = append(names, m.Name)
			}
			return strings.Join(names, ", ")
		}},
	}}
}

// policyText describes the policy of a join.
func policyText(j *api.JoinView) string {
	text := map[flowfabric.JoinPolicy]string{flowfabric.JoinAny: "any of", flowfabric.JoinQuorum: strconv.Itoa(j.K) + " of"}[j.Policy]
	if text == "" {
		text = "all of"
	}
	if j.CancelRemaining {
		text += ", cancels the others"
	}
	return text
}
