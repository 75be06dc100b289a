package commands

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// limitOfBudget parses one limit: tokens.hard=2000, tokens.soft=off, tokens=off, or tokens alone. limit is "" for the dimension
// itself, and value is nil for off.
func limitOfBudget(text string) (dimension, limit string, value *int64, err error) {
	name, amount, given := strings.Cut(text, "=")
	dimension, limit, _ = strings.Cut(name, ".")
	if limit == "reserve" {
		limit = "default_reserve"
	}
	wrong := show.Invalid(text, "write tokens.hard=2000, tokens.soft=800, tokens.reserve=100 or tokens", "%q is not a limit of a budget", text)
	known := limit == "" || limit == "hard" || limit == "soft" || limit == "default_reserve"
	switch {
	case dimension == "" || !known || given == (limit == "") && amount != "off":
		return "", "", nil, wrong
	case !given || amount == "off":
		return dimension, limit, nil, nil
	}
	n, err := strconv.ParseInt(amount, 10, 64)
	if err != nil {
		return "", "", nil, show.Invalid(text, "write a number, or off", "%q is not a whole number", amount)
	}
	return dimension, limit, &n, nil
}

// setLimit adds a limit to a new budget.
func setLimit(to map[string]api.BudgetLimits, text string) error {
	dimension, limit, value, err := limitOfBudget(text)
	if err != nil {
		return err
	}
	l := to[dimension]
	into := map[string]*int64{"hard": &l.Hard, "soft": &l.Soft, "default_reserve": &l.DefaultReserve}[limit]
	switch {
	case into == nil && strings.Contains(text, "="), into != nil && (value == nil || *value < 1):
		return show.Invalid(text, "omit it for no limit", "a limit must be at least 1")
	case into != nil:
		*into = *value
	}
	to[dimension] = l
	return nil
}

// changeLimit adds a change of a limit.
func changeLimit(u *api.BudgetUpdate, text string) error {
	dimension, limit, value, err := limitOfBudget(text)
	if err != nil {
		return err
	}
	if limit == "" && strings.Contains(text, "=") {
		u.RemoveDimensions = append(u.RemoveDimensions, dimension)
		return nil
	}
	if u.Dimensions == nil {
		u.Dimensions = map[string]api.LimitChange{}
	}
	change := u.Dimensions[dimension]
	switch {
	case limit == "":
	case value == nil:
		change.Remove = append(change.Remove, limit)
	default:
		*map[string]**int64{"hard": &change.Hard, "soft": &change.Soft, "default_reserve": &change.DefaultReserve}[limit] = value
	}
	u.Dimensions[dimension] = change
	return nil
}

// scopeOf parses a scope: namespace, lane:mail.
func scopeOf(text string) api.BudgetScope {
	kind, value, _ := strings.Cut(text, ":")
	return api.BudgetScope{Type: kind, Value: value}
}

func scopeText(scope api.BudgetScope) string {
	if scope.Value == "" {
		return scope.Type
	}
	return scope.Type + ":" + scope.Value
}

func (s *session) printBudget(budget *api.BudgetStatus, err error) error {
	if err != nil {
		return err
	}
	p := s.printer
	view := s.budgetView()
	for i := range view.Columns {
		view.Columns[i].Wide = false
	}
	if err := show.One(p, view, budget); err != nil || p.JSON || p.Quiet || p.Template != nil {
		return err
	}
	if err := p.Raw([]byte("\n")); err != nil {
		return err
	}
	return show.All(p, dimensionView(budget), slices.Sorted(maps.Keys(budget.Dimensions)))
}

func (s *session) budgetView() show.View[*api.BudgetStatus] {
	p := s.printer
	type x = *api.BudgetStatus
	return show.View[x]{ID: func(b x) string { return b.ID }, None: "no budgets", Columns: []show.Column[x]{
		{Name: "NAME", Text: func(b x) string { return b.Name }},
		{Name: "SCOPE", Text: func(b x) string { return scopeText(b.Scope) }},
		{Name: "STATE", Text: func(b x) string { return b.State }},
		{Name: "USED", Text: usedText},
		{Name: "EXHAUSTED", Text: func(b x) string { return strings.Join(b.Exhausted, " ") }},
		{Name: "HOLDS", Text: func(b x) string { return strconv.FormatInt(b.LiveHolds, 10) }},
		{Name: "BLOCKED", Text: func(b x) string { return strconv.Itoa(b.BlockedExecutions) }},
		{Name: "NEXT RESET", Text: func(b x) string { return p.Time(b.NextResetAt) }},
		{Name: "ON HARD", Text: func(b x) string { return string(b.OnHard) }, Wide: true},
		{Name: "BREACHES", Text: func(b x) string { return strconv.FormatInt(b.Breaches, 10) }, Wide: true},
		{Name: "LAST BREACH", Text: func(b x) string {
			if b.LastBreach == nil {
				return ""
			}
			return p.Time(b.LastBreach.At) + " " + b.LastBreach.Dimension
		}, Wide: true},
		{Name: "PARENT", Text: func(b x) string { return b.Parent }, Wide: true},
		{Name: "EPOCH", Text: func(b x) string { return strconv.FormatInt(b.Epoch, 10) }, Wide: true},
		{Name: "REVISION", Text: func(b x) string { return strconv.FormatInt(b.Revision, 10) }, Wide: true},
		{Name: "ID", Text: func(b x) string { return b.ID }, Wide: true},
	}}
}

// usedText formats the usage of each limit: tokens 40+100/1200, with the reserved amount after the plus.
func usedText(b *api.BudgetStatus) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(b.Dimensions)) {
		n := b.Dimensions[name]
		text := fmt.Sprintf("%s %d", name, n.Used)
		if n.Reserved > 0 {
			text += fmt.Sprintf("+%d", n.Reserved)
		}
		if n.EffectiveHard > 0 {
			text += fmt.Sprintf("/%d", n.EffectiveHard)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func dimensionView(b *api.BudgetStatus) show.View[string] {
	type d = api.BudgetDimension
	number := func(of func(d) int64) func(string) string {
		return func(name string) string { return strconv.FormatInt(of(b.Dimensions[name]), 10) }
	}
	limit := func(of func(d) int64) func(string) string {
		return func(name string) string { return limitText(int(of(b.Dimensions[name]))) }
	}
	return show.View[string]{ID: func(name string) string { return name }, Columns: []show.Column[string]{
		{Name: "DIMENSION", Text: func(name string) string { return name }},
		{Name: "USED", Text: number(func(n d) int64 { return n.Used })},
		{Name: "RESERVED", Text: number(func(n d) int64 { return n.Reserved })},
		{Name: "OVERRUN", Text: number(func(n d) int64 { return n.Overrun })},
		{Name: "AVAILABLE", Text: func(name string) string {
			left := b.Dimensions[name].Available
			if left == nil {
				return "-"
			}
			return strconv.FormatInt(*left, 10)
		}},
		{Name: "SOFT", Text: limit(func(l d) int64 { return l.Soft })},
		{Name: "HARD", Text: limit(func(l d) int64 { return l.Hard })},
		{Name: "RAISED TO", Text: func(name string) string {
			if b.Dimensions[name].EffectiveHard == b.Dimensions[name].Hard {
				return ""
			}
			return strconv.FormatInt(b.Dimensions[name].EffectiveHard, 10)
		}},
		{Name: "RESERVE", Text: limit(func(l d) int64 { return l.DefaultReserve })},
	}}
}

func amountText(amounts map[string]int64) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		all = append(all, fmt.Sprintf("%s=%d", name, amounts[name]))
	}
	return strings.Join(all, " ")
}

func receiptView() show.View[api.UsageReceipt] {
	type x = api.UsageReceipt
	return show.View[x]{ID: func(r x) string { return r.First().Outcome }, Columns: []show.Column[x]{
		{Name: "OUTCOME", Text: func(r x) string { return r.First().Outcome }},
		{Name: "BOOKED", Text: func(r x) string {
			if r.Repeated() {
				return "before"
			}
			return yesText(r.Applied)
		}},
		{Name: "BUDGET", Text: func(r x) string { return r.Budget }},
		{Name: "LIMIT", Text: func(r x) string {
			switch {
			case r.Dimension == "":
				return ""
			case r.Hard > 0:
				return fmt.Sprintf("%s %d of %d", r.Dimension, r.Used, r.Hard)
			default:
				return fmt.Sprintf("%s %d, soft %d", r.Dimension, r.Used, r.Soft)
			}
		}},
		{Name: "REMAINING", Text: func(r x) string {
			var all []string
			for _, budget := range slices.Sorted(maps.Keys(r.Remaining)) {
				all = append(all, budget+" "+amountText(r.Remaining[budget]))
			}
			return strings.Join(all, ", ")
		}},
	}}
}

// releasedSpend is a refund under its API name.
type releasedSpend struct {
	Released map[string]int64 `json:"released"`
}

func releasedView(id string) show.View[releasedSpend] {
	type x = releasedSpend
	return show.View[x]{ID: func(x) string { return id }, Columns: []show.Column[x]{
		{Name: "RELEASED", Text: func(r x) string {
			if len(r.Released) == 0 {
				return "nothing"
			}
			return amountText(r.Released)
		}},
	}}
}

func spendView() show.View[api.BudgetSpend] {
	type x = api.BudgetSpend
	return show.View[x]{ID: func(r x) string { return bareID(r.ExecutionID) }, None: "no execution has used anything", Columns: []show.Column[x]{
		{Name: "EXECUTION", Text: func(r x) string { return bareID(r.ExecutionID) }},
		{Name: "TOTAL", Text: func(r x) string { return strconv.FormatInt(r.Total, 10) }},
		{Name: "USED", Text: func(r x) string { return amountText(r.Used) }},
		{Name: "EPOCH", Text: func(r x) string { return strconv.FormatInt(r.Epoch, 10) }, Wide: true},
	}}
}

func (s *session) epochView() show.View[api.BudgetEpoch] {
	p := s.printer
	type x = api.BudgetEpoch
	return show.View[x]{ID: func(e x) string { return strconv.FormatInt(e.Epoch, 10) }, None: "no past epochs", Columns: []show.Column[x]{
		{Name: "EPOCH", Text: func(e x) string { return strconv.FormatInt(e.Epoch, 10) }},
		{Name: "STARTED", Text: func(e x) string { return p.Time(e.StartedAt) }},
		{Name: "ENDED", Text: func(e x) string { return p.Time(e.EndedAt) }},
		{Name: "USED", Text: func(e x) string {
			used := map[string]int64{}
			for name, use := range e.Dimensions {
				used[name] = use.Used
			}
			return amountText(used)
		}},
		{Name: "BREACHES", Text: func(e x) string { return strconv.FormatInt(e.Breaches, 10) }},
		{Name: "SOFT", Text: func(e x) string { return strconv.FormatInt(e.SoftBreaches, 10) }, Wide: true},
	}}
}

func usageView() show.View[api.ExecutionUsage] {
	type x = api.ExecutionUsage
	return show.View[x]{ID: func(u x) string { return bareID(u.ExecutionID) }, Columns: []show.Column[x]{
		{Name: "ID", Text: func(u x) string { return bareID(u.ExecutionID) }},
		{Name: "ATTEMPT", Text: func(u x) string {
			if u.Attempt == nil {
				return ""
			}
			return strconv.Itoa(*u.Attempt)
		}},
		{Name: "USAGE", Text: func(u x) string {
			if len(u.Amounts) == 0 {
				return "nothing"
			}
			return amountText(u.Amounts)
		}},
	}}
}
