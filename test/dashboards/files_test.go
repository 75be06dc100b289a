package dashboards

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// query is an expression of a dashboard or of a rule, and where it stands.
type query struct {
	place  string
	expr   string
	legend string
}

// panel is what is looked at of a panel of Grafana.
type panel struct {
	ID         int
	Type       string
	Title      string
	Datasource struct{ Type string }
	GridPos    struct{ H, W, X, Y int }
	Targets    []struct{ RefID, Expr, LegendFormat string }
}

// dashboard is what is looked at of a dashboard.
type dashboard struct {
	Title         string
	UID           string
	SchemaVersion int
	Panels        []panel
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile("../../deploy/grafana/flowfabric.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// variable is the form of what fills a variable.
var variable = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)

// queries are those of all panels and variables.
func (d dashboard) queries(t *testing.T) []query {
	t.Helper()
	var all []query
	for _, p := range d.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			all = append(all, query{"panel " + p.Title, target.Expr, target.LegendFormat})
		}
	}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		found := variable.FindStringSubmatch(v.Definition)
		if found == nil {
			t.Fatalf("variable %s is filled by %q", v.Name, v.Definition)
		}
		all = append(all, query{"variable " + v.Name, fmt.Sprintf("count by (%s) (%s)", found[2], found[1]), ""})
	}
	return all
}

// rule is an alert.
type rule struct{ alert, expr, lasts, severity, summary, description string }

// readRules reads the alerts. The file keeps to one entry a line, which is all of YAML that is read here.
func readRules(text string) ([]rule, error) {
	var rules []rule
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		key, value, ok := strings.Cut(trimmed, ":")
		if !ok {
			return nil, fmt.Errorf("%q is no entry", trimmed)
		}
		value = strings.Trim(strings.TrimSpace(value), `"`)
		if key == "- alert" {
			rules = append(rules, rule{alert: value})
			continue
		}
		fields := map[string]func(*rule) *string{
			"expr": func(r *rule) *string { return &r.expr }, "for": func(r *rule) *string { return &r.lasts },
			"severity": func(r *rule) *string { return &r.severity }, "summary": func(r *rule) *string { return &r.summary },
			"description": func(r *rule) *string { return &r.description },
		}
		switch field := fields[key]; {
		case field != nil && len(rules) > 0:
			*field(&rules[len(rules)-1]) = value
		case key != "groups" && key != "- name" && key != "rules" && key != "labels" && key != "annotations":
			return nil, fmt.Errorf("%q is not known", key)
		}
	}
	return rules, nil
}

func shippedRules(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := readRules(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// allQueries are those of the dashboard and of the alerts.
func allQueries(t *testing.T) []query {
	t.Helper()
	all := readDashboard(t).queries(t)
	for _, r := range shippedRules(t) {
		all = append(all, query{"rule " + r.alert, r.expr, r.legend()})
	}
	return all
}

// legend are the labels that the texts of an alert name, in the form of a panel's.
func (r rule) legend() string {
	var all strings.Builder
	for _, found := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(r.summary+r.description, -1) {
		all.WriteString("{{" + found[1] + "}}")
	}
	return all.String()
}
