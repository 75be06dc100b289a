package top

import (
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// View draws the screen.
func (m Model) View() tea.View {
	v := tea.NewView(m.frame())
	v.AltScreen, v.WindowTitle = true, "flowfabric top"
	return v
}

// frame is the screen as lines: exactly as many as it has, none longer than it is wide.
func (m Model) frame() string {
	var body []string
	switch m.mode {
	case helping:
		body = strings.Split(helpText, "\n")
	case reading:
		body = m.detailLines()
	default:
		body = m.paneLines()
	}
	if m.mode == asking && m.detail != nil {
		body = m.detailLines()
	}
	lines := make([]string, m.height)
	copy(lines[min(1, m.height):max(m.height-1, min(1, m.height))], body)
	if m.height > 0 {
		lines[0] = m.style(m.head(), bold)
		lines[m.height-1] = m.foot()
	}
	for i, line := range lines {
		if lipgloss.Width(line) > m.width {
			lines[i] = lipgloss.NewStyle().MaxWidth(m.width).Render(line)
		}
	}
	return strings.Join(lines, "\n")
}

// head shows the server, the filter and whether the server answers.
func (m Model) head() string {
	text := "flowfabric top  " + m.cfg.Server
	if m.filter != "" {
		text += "  filter: " + m.filter
	}
	switch {
	case m.away != nil:
		text += "  SERVER UNREACHABLE for " + show.Span(m.cfg.Now().Sub(m.awaySince)) + ", retrying"
	case m.snap == nil:
		text += "  loading"
	default:
		text += "  " + m.snap.AsOf.UTC().Format(time.TimeOnly)
	}
	return fit(text, m.width)
}

// foot shows the input line, the result of the last action, or the keys.
func (m Model) foot() string {
	switch {
	case m.mode == filtering:
		return fit("lane or kind: "+m.input+"_", m.width)
	case m.mode == asking:
		return m.style(fit("cancel "+m.subject.Kind+" "+tail(m.subject.ID, 12)+"? enter: yes, esc: no. Reason: "+m.input+"_", m.width), bold)
	case m.note != "":
		return m.style(fit(m.note, m.width), bold)
	case m.away != nil:
		return m.style(fit("the server does not answer: "+problem(m.away), m.width), red)
	case m.mode == reading:
		return m.style(fit("esc back  c cancel  r replay  o URL  q quit", m.width), faint)
	default:
		return m.style(fit("tab pane  j/k row  enter show  c cancel  r replay  o URL  / find  ? help  q quit", m.width), faint)
	}
}

const helpText = `
  up, down, j, k     select a row
  tab, shift+tab     next pane, previous pane
  enter              show the execution; on a lane: filter by it
  c                  cancel the execution, after asking for a reason
  r                  replay an execution that has ended
  o                  print the URL of the execution
  /                  filter by part of a lane or kind
  esc                clear the filter, or go back
  q, ctrl+c          quit

  Stuck work waits for a long time, has a lapsed lease, or is
  retried again and again. Each list shows the first 100.

  Any key goes back.`

// column is a column of a pane; the one of width 0 takes what is left.
type column struct {
	name  string
	width int
}

// table is a pane as texts.
type table struct {
	columns []column
	rows    [][]string
}

// tables are the panes from top to bottom.
func (m Model) tables() [panes]table {
	s := m.shown()
	id := 12
	if m.width >= 110 {
		id = 36
	}
	all := [panes]table{
		lanePane:    {columns: []column{{"LANES", 0}, {"STATE", 8}, {"READY", 7}, {"RUNNING", 7}, {"FAILED", 7}, {"OLDEST", 6}, {"WORKERS", 7}, {"IN/S", 6}, {"OUT/S", 6}}},
		workerPane:  {columns: []column{{"WORKERS", 0}, {"STATE", 8}, {"BUSY", 5}, {"FREE", 5}, {"SEEN", 6}, {"LANES", 14}, {"KINDS", 14}}},
		runningPane: {columns: []column{{"RUNNING", id}, {"KIND", 0}, {"LANE", 10}, {"FOR", 6}, {"LEASE", 6}, {"TRY", 4}, {"WORKER", 18}}},
		stuckPane:   {columns: []column{{"STUCK", id}, {"STATUS", 8}, {"KIND", 12}, {"LANE", 10}, {"FOR", 6}, {"WHY", 0}}},
		failedPane:  {columns: []column{{"FAILED", id}, {"KIND", 12}, {"LANE", 10}, {"AGO", 6}, {"TRY", 4}, {"FAILURE", 0}}},
	}
	for _, l := range s.Lanes {
		all[lanePane].rows = append(all[lanePane].rows, laneRow(s.AsOf, l))
	}
	for _, w := range s.Workers {
		all[workerPane].rows = append(all[workerPane].rows, []string{
			w.InstanceID, w.State, strconv.Itoa(w.Leases), strconv.Itoa(max(w.MaxConcurrent-w.Leases, 0)), since(s.AsOf, w.LastSeen),
			strings.Join(w.Lanes, ","), strings.Join(w.Kinds, ","),
		})
	}
	for _, x := range s.Running {
		lease, worker := "", ""
		if x.Lease != nil {
			lease, worker = left(s.AsOf, x.Lease.ExpiresAt), x.Lease.InstanceID
		}
		all[runningPane].rows = append(all[runningPane].rows, []string{
			tail(x.ID, id), x.Kind, x.Lane, since(s.AsOf, x.StatusSince), lease, strconv.Itoa(x.TotalAttempts), worker,
		})
	}
	for _, found := range s.Stuck {
		x := found.Execution
		all[stuckPane].rows = append(all[stuckPane].rows, []string{
			tail(x.ID, id), string(x.Status), x.Kind, x.Lane, since(s.AsOf, x.StatusSince), found.Why,
		})
	}
	for _, x := range s.Failed {
		why := x.Reason
		if x.Failure != nil {
			why = x.Failure.Message
		}
		all[failedPane].rows = append(all[failedPane].rows, []string{
			tail(x.ID, id), x.Kind, x.Lane, since(s.AsOf, x.CompletedAt), strconv.Itoa(x.TotalAttempts), why,
		})
	}
	return all
}

func laneRow(now time.Time, l *api.Lane) []string {
	of := func(status flowfabric.Status) string { return strconv.Itoa(l.Counts[status]) }
	rate := func(r api.Rate) string { return strconv.FormatFloat(r.OneMinute, 'f', 1, 64) }
	return []string{
		l.Name, string(l.State), of(flowfabric.StatusReady), of(flowfabric.StatusRunning), of(flowfabric.StatusFailed),
		since(now, l.OldestReadyAt), strconv.Itoa(l.Workers), rate(l.Rates.Submitted), rate(l.Rates.Completed),
	}
}

// paneLines draws the panes below each other.
func (m Model) paneLines() []string {
	tables := m.tables()
	heights := share(m.height-2-int(panes), m.pane, tables)
	var lines []string
	for p, t := range tables {
		head := make([]string, len(t.columns))
		for i, c := range t.columns {
			head[i] = c.name
		}
		head[0] += " " + strconv.Itoa(len(t.rows))
		marker, how := "  ", faint
		if pane(p) == m.pane {
			marker, how = "> ", bold
		}
		lines = append(lines, m.style(m.row(t.columns, head, marker), how))
		first := max(0, m.at[p]-heights[p]+1)
		for i := first; i < first+heights[p] && i < len(t.rows); i++ {
			chosen := pane(p) == m.pane && i == m.at[p]
			marker, how := "  ", plain
			if chosen {
				marker, how = "> ", reversed
			}
			lines = append(lines, m.style(m.row(t.columns, t.rows[i], marker), how))
		}
		for range heights[p] - (min(len(t.rows), first+heights[p]) - first) {
			lines = append(lines, "")
		}
	}
	return lines
}

// share divides the rows of the screen: two per pane, then what the selected pane needs, then the others.
func share(total int, chosen pane, tables [panes]table) [panes]int {
	var heights [panes]int
	give := func(p pane, most int) {
		n := max(min(most-heights[p], total), 0)
		heights[p], total = heights[p]+n, total-n
	}
	for p := range panes {
		give(p, max(min(len(tables[p].rows), 2), 1))
	}
	give(chosen, len(tables[chosen].rows))
	for p := range panes {
		give(p, len(tables[p].rows))
	}
	return heights
}

// roomForNames is the minimum width of the name column while other columns can be dropped.
const roomForNames = 14

// row draws the cells of a line. On a narrow screen the last columns are dropped.
func (m Model) row(columns []column, cells []string, marker string) string {
	used := lipgloss.Width(marker)
	for _, c := range columns {
		used += c.width + 1
	}
	shown := make([]bool, len(columns))
	for i := len(columns) - 1; i >= 0; i-- {
		width := columns[i].width
		if shown[i] = width == 0 || i == 0 || m.width-used >= roomForNames; !shown[i] {
			used -= width + 1
		}
	}
	var b strings.Builder
	b.WriteString(marker)
	for i, c := range columns {
		if !shown[i] {
			continue
		}
		width := c.width
		if width == 0 {
			width = max(m.width-used, 4)
		}
		b.WriteString(fit(cells[i], width) + " ")
	}
	return strings.TrimRight(b.String(), " ")
}

// oneLine joins a text into one line.
var oneLine = strings.NewReplacer("\n", " ", "\t", " ")

// fit cuts or pads a text to a width. Control characters, direction marks and invisible characters are replaced by their numbers.
func fit(text string, width int) string {
	var b strings.Builder
	used := 0
	for _, r := range show.Visible(oneLine.Replace(text)) {
		w := lipgloss.Width(string(r))
		if used+w > width {
			break
		}
		b.WriteRune(r)
		used += w
	}
	return b.String() + strings.Repeat(" ", max(width-used, 0))
}

func tail(id flowfabric.ID, width int) string {
	text := bare(id)
	return text[max(0, len(text)-width):]
}

// since formats the age of a time; "" if zero.
func since(now, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return show.Span(max(now.Sub(at), 0))
}

// left formats the time until something; past times are negative.
func left(now, at time.Time) string {
	if d := at.Sub(now); d < 0 {
		return "-" + show.Span(-d)
	}
	return show.Span(at.Sub(now))
}

// look of a text.
type look int

const (
	plain look = iota
	bold
	faint
	reversed
	red
)

// style applies a look; without colours only the marker of the selected row remains.
func (m Model) style(text string, how look) string {
	if !m.cfg.Color || how == plain {
		return strings.TrimRight(text, " ")
	}
	style := lipgloss.NewStyle()
	switch how {
	case bold:
		style = style.Bold(true)
	case faint:
		style = style.Faint(true)
	case reversed:
		style = style.Reverse(true)
	case red:
		style = style.Foreground(lipgloss.Color("1"))
	}
	return style.Render(text)
}
