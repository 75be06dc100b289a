package top

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	tea "charm.land/bubbletea/v2"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

// Config configures the view.
type Config struct {
	Client  *flowfabric.Client
	Server  string // address, for the URL of an execution
	Options Options
	Every   time.Duration // pause between two refreshes
	Color   bool
	Now     func() time.Time
}

// callLimit bounds each refresh: a slower server counts as unreachable.
const callLimit = 3 * time.Second

// Model is the state of the view. Update returns the next state and changes nothing else.
type Model struct {
	cfg    Config
	within func(func(ctx context.Context) tea.Msg) tea.Cmd

	width, height int
	snap          *Snapshot // nil: not loaded yet
	away          error     // error of the last refresh; nil: none
	awaySince     time.Time
	filter        string
	pane          pane
	at            [panes]int // selected row per pane
	mode          mode
	input         string // text being typed
	subject       *flowfabric.Execution
	detail        *detail
	note          string // result of the last action
}

// mode decides what keys do.
type mode int

const (
	browsing mode = iota
	filtering
	asking // for the reason of a cancel
	helping
	reading // one execution
)

// pane is a part of the screen.
type pane int

const (
	lanePane pane = iota
	workerPane
	runningPane
	stuckPane
	failedPane
	panes
)

// detail is one execution with its latest events.
type detail struct {
	execution *flowfabric.Execution
	events    []flowfabric.Event
}

// Messages besides those of the terminal.
type (
	dueMsg    struct{} // time for the next refresh
	lookedMsg struct {
		snap   *Snapshot
		detail *detail // of the execution that is shown; nil: none, or it cannot be read
		err    error
	}
	detailMsg struct {
		detail *detail
		err    error
	}
	doneMsg struct {
		text string
		err  error
	}
)

// New is the view before the first refresh. Its calls end with ctx.
func New(ctx context.Context, cfg Config) Model {
	return Model{cfg: cfg, width: 80, height: 24, pane: runningPane, within: func(do func(ctx context.Context) tea.Msg) tea.Cmd {
		return func() tea.Msg {
			bounded, cancel := context.WithTimeout(ctx, callLimit)
			defer cancel()
			return do(bounded)
		}
	}}
}

// Init starts the first refresh.
func (m Model) Init() tea.Cmd { return m.look() }

// Update handles a message. The next refresh is scheduled when the previous one has been answered, so that they do not pile up.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case dueMsg:
		return m, m.look()
	case lookedMsg:
		return m.looked(msg), tea.Tick(m.cfg.Every, func(time.Time) tea.Msg { return dueMsg{} })
	case detailMsg:
		if msg.err != nil {
			m.note = problem(msg.err)
			return m, nil
		}
		m.detail, m.mode = msg.detail, reading
	case doneMsg:
		m.note = msg.text
		if msg.err != nil {
			m.note = problem(msg.err)
		}
		if m.mode == reading {
			return m, m.read(m.detail.execution.ID)
		}
	case tea.KeyPressMsg:
		return m.key(msg)
	}
	return m, nil
}

// looked stores the result of a refresh, or that the server is unreachable.
func (m Model) looked(msg lookedMsg) Model {
	switch {
	case msg.err == nil:
		m.snap, m.away = msg.snap, nil
		if m.detail != nil && msg.detail != nil && m.detail.execution.ID == msg.detail.execution.ID {
			m.detail = msg.detail
		}
		for p := range panes {
			m.at[p] = max(min(m.at[p], m.size(p)-1), 0)
		}
	case m.away == nil:
		m.away, m.awaySince = msg.err, m.cfg.Now()
	default:
		m.away = msg.err
	}
	return m
}

// look is one refresh, including the execution that is shown.
func (m Model) look() tea.Cmd {
	return m.within(func(ctx context.Context) tea.Msg {
		snap, err := Look(ctx, m.cfg.Client, m.cfg.Options)
		if err != nil || m.detail == nil {
			return lookedMsg{snap: snap, err: err}
		}
		now, _ := readDetail(ctx, m.cfg.Client, m.detail.execution.ID) // if it was deleted, its last state stays on the screen
		return lookedMsg{snap: snap, detail: now}
	})
}

// shownEvents is the number of events shown for an execution.
const shownEvents = 10

func (m Model) read(id flowfabric.ID) tea.Cmd {
	return m.within(func(ctx context.Context) tea.Msg {
		found, err := readDetail(ctx, m.cfg.Client, id)
		return detailMsg{found, err}
	})
}

func readDetail(ctx context.Context, c *flowfabric.Client, id flowfabric.ID) (*detail, error) {
	x, err := c.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	events, err := lastEvents(ctx, c, x)
	if err != nil {
		return nil, err
	}
	return &detail{x, events}, nil
}

// lastEvents reads the events of an execution and keeps the last ones.
func lastEvents(ctx context.Context, c *flowfabric.Client, x *flowfabric.Execution) ([]flowfabric.Event, error) {
	options := ops.ReadOptions{After: api.FromStart, Limit: 1000, EventFilter: ops.EventFilter{ExecutionID: x.ID, Since: x.CreatedAt}}
	var last []flowfabric.Event
	for {
		page, err := c.Events().Read(ctx, options)
		if err != nil {
			return nil, err
		}
		last = append(last, page.Events...)
		last = last[max(0, len(last)-shownEvents):]
		if page.AtEnd {
			return last, nil
		}
		options.After = page.Next
	}
}

func (m Model) cancel(x *flowfabric.Execution, reason string) tea.Cmd {
	return m.within(func(ctx context.Context) tea.Msg {
		after, err := m.cfg.Client.Cancel(ctx, x.ID, reason)
		if err != nil {
			return doneMsg{err: err}
		}
		if after.Status != flowfabric.StatusCancelled {
			return doneMsg{text: bare(x.ID) + " will be cancelled"}
		}
		return doneMsg{text: bare(x.ID) + " is cancelled"}
	})
}

func (m Model) replay(x *flowfabric.Execution) tea.Cmd {
	return m.within(func(ctx context.Context) tea.Msg {
		_, err := m.cfg.Client.Operate().Replay(ctx, x.ID)
		return doneMsg{bare(x.ID) + " runs again", err}
	})
}

// shown is the last snapshot after filtering.
func (m Model) shown() *Snapshot {
	if m.snap == nil {
		return &Snapshot{}
	}
	return m.snap.Narrow(m.filter)
}

// size is the number of rows of a pane.
func (m Model) size(p pane) int {
	s := m.shown()
	return [panes]int{len(s.Lanes), len(s.Workers), len(s.Running), len(s.Stuck), len(s.Failed)}[p]
}

// chosen is the selected execution; nil: none.
func (m Model) chosen() *flowfabric.Execution {
	s, i := m.shown(), m.at[m.pane]
	switch {
	case m.mode == reading:
		return m.detail.execution
	case i >= m.size(m.pane):
		return nil
	case m.pane == runningPane:
		return s.Running[i]
	case m.pane == stuckPane:
		return s.Stuck[i].Execution
	case m.pane == failedPane:
		return s.Failed[i]
	default:
		return nil
	}
}

// bare is an id without its namespace.
func bare(id flowfabric.ID) string { return string(id[strings.LastIndexByte(string(id), ':')+1:]) }

// problem describes an error in one line.
func problem(err error) string {
	var refusal *flowfabric.Error
	if errors.As(err, &refusal) {
		return refusal.Message
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer within " + callLimit.String()
	}
	return err.Error()
}
