package commands

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

func (s *session) flowGraph() *cobra.Command {
	dot, watch := false, false
	cmd := s.command("graph FLOW", "Draw the graph of a flow, with dependencies and progress", `
flowfabric flow graph 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50
flowfabric flow graph 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --dot > release.dot
flowfabric flow graph 0190b5a2-7c41-7d3e-9a52-6f1d3c2b4a50 --json
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		draw := func(p *show.Printer) error {
			g, err := c.Flows().Graph(ctx, flowfabric.ID(args[0]))
			switch {
			case err != nil:
				return err
			case dot:
				return writeDot(p.Out, g)
			case p.JSON || p.Quiet || p.Template != nil:
				return show.One(p, show.View[*api.FlowGraph]{ID: func(g *api.FlowGraph) string { return bareID(g.Flow.ID) }}, g)
			}
			return drawGraph(p, g)
		}
		if watch {
			return s.watch(ctx, draw)
		}
		return draw(s.printer)
	})
	cmd.Flags().BoolVar(&dot, "dot", false, "print it in Graphviz format")
	cmd.Flags().BoolVar(&watch, "watch", false, "draw it again on every change, until interrupted")
	cmd.ValidArgsFunction = s.completeFlows
	return cmd
}

// layers puts each member one layer below its deepest dependency. The graph has no cycle.
func layers(g *api.FlowGraph) [][]*api.FlowMember {
	inbound := inboundOf(g)
	byName := make(map[string]*api.FlowMember, len(g.Members))
	for i := range g.Members {
		byName[g.Members[i].Name] = &g.Members[i]
	}
	depths := make(map[string]int, len(byName))
	var all [][]*api.FlowMember
	for _, name := range inOrder(g, inbound) {
		depth := 0
		for _, e := range inbound[name] {
			depth = max(depth, depths[e.From]+1)
		}
		depths[name] = depth
		for len(all) <= depth {
			all = append(all, nil)
		}
		if m := byName[name]; m != nil {
			all[depth] = append(all[depth], m)
		}
	}
	return all
}

// inboundOf groups edges by the member that they lead to.
func inboundOf(g *api.FlowGraph) map[string][]*api.EdgeView {
	inbound := map[string][]*api.EdgeView{}
	for i := range g.Edges {
		e := &g.Edges[i]
		inbound[e.To] = append(inbound[e.To], e)
	}
	for _, edges := range inbound {
		slices.SortFunc(edges, func(a, b *api.EdgeView) int { return strings.Compare(a.From, b.From) })
	}
	return inbound
}

// inOrder lists the members in topological order; ties are broken by name.
func inOrder(g *api.FlowGraph, inbound map[string][]*api.EdgeView) []string {
	left, next := map[string]int{}, map[string][]string{}
	var free, order []string
	for i := range g.Members {
		name := g.Members[i].Name
		if left[name] = len(inbound[name]); left[name] == 0 {
			free = append(free, name)
		}
	}
	for _, e := range g.Edges {
		next[e.From] = append(next[e.From], e.To)
	}
	for len(free) > 0 {
		slices.Sort(free)
		order = append(order, free...)
		var later []string
		for _, name := range free {
			for _, to := range next[name] {
				if left[to]--; left[to] == 0 {
					later = append(later, to)
				}
			}
		}
		free = later
	}
	return order
}

// marks show the state of a member without colours.
var marks = map[string]string{
	"completed": "✓", "failed": "✗", "expired": "✗", "cancelled": "⊘", "skipped": "–", "active": "●", "suspended": "‖", "waiting_children": "○",
}

// arrows show the kinds of edges.
var arrows = map[flowfabric.EdgeKind]string{flowfabric.OnSuccess: "←", flowfabric.OnFailure: "⇠", flowfabric.OnEnd: "↢"}

// edgeMarks show the states of edges.
var edgeMarks = map[string]string{"satisfied": "✓", "impossible": "✗"}

// row is a member as a line of the drawing.
type row struct{ layer, name, state, took, waits string }

// drawGraph writes the members layer by layer, each with its dependencies.
func drawGraph(p *show.Printer, g *api.FlowGraph) error {
	if _, err := fmt.Fprintf(p.Out, "%s %s  %s  %s\n", bareID(g.Flow.ID), g.Flow.Kind, p.Paint(string(g.Flow.State), string(g.Flow.State)), sizeText(g)); err != nil {
		return err
	}
	inbound := inboundOf(g)
	var rows []row
	names, states, times := 0, 0, 0
	for depth, layer := range layers(g) {
		for i, m := range layer {
			r := row{name: nameText(m), state: m.PublicState, took: tookText(p, m), waits: waitsText(m, inbound[m.Name])}
			if i == 0 {
				r.layer = strconv.Itoa(depth + 1)
			}
			names, states, times = max(names, lipgloss.Width(r.name)), max(states, len(r.state)), max(times, len(r.took))
			rows = append(rows, r)
		}
	}
	digits := len(strconv.Itoa(len(rows)))
	for _, r := range rows {
		mark := marks[r.state]
		if mark == "" {
			mark = "◔"
		}
		pad := strings.Repeat(" ", names-lipgloss.Width(r.name))
		line := fmt.Sprintf("%*s  %s %s%s  %s%s  %*s  %s", digits, r.layer, p.Paint(r.state, mark), r.name, pad, p.Paint(r.state, r.state),
			strings.Repeat(" ", states-len(r.state)), times, r.took, r.waits)
		if _, err := fmt.Fprintln(p.Out, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return legend(p, g)
}

// legend explains the arrows that occur in the drawing.
func legend(p *show.Printer, g *api.FlowGraph) error {
	var kinds []string
	for _, kind := range []flowfabric.EdgeKind{flowfabric.OnSuccess, flowfabric.OnFailure, flowfabric.OnEnd} {
		if slices.ContainsFunc(g.Edges, func(e api.EdgeView) bool { return e.Kind == kind }) {
			kinds = append(kinds, arrows[kind]+" "+map[flowfabric.EdgeKind]string{
				flowfabric.OnSuccess: "after success", flowfabric.OnFailure: "after failure", flowfabric.OnEnd: "after the end",
			}[kind])
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	_, err := fmt.Fprintln(p.Out, strings.Join(kinds, "   "))
	return err
}

func sizeText(g *api.FlowGraph) string {
	ended := 0
	for i := range g.Members {
		if g.Members[i].Status.Terminal() {
			ended++
		}
	}
	return fmt.Sprintf("%d of %d members ended, %d edges", ended, len(g.Members), len(g.Edges))
}

func nameText(m *api.FlowMember) string {
	text := m.Name
	if m.SubFlow {
		text += " [flow]"
	}
	if m.Optional {
		text += " (may fail)"
	}
	return text
}

// tookText is how long a member ran, or has been running.
func tookText(p *show.Printer, m *api.FlowMember) string {
	switch {
	case m.StartedAt.IsZero():
		return ""
	case !m.EndedAt.IsZero():
		return show.Span(m.EndedAt.Sub(m.StartedAt))
	case m.PublicState == "active":
		return show.Span(max(p.Now().Sub(m.StartedAt), time.Duration(0)))
	default:
		return ""
	}
}

// mostWaits is the number of dependencies that are listed on one line.
const mostWaits = 8

// waitsText lists the dependencies of a member: arrows by kind, marks by state.
func waitsText(m *api.FlowMember, inbound []*api.EdgeView) string {
	if len(inbound) == 0 {
		return ""
	}
	var parts []string
	kind := flowfabric.EdgeKind("")
	for i, e := range inbound {
		if i == mostWaits {
			parts = append(parts, fmt.Sprintf("and %d more", len(inbound)-mostWaits))
			break
		}
		part := e.From
		if mark := edgeMarks[e.State]; mark != "" {
			part += " " + mark
		}
		if e.Kind != kind {
			kind = e.Kind
			part = arrows[e.Kind] + " " + part
		}
		parts = append(parts, part)
	}
	text := strings.Join(parts, ", ")
	if m.Join != nil && m.Join.Policy != flowfabric.JoinAll {
		text = policyText(m.Join) + " " + text
	}
	return text
}

// dotStyles are the line styles of edges by kind.
var dotStyles = map[flowfabric.EdgeKind]string{flowfabric.OnSuccess: "solid", flowfabric.OnFailure: "dashed", flowfabric.OnEnd: "dotted"}

// dotColors are the colours of members by state.
var dotColors = map[string]string{
	"completed": "palegreen", "failed": "lightcoral", "expired": "lightcoral", "cancelled": "khaki", "skipped": "gray85", "active": "lightskyblue", "suspended": "plum",
}

// writeDot writes the graph for Graphviz.
func writeDot(w io.Writer, g *api.FlowGraph) error {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\", fillcolor=white];\n", g.Flow.Kind)
	for i := range g.Members {
		m := &g.Members[i]
		color := dotColors[m.PublicState]
		if color == "" {
			color = "white"
		}
		fmt.Fprintf(&b, "  %q [label=%q, fillcolor=%s];\n", m.Name, m.Name+"\n"+m.PublicState, color)
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "  %q -> %q [style=%s", e.From, e.To, dotStyles[e.Kind])
		if e.Pass != "" && e.Pass != e.From {
			fmt.Fprintf(&b, ", label=%q", e.Pass)
		}
		if e.State == "impossible" {
			b.WriteString(", color=red")
		}
		b.WriteString("];\n")
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}
