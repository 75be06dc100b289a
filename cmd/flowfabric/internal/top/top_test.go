package top

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
)

var update = flag.Bool("update", false, "write the frames")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func execution(n string, status flowfabric.Status, kind, lane string, ago time.Duration) *flowfabric.Execution {
	return &flowfabric.Execution{
		ID: flowfabric.ID("0190b5a2-7c41-7d3e-9a52-" + strings.Repeat(n, 12)), Status: status, Kind: kind, Lane: lane, Namespace: "default",
		StatusSince: noon.Add(-ago), CreatedAt: noon.Add(-ago), CompletedAt: noon.Add(-ago), TotalAttempts: 1,
	}
}

// scene is a snapshot with one of everything.
func scene() *Snapshot {
	running := execution("1", flowfabric.StatusRunning, "mail.send", "mail", 12*time.Second)
	running.Lease = &api.Lease{InstanceID: "host-17-a1b2", Epoch: 1, ExpiresAt: noon.Add(21 * time.Second)}
	lapsed := execution("2", flowfabric.StatusRunning, "page.render", "default", 3*time.Minute)
	lapsed.Lease = &api.Lease{InstanceID: "host-18-c3d4", Epoch: 2, ExpiresAt: noon.Add(-9 * time.Second)}
	failed := execution("5", flowfabric.StatusFailed, "mail.send", "mail", time.Hour)
	failed.Failure = &flowfabric.Failure{Message: "mailbox\nunknown \x1b[2J", Class: "permanent", Category: "smtp"}
	s := &Snapshot{
		AsOf: noon,
		Lanes: []*api.Lane{
			{Name: "default", LaneSettings: api.LaneSettings{State: api.LaneActive}, Counts: map[flowfabric.Status]int{flowfabric.StatusReady: 1, flowfabric.StatusRunning: 1}, OldestReadyAt: noon.Add(-5 * time.Minute), Workers: 1},
			{
				Name: "mail", LaneSettings: api.LaneSettings{State: api.LanePaused}, Counts: map[flowfabric.Status]int{flowfabric.StatusReady: 8412, flowfabric.StatusRunning: 1, flowfabric.StatusFailed: 1},
				OldestReadyAt: noon.Add(-2 * time.Minute), Workers: 1, Rates: api.LaneRates{Submitted: api.Rate{OneMinute: 12.34}, Completed: api.Rate{OneMinute: 3}},
			},
		},
		Workers: []*api.Worker{
			{InstanceID: "host-17-a1b2", WorkerID: "mailer", State: "live", Lanes: []string{"mail"}, Kinds: []string{"mail.send"}, MaxConcurrent: 8, Leases: 1, LastSeen: noon.Add(-2 * time.Second)},
			{InstanceID: "host-18-c3d4", WorkerID: "pages", State: "draining", Lanes: []string{"default"}, MaxConcurrent: 1, Leases: 1, LastSeen: noon.Add(-40 * time.Second)},
		},
		Running: []*flowfabric.Execution{lapsed, running},
		Failed:  []*flowfabric.Execution{failed},
	}
	s.findStuck(Options{StuckAfter: time.Minute}, []*flowfabric.Execution{
		lapsed, running, execution("3", flowfabric.StatusReady, "page.render", "default", 5*time.Minute), execution("4", flowfabric.StatusReady, "mail.send", "mail", 2*time.Minute),
	})
	return s
}

func shown(width, height int) Model {
	m := New(context.Background(), Config{Server: "http://127.0.0.1:7433", Every: time.Millisecond, Now: func() time.Time { return noon }})
	return after(after(m, tea.WindowSizeMsg{Width: width, Height: height}), lookedMsg{snap: scene()})
}

// after is the view after messages, whose commands are not run.
func after(m Model, all ...tea.Msg) Model {
	for _, msg := range all {
		next, _ := m.Update(msg)
		m = next.(Model)
	}
	return m
}

func keys(names ...string) []tea.Msg {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "backspace": tea.KeyBackspace}
	var all []tea.Msg
	for _, name := range names {
		if code, found := special[name]; found {
			all = append(all, tea.KeyPressMsg{Code: code})
			continue
		}
		for _, r := range name {
			all = append(all, tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
	return all
}

func TestU177_frames(t *testing.T) {
	t.Parallel()
	opened := detailMsg{detail: &detail{scene().Failed[0], []flowfabric.Event{
		{Kind: "execution.submitted", At: noon.Add(-2 * time.Hour), Actor: api.Actor{Type: "client", ID: "ana"}}, {Kind: "execution.completed", At: noon.Add(-time.Hour), Actor: api.Actor{Type: "worker"}},
	}}}
	for name, m := range map[string]Model{
		"80x24":           shown(80, 24),
		"60x24":           shown(60, 24),
		"120x40":          shown(120, 40),
		"80x24-asking":    after(shown(80, 24), keys("down", "c", "late")...),
		"80x24-filtered":  after(shown(80, 24), keys("/", "mail", "enter")...),
		"80x24-detail":    after(shown(80, 24), opened),
		"80x24-help":      after(shown(80, 24), keys("?")...),
		"80x24-away":      after(shown(80, 24), lookedMsg{err: errors.New("connection refused")}),
		"80x24-beginning": New(context.Background(), Config{Server: "http://127.0.0.1:7433", Now: func() time.Time { return noon }}),
	} {
		frame := m.frame()
		path := filepath.Join("testdata", name+".txt")
		if *update {
			if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, []byte(frame+"\n"), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if frame+"\n" != string(want) {
			t.Errorf("%s is\n%s\nwant\n%s", name, frame, want)
		}
	}
}

func TestU177_a_frame_fills_the_screen_and_nothing_more_whatever_its_size(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 10}, {40, 8}, {20, 3}, {10, 1}, {1, 2}, {0, 0}} {
		for name, m := range map[string]Model{
			"browsing": shown(size[0], size[1]), "asking": after(shown(size[0], size[1]), keys("c")...), "coloured": coloured(size[0], size[1]),
			"detail": after(shown(size[0], size[1]), detailMsg{detail: &detail{execution: scene().Failed[0]}}), "help": after(shown(size[0], size[1]), keys("?")...),
		} {
			lines := strings.Split(m.frame(), "\n")
			if len(lines) != max(size[1], 1) {
				t.Errorf("%v %s: %d lines", size, name, len(lines))
			}
			for _, line := range lines {
				if size[0] > 0 && lipgloss.Width(line) > size[0] {
					t.Errorf("%v %s: %q is %d wide", size, name, line, lipgloss.Width(line))
				}
			}
		}
	}
}

func coloured(width, height int) Model {
	m := shown(width, height)
	m.cfg.Color = true
	return m
}

func TestU177_without_colour_nothing_steers_the_terminal(t *testing.T) {
	t.Parallel()
	if frame := shown(80, 24).frame(); strings.Contains(frame, "\x1b") {
		t.Errorf("%q", frame)
	}
	if frame := coloured(80, 24).frame(); !strings.Contains(frame, "\x1b[") || strings.Contains(frame, "\x1b[2J") {
		t.Errorf("%q", frame)
	}
}

func TestU177_U156_texts_of_others_steer_nothing(t *testing.T) {
	t.Parallel()
	const evil = "\x1b[2J\u202egnp\u200b\u009b\r"
	look := scene()
	for _, list := range [][]*flowfabric.Execution{look.Running, look.Failed} {
		for _, x := range list {
			x.Kind, x.Lane, x.Reason = evil, evil, evil
			x.Failure = &flowfabric.Failure{Message: evil, Class: evil, Category: evil}
			x.Held, x.Cancellation = &api.Hold{By: evil, Reason: evil}, &api.Cancellation{By: evil, Reason: evil}
		}
	}
	opened := detailMsg{detail: &detail{look.Failed[0], []flowfabric.Event{{Kind: evil, At: noon, Actor: api.Actor{Type: evil, ID: evil}}}}}
	for name, m := range map[string]Model{
		"panes": after(shown(120, 40), lookedMsg{snap: look}), "detail": after(shown(120, 40), opened),
		"note": after(shown(120, 40), doneMsg{text: evil}), "away": after(shown(120, 40), lookedMsg{err: errors.New(evil)}),
	} {
		frame := m.frame()
		if strings.ContainsAny(frame, "\x1b\u202e\u200b\u009b\r") || !strings.Contains(frame, `\x1b[2J\u202egnp\u200b`) {
			t.Errorf("%s: %q", name, frame)
		}
	}
}

func TestU177_the_next_look_is_planned_by_the_answer_to_the_last(t *testing.T) {
	t.Parallel()
	m := shown(80, 24)
	for _, answer := range []lookedMsg{{snap: scene()}, {err: errors.New("away")}} {
		_, cmd := m.Update(answer)
		if _, due := cmd().(dueMsg); !due {
			t.Error("no look is planned after an answer")
		}
	}
	for _, msg := range append(keys("j", "k", "tab", "/", "x", "esc", "?", "esc"), tea.WindowSizeMsg{Width: 90, Height: 30}, doneMsg{}) {
		if _, cmd := m.Update(msg); cmd != nil {
			t.Errorf("%v asks the server", msg)
		}
	}
}

func TestU177_it_says_that_the_server_is_away_keeps_what_it_knew_and_goes_on(t *testing.T) {
	t.Parallel()
	m := after(shown(80, 24), lookedMsg{err: errors.New("connection refused")})
	frame := m.frame()
	for _, want := range []string{"SERVER UNREACHABLE", "connection refused", "host-17-a1b2"} {
		if !strings.Contains(frame, want) {
			t.Errorf("no %q in\n%s", want, frame)
		}
	}
	if frame := after(m, lookedMsg{snap: scene()}).frame(); strings.Contains(frame, "UNREACHABLE") || strings.Contains(frame, "refused") {
		t.Errorf("still away:\n%s", frame)
	}
}

func TestU177_keys_move_and_stay_within_what_is_there(t *testing.T) {
	t.Parallel()
	m := shown(80, 24)
	for _, step := range []struct {
		keys []string
		want string // end of the id of what is chosen; "": nothing
	}{
		{nil, "2"},
		{[]string{"j"}, "1"},
		{[]string{"down", "j", "j"}, "1"},
		{[]string{"k", "up", "up"}, "2"},
		{[]string{"G"}, "1"},
		{[]string{"tab"}, "2"},
		{[]string{"j"}, "3"},
		{[]string{"tab"}, "5"},
		{[]string{"tab"}, ""},
		{[]string{"tab"}, ""},
		{[]string{"tab"}, "1"},
	} {
		m = after(m, keys(step.keys...)...)
		got := ""
		if x := m.chosen(); x != nil {
			got = string(x.ID[len(x.ID)-1:])
		}
		if got != step.want {
			t.Fatalf("after %v %q is chosen, want %q", step.keys, got, step.want)
		}
	}
	if m = after(m, lookedMsg{snap: &Snapshot{AsOf: noon}}); m.chosen() != nil {
		t.Error("what is gone is still chosen")
	}
	_, cmd := m.Update(keys("q")[0])
	if _, quits := cmd().(tea.QuitMsg); !quits {
		t.Error("q does not quit")
	}
}

func TestU177_why_work_is_stuck(t *testing.T) {
	t.Parallel()
	busy := &api.Worker{State: "live", Lanes: []string{"a"}, MaxConcurrent: 1, Leases: 1}
	free := &api.Worker{State: "live", Lanes: []string{"a"}, Kinds: []string{"mail"}, MaxConcurrent: 1}
	leaving := &api.Worker{State: "draining", Lanes: []string{"a"}, MaxConcurrent: 1}
	waiting := func(kind string) *flowfabric.Execution {
		return execution("1", flowfabric.StatusReady, kind, "a", time.Hour)
	}
	again := execution("1", flowfabric.StatusDelayed, "mail", "a", 0)
	again.RetryCount, again.ReclaimCount, again.Failure = 3, 1, &flowfabric.Failure{Message: "no route"}
	for _, c := range []struct {
		lane    api.Lane
		workers []*api.Worker
		x       *flowfabric.Execution
		want    string
	}{
		{x: waiting("mail"), want: "no worker for it"},
		{x: waiting("mail"), workers: []*api.Worker{leaving}, want: "no worker for it"},
		{x: waiting("page"), workers: []*api.Worker{free}, want: "no worker for it"},
		{x: waiting("mail"), workers: []*api.Worker{busy}, want: "its workers are busy"},
		{x: waiting("mail"), workers: []*api.Worker{busy, free}, want: "no free worker has the required capabilities"},
		{x: waiting("mail"), lane: api.Lane{LaneSettings: api.LaneSettings{State: api.LaneDisabled}}, want: "the lane is disabled"},
		{x: waiting("mail"), lane: api.Lane{LaneSettings: api.LaneSettings{MaxConcurrent: 2}, Counts: map[flowfabric.Status]int{flowfabric.StatusRunning: 2}}, want: "the lane is full: 2 at a time"},
		{x: again, want: "3 retries, 1 reclaims: no route"},
		{x: execution("1", flowfabric.StatusReady, "mail", "a", time.Second), want: ""},
		{x: execution("1", flowfabric.StatusRunning, "mail", "a", time.Hour), want: ""},
	} {
		c.lane.Name = "a"
		s := &Snapshot{AsOf: noon, Lanes: []*api.Lane{&c.lane}, Workers: c.workers}
		if got := s.whyStuck(Options{StuckAfter: time.Minute}, c.x); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// live is the view of an engine in this process, after its first look.
func live(t *testing.T) (Model, *flowfabric.Client) {
	t.Helper()
	client, err := embedded.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "top.db"), embedded.Config{EngineConfig: flowfabric.EngineConfig{Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, kind := range []string{"mail", "page"} {
		if _, err := client.Submit(t.Context(), flowfabric.Submission{Kind: kind, SubmitOptions: flowfabric.SubmitOptions{Lane: kind}}); err != nil {
			t.Fatal(err)
		}
	}
	m := New(t.Context(), Config{Client: client, Server: "http://here", Every: time.Millisecond, Now: time.Now})
	return after(m, m.Init()()), client
}

// ran is the view after messages and after what their commands answered.
func ran(t *testing.T, m Model, all ...tea.Msg) Model {
	t.Helper()
	for len(all) > 0 {
		next, cmd := m.Update(all[0])
		m, all = next.(Model), all[1:]
		if cmd != nil {
			all = append([]tea.Msg{cmd()}, all...)
		}
	}
	return m
}

func TestU177_executions_are_shown_cancelled_and_replayed(t *testing.T) {
	t.Parallel()
	m, client := live(t)
	m = ran(t, m, keys("tab")...)
	if x := m.chosen(); x == nil || x.Kind != "mail" {
		t.Fatalf("%+v is chosen:\n%s", x, m.frame())
	}
	id := m.chosen().ID
	m = ran(t, m, keys("enter")...)
	if frame := m.frame(); !strings.Contains(frame, bare(id)) || !strings.Contains(frame, "execution.") || !strings.Contains(frame, "no worker for it") {
		t.Fatalf("the execution is not shown:\n%s", frame)
	}
	m = ran(t, m, keys("r")...)
	if !strings.Contains(m.frame(), "it has not ended") {
		t.Errorf("no refusal:\n%s", m.frame())
	}
	m = ran(t, m, keys("c", "x", "backspace", "wrong", "esc")...)
	if x := get(t, client, id); x.Status != flowfabric.StatusReady {
		t.Errorf("after esc it is %s", x.Status)
	}
	m = ran(t, m, keys("c", "x", "backspace", "wrong", "enter")...)
	if x := get(t, client, id); x.Status != flowfabric.StatusCancelled || x.Cancellation.Reason != "wrong" {
		t.Errorf("%s %+v", x.Status, x.Cancellation)
	}
	if !strings.Contains(m.frame(), "cancelled") {
		t.Errorf("the end is not shown:\n%s", m.frame())
	}
	m = ran(t, m, keys("o")...)
	if !strings.Contains(m.frame(), "http://here/v1/executions/"+bare(id)) {
		t.Errorf("no URL:\n%s", m.frame())
	}
	if m = ran(t, m, keys("r", "esc")...); get(t, client, id).Status != flowfabric.StatusReady || m.mode != browsing {
		t.Error("it was not replayed")
	}
}

func TestU177_an_execution_that_is_read_is_kept_up_to_date(t *testing.T) {
	t.Parallel()
	m, client := live(t)
	m = ran(t, m, keys("tab", "enter")...)
	id := m.chosen().ID
	if _, err := client.Cancel(t.Context(), id, "elsewhere"); err != nil {
		t.Fatal(err)
	}
	m = after(m, m.look()())
	if frame := m.frame(); m.mode != reading || !strings.Contains(frame, "elsewhere") {
		t.Errorf("the old one is shown:\n%s", frame)
	}
	if err := client.Operate().Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if m = after(m, m.look()()); m.away != nil || !strings.Contains(m.frame(), bare(id)) {
		t.Errorf("what is gone took the view with it:\n%s", m.frame())
	}
}

func get(t *testing.T, c *flowfabric.Client, id flowfabric.ID) *flowfabric.Execution {
	t.Helper()
	x, err := c.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestU177_a_filter_narrows_by_lane_or_kind_and_a_lane_is_one(t *testing.T) {
	t.Parallel()
	m, client := live(t)
	if len(m.shown().Stuck) != 2 || len(m.shown().Lanes) < 2 {
		t.Fatalf("%+v", m.shown())
	}
	m = after(m, keys("/", "pag", "enter")...)
	if s := m.shown(); len(s.Stuck) != 1 || len(s.Lanes) != 1 || s.Stuck[0].Execution.Kind != "page" {
		t.Errorf("%+v", s)
	}
	m = after(m, keys("esc", "tab", "tab", "tab", "G", "enter")...)
	if m.filter != "page" {
		t.Errorf("the filter is %q", m.filter)
	}
	snap, err := Look(t.Context(), client, Options{Lane: "mail", Kind: "mail"})
	if err != nil || len(snap.Lanes) != 1 || len(snap.Stuck) != 1 {
		t.Errorf("%+v %v", snap, err)
	}
}

func TestU177_a_refusal_of_the_server_is_a_note(t *testing.T) {
	t.Parallel()
	m, client := live(t)
	m = ran(t, m, keys("tab")...)
	if _, err := client.Cancel(t.Context(), m.chosen().ID, "before"); err != nil {
		t.Fatal(err)
	}
	if err := client.Operate().Delete(t.Context(), m.chosen().ID); err != nil {
		t.Fatal(err)
	}
	for _, key := range [][]string{{"enter"}, {"c", "enter"}} {
		if m = ran(t, m, keys(key...)...); m.note == "" || m.mode != browsing {
			t.Errorf("%v: no note, mode %d", key, m.mode)
		}
	}
}
