package examples

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric"
	chat "github.com/flowfabric/flowfabric/examples/chat/story"
	live "github.com/flowfabric/flowfabric/examples/live-page/story"
	"github.com/flowfabric/flowfabric/examples/llm"
	"github.com/flowfabric/flowfabric/examples/stage"
	"github.com/flowfabric/flowfabric/ops"
)

// said is what each attempt of an execution has said, and how each of them has ended.
func said(t *testing.T, c *flowfabric.Client, id flowfabric.ID) (texts, ends []string) {
	t.Helper()
	for frame, err := range c.Streams().Follow(t.Context(), id, ops.FollowOptions{All: true, FrameFilter: ops.FrameFilter{Types: []string{"data"}, Modes: []string{flowfabric.ModeDurable}}}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case frame.Type == flowfabric.AttemptStarted:
			texts = append(texts, "")
		case frame.Type == flowfabric.AttemptClosed:
			ends = append(ends, frame.Reason)
		case !frame.IsControl():
			texts[len(texts)-1] += string(frame.Payload.Data)
		}
	}
	return texts, ends
}

// wantTakenOver fails the test unless one attempt was killed in the middle of a text, and the next one has said all of it.
func wantTakenOver(t *testing.T, c *flowfabric.Client, x *flowfabric.Execution) (text string) {
	t.Helper()
	if x.Status != flowfabric.StatusSucceeded || x.ReclaimCount != 1 || x.RetryCount != 0 {
		t.Errorf("%+v", x)
	}
	texts, ends := said(t, c, x.ID)
	if len(texts) != 2 || strings.Join(ends, " ") != "reclaimed attempt_success" {
		t.Fatalf("the attempts have said %q and ended by %q", texts, ends)
	}
	if killed, whole := texts[0], texts[1]; len(killed) < 20 || len(killed) >= len(whole) || !strings.HasPrefix(whole, killed) {
		t.Errorf("the killed attempt has said %q, the other one %q", killed, whole)
	}
	return texts[1]
}

func TestU234_the_reader_of_a_chat_sees_each_token_once_though_its_worker_is_killed(t *testing.T) {
	t.Parallel()
	everywhere(t, chat.Chat, func(t *testing.T, p *place) {
		c := p.open(t, "default")
		x := only(t, c, p.Name)
		wantText(t, x, wantTakenOver(t, c, x))
	})
}

// streaming is a chat endpoint that answers in parts.
func streaming(t *testing.T, parts ...string) *httptest.Server {
	t.Helper()
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, part := range parts {
			_, _ = io.WriteString(w, "data: "+part+"\n\n")
		}
	}))
	t.Cleanup(func() {
		endpoint.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return endpoint
}

func TestU234_the_answer_of_a_chat_endpoint_is_written_as_it_comes(t *testing.T) {
	t.Parallel()
	endpoint := streaming(t, `{"choices": [{"delta": {"role": "assistant", "content": "be"}}]}`, `{"choices": [{"delta": {"content": "cause"}}]}`,
		`{"choices": [], "usage": {"total_tokens": 7}}`, "[DONE]")
	var out strings.Builder
	reply, err := llm.Ask(t.Context(), endpoint.URL, "why?", 0, &out)
	if want := (llm.Reply{Text: "because", Tokens: 7}); err != nil || reply != want || out.String() != want.Text {
		t.Errorf("%+v, written %q, %v", reply, out.String(), err)
	}
	broken := streaming(t, `{"choices": [{"delta": {"content": "be"}}]}`)
	if reply, err := llm.Ask(t.Context(), broken.URL, "why?", 0, io.Discard); err == nil {
		t.Errorf("an answer that breaks off is %+v", reply)
	}
}

// livePage is the story without staying.
func livePage() stage.Story {
	return stage.Story{Name: "live-page", Tell: func(ctx context.Context, s *stage.Stage) error { return live.Tell(ctx, s, false) }}
}

func TestU248_a_reader_of_the_stream_misses_nothing_over_a_break_and_a_reload(t *testing.T) {
	t.Parallel()
	everywhere(t, livePage(), func(t *testing.T, p *place) {
		c := p.open(t, "default")
		x := only(t, c, p.Name)
		wantTakenOver(t, c, x)
		wantEvents(t, c, x.ID, "execution.submitted lease.acquired lease.expired attempt.ended lease.acquired execution.completed")
	})
	page, err := os.ReadFile("../../examples/live-page/story/page.html")
	if lines := strings.Count(string(page), "\n"); err != nil || lines > 60 {
		t.Errorf("the page has %d lines, want at most 60: %v", lines, err)
	}
}

// openLivePage tells the story of the page, which then stays open, and returns its address.
func openLivePage(t *testing.T) (address string) {
	t.Helper()
	ctx, cancel := context.WithCancel(careless(t.Context()))
	printed, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		story := stage.Story{Name: "live-page", Tell: func(ctx context.Context, s *stage.Stage) error { return live.Tell(ctx, s, true) }}
		err := stage.Play(ctx, story, stage.Stage{Store: sqliteStore(t), Name: "live-page-told", Self: []string{os.Args[0]}, Out: out})
		_ = out.CloseWithError(err)
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		_ = printed.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for lines := bufio.NewScanner(printed); lines.Scan(); {
		if stays := regexp.MustCompile(`stays at (http\S+)`).FindStringSubmatch(lines.Text()); stays != nil {
			return stays[1]
		}
	}
	t.Fatal("the page did not open")
	return ""
}

// cable is between a browser and a page: it can be cut, and it notes which requests continue a stream of frames, after which one.
type cable struct {
	*httptest.Server
	continued chan string
}

func cableTo(t *testing.T, address string) *cable {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{continued: make(chan string, 16)}
	proxy := proxyTo(to)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if last := r.Header.Get("Last-Event-ID"); last != "" && strings.HasSuffix(r.URL.Path, "/stream") {
			c.continued <- last
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

func TestU248_the_page_in_a_browser_survives_a_cut_a_killed_worker_and_a_reload(t *testing.T) {
	t.Parallel()
	c := cableTo(t, openLivePage(t))
	b := openBrowser(t)
	b.open(t, c.URL)
	b.click(t, "Bake a cake")
	<-b.loaded
	b.until(t, `document.querySelector("#said").textContent.length > 20`)
	c.CloseClientConnections()
	if last := <-c.continued; !strings.HasPrefix(last, "0-") {
		t.Errorf("the browser goes on after %q", last)
	}
	shown := []string{b.text(t, "#said")}
	b.click(t, "Kill the worker")
	b.until(t, `document.querySelector("#events").textContent.includes("lease.expired")`)
	b.until(t, `document.querySelector("#said").textContent.length > 20 && /lease.acquired[^]*lease.acquired/.test(document.querySelector("#events").textContent)`)
	shown = append(shown, b.text(t, "#said"))
	b.screenshot(t, "taken-over.png")
	b.reload(t)
	b.until(t, `document.querySelector("#status").textContent.startsWith("succeeded") && document.querySelector("#said").textContent.endsWith("cake.")`)
	b.screenshot(t, "reloaded.png")
	text := b.text(t, "#said")
	for _, before := range shown {
		if !strings.HasPrefix(text, before) || strings.Count(text, "Beat butter") != 1 {
			t.Errorf("the page shows %q, and at the end %q", before, text)
		}
	}
	want := "execution.submitted lease.acquired lease.expired attempt.ended lease.acquired execution.completed"
	kinds := strings.Join(regexp.MustCompile(`[a-z]+\.[a-z]+`).FindAllString(b.text(t, "#events"), -1), " ")
	if kinds != want {
		t.Errorf("the page shows the events %q, want %q", kinds, want)
	}
}
