package top

import (
	"slices"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// key is what comes after a key.
func (m Model) key(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	if k.String() == "ctrl+c" {
		return m, tea.Quit
	}
	switch m.mode {
	case filtering, asking:
		return m.typed(k)
	case helping:
		m.mode = browsing
		return m, nil
	case reading:
		switch k.String() {
		case "esc", "enter", "backspace":
			m.mode, m.detail, m.note = browsing, nil, ""
			return m, nil
		}
	case browsing:
		if next, moved := m.moved(k.String()); moved {
			return next, nil
		}
	}
	return m.acted(k.String())
}

// moved is the view after a key that chooses another row or pane.
func (m Model) moved(key string) (Model, bool) {
	last := m.size(m.pane) - 1
	at := m.at[m.pane]
	switch key {
	case "up", "k":
		at--
	case "down", "j":
		at++
	case "pgup":
		at -= 10
	case "pgdown":
		at += 10
	case "home", "g":
		at = 0
	case "end", "G":
		at = last
	case "tab", "right", "l":
		m.pane = (m.pane + 1) % panes
		return m, true
	case "shift+tab", "left", "h":
		m.pane = (m.pane + panes - 1) % panes
		return m, true
	default:
		return m, false
	}
	m.at[m.pane] = max(min(at, last), 0)
	return m, true
}

// acted is what comes after a key that does something.
func (m Model) acted(key string) (tea.Model, tea.Cmd) {
	x := m.chosen()
	m.note = ""
	switch key {
	case "q":
		return m, tea.Quit
	case "?":
		m.mode = helping
		return m, nil
	case "/":
		m.mode, m.input = filtering, m.filter
		return m, nil
	case "esc":
		m.filter = ""
		return m, nil
	case "enter":
		if m.pane == lanePane && m.size(lanePane) > 0 {
			m.filter, m.at = m.shown().Lanes[m.at[lanePane]].Name, [panes]int{}
			return m, nil
		}
	}
	if !slices.Contains([]string{"enter", "c", "r", "o"}, key) {
		return m, nil
	}
	if x == nil {
		m.note = "choose an execution first: tab goes to the next pane"
		return m, nil
	}
	switch key {
	case "enter":
		return m, m.read(x.ID)
	case "o":
		m.note = m.cfg.Server + "/v1/executions/" + bare(x.ID)
	case "c":
		if x.Status.Terminal() {
			m.note = "it has ended: " + string(x.Status)
			return m, nil
		}
		m.mode, m.input, m.subject = asking, "", x
	case "r":
		if !x.Status.Terminal() {
			m.note = "it has not ended: " + string(x.Status)
			return m, nil
		}
		return m, m.replay(x)
	}
	return m, nil
}

// typed is what comes after a key while a text is being typed.
func (m Model) typed(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	back := browsing
	if m.detail != nil {
		back = reading
	}
	switch k.String() {
	case "esc":
		m.mode = back
	case "enter":
		was := m.mode
		m.mode = back
		if was == asking {
			return m, m.cancel(m.subject, m.input)
		}
		m.filter, m.at = m.input, [panes]int{}
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(m.input)
		m.input = m.input[:len(m.input)-size]
	case "ctrl+u":
		m.input = ""
	default:
		m.input += k.Text
	}
	return m, nil
}
