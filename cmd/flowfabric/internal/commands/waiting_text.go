package commands

import (
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// waitText summarises a suspension in one line.
func waitText(p *show.Printer, wait api.SuspensionRecord) string {
	text := conditionText(wait.Until)
	if !wait.TimeoutAt.IsZero() {
		text += fmt.Sprintf("; times out %s: %s", p.Time(wait.TimeoutAt), wait.OnTimeout)
	}
	return text
}

// conditionText describes which signals satisfy a condition.
func conditionText(c flowfabric.Condition) string {
	switch c.Type {
	case "single":
		return namedSignal(c.Name) + atKeys(c.Key)
	case "count":
		return countText(c)
	case "all_of":
		return "all of (" + membersText(c) + ")"
	case "any_of":
		return "any of (" + membersText(c) + ")"
	case "operator_only":
		return "an operator"
	case "timeout_only":
		return "its timeout"
	default:
		return c.Type
	}
}

func membersText(c flowfabric.Condition) string {
	texts := make([]string, len(c.Members))
	for i, member := range c.Members {
		texts[i] = conditionText(member)
	}
	return strings.Join(texts, "; ")
}

func namedSignal(name string) string {
	if name == "" {
		return "any signal"
	}
	return "signal " + name
}

// countText describes a count condition.
func countText(c flowfabric.Condition) string {
	signal, from := namedSignal(c.Name), strings.Join(c.SourceTypes, " or ")
	if c.CountKind == "distinct_sources" {
		if from != "" {
			from = " (" + from + ")"
		}
		return fmt.Sprintf("%s from %d different sources%s%s", signal, c.N, from, atKeys(c.Keys...))
	}
	if from != "" {
		from = " from " + from
	}
	if c.CountKind == "distinct_waitpoints" {
		return fmt.Sprintf("%s%s at %d of %s", signal, from, c.N, strings.Join(c.Keys, ", "))
	}
	return fmt.Sprintf("%s %d times%s%s", signal, c.N, from, atKeys(c.Keys...))
}

// progressOf shows the progress of each part of a condition.
func progressOf(nodes []api.NodeProgress) string {
	texts := make([]string, len(nodes))
	for i, node := range nodes {
		texts[i] = conditionText(node.Node)
		if node.Needed > 1 {
			texts[i] += fmt.Sprintf(" (%d so far)", node.Progress)
		}
	}
	return strings.Join(texts, "; ")
}

// approvedText is how many of the required people have approved.
func approvedText(w api.Suspended) string {
	for _, node := range w.Progress {
		if node.Node.Type == "count" {
			return fmt.Sprintf("%d of %d", node.Progress, node.Needed)
		}
	}
	return ""
}

func askedText(w api.Suspended) string {
	var names []string
	for _, link := range w.Links {
		names = append(names, link.Approver+" ("+link.State+")")
	}
	return strings.Join(names, ", ")
}

func saidText(w api.Suspended) string {
	var said []string
	for _, d := range w.Decisions {
		text := d.By + " " + d.Decision
		if d.Comment != "" {
			text += ": " + d.Comment
		}
		said = append(said, text)
	}
	return strings.Join(said, "; ")
}

// atKeys names waitpoints; none: the first one.
func atKeys(keys ...string) string {
	if text := strings.Join(keys, ", "); text != "" {
		return " at " + text
	}
	return ""
}
