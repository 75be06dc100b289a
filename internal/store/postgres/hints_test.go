package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric/internal/store"
)

// listenTo hears the hints of a store until the test ends.
func listenTo(t *testing.T, s *Store, url string) <-chan store.Hint {
	t.Helper()
	hints := make(chan store.Hint, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Listen(ctx, func(h store.Hint) { hints <- h })
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	waitUntil(t, url, listening)
	return hints
}

const listening = `select exists (select from pg_stat_activity where datname = current_database() and state = 'idle' and query like 'listen "flowfabric_%')`

func TestS69_a_store_does_not_hear_its_own_hints(t *testing.T) {
	t.Parallel()
	s, url := open(t, Config{})
	hints := listenTo(t, s, url)
	for _, sender := range []*Store{s, openAt(t, url, Config{})} {
		if err := sender.Notify(t.Context(), store.Hint{Lanes: []string{sender.name}}); err != nil {
			t.Fatal(err)
		}
	}
	if first := <-hints; first.Lanes[0] == s.name {
		t.Fatal("it heard itself")
	}
}

func TestS69_a_hint_with_many_lanes_arrives_whole(t *testing.T) {
	t.Parallel()
	s, url := open(t, Config{})
	hints := listenTo(t, s, url)
	var want []string
	for i := range 500 {
		want = append(want, fmt.Sprintf("%064d", i))
	}
	other := openAt(t, url, Config{})
	if err := other.Notify(t.Context(), store.Hint{Lanes: want, Log: true}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(got) < len(want) {
		got = append(got, (<-hints).Lanes...)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatal("other lanes arrived than were sent")
	}
}

func TestS69_a_hint_with_many_classes_arrives_whole(t *testing.T) {
	t.Parallel()
	s, url := open(t, Config{})
	hints := listenTo(t, s, url)
	want := make([]int32, 5*classesPerMessage+1)
	for i := range want {
		want[i] = math.MaxInt32 - int32(len(want)-i)
	}
	other := openAt(t, url, Config{})
	if err := other.Notify(t.Context(), store.Hint{Lanes: []string{"default"}, Named: true, Classes: want, Log: true, Blocked: true}); err != nil {
		t.Fatal(err)
	}
	var got []int32
	for first := true; len(got) < len(want); first = false {
		h := <-hints
		if !h.Named || !h.Blocked || h.Log != first {
			t.Fatalf("behind %d classes: %+v", len(got), h)
		}
		got = append(got, h.Classes...)
	}
	if !slices.Equal(got, want) {
		t.Fatal("other classes arrived than were sent")
	}
}

func TestS69_a_hint_whose_classes_have_no_room_is_about_all_of_its_lanes(t *testing.T) {
	t.Parallel()
	s, url := open(t, Config{})
	hints := listenTo(t, s, url)
	lanes := slices.Repeat([]string{strings.Repeat("<", 64)}, lanesPerMessage) // JSON writes six bytes for each
	classes := slices.Repeat([]int32{math.MaxInt32}, classesPerMessage)
	if err := openAt(t, url, Config{}).Notify(t.Context(), store.Hint{Lanes: lanes, Named: true, Classes: classes}); err != nil {
		t.Fatal(err)
	}
	if h := <-hints; h.Named || h.Classes != nil || len(h.Lanes) != len(lanes) {
		t.Fatalf("it arrives as %+v", h)
	}
}

func TestS69_a_hint_with_more_keys_than_a_message_holds_says_that_any_may_have_room(t *testing.T) {
	t.Parallel()
	s, url := open(t, Config{})
	hints := listenTo(t, s, url)
	other := openAt(t, url, Config{})
	lanes := slices.Repeat([]string{strings.Repeat("<", 64)}, lanesPerMessage+1) // JSON writes six bytes for each
	few, many := []string{"rate:api/<ü>", "slots:api"}, slices.Repeat([]string{"slots:" + strings.Repeat("k", 100)}, 80)
	for _, one := range []struct{ lanes, keys, want []string }{
		{nil, few, few}, {nil, many, []string{store.AnyKey}}, {lanes, many[:1], many[:1]}, {lanes, many[:20], []string{store.AnyKey}},
	} {
		if err := other.Notify(t.Context(), store.Hint{Lanes: one.lanes, Keys: one.keys, Blocked: true}); err != nil {
			t.Fatal(err)
		}
		first := <-hints
		if !slices.Equal(first.Keys, one.want) || !first.Blocked {
			t.Errorf("%d lanes and %d keys arrive as %+v", len(one.lanes), len(one.keys), first)
		}
		for got := len(first.Lanes); got < len(one.lanes); {
			rest := <-hints
			if got += len(rest.Lanes); rest.Keys != nil || rest.Blocked {
				t.Errorf("the keys are told twice: %+v", rest)
			}
		}
	}
}

func TestS69_a_listener_that_lost_its_connection_listens_again_and_says_that_it_missed_something(t *testing.T) {
	t.Parallel()
	s, url := open(t, Config{})
	hints := listenTo(t, s, url)
	execute(t, connectAt(t, url), "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query like 'listen %'")
	if h := <-hints; !h.AllLanes || !h.Log || !h.Dictionary || !h.Inbox || !h.Blocked || !slices.Equal(h.Keys, []string{store.AnyKey}) {
		t.Fatalf("the first hint after the interruption is %+v", h)
	}
	if err := openAt(t, url, Config{}).Notify(t.Context(), store.Hint{Lanes: []string{"again"}}); err != nil {
		t.Fatal(err)
	}
	if h := <-hints; !slices.Equal(h.Lanes, []string{"again"}) {
		t.Fatalf("hint %+v", h)
	}
}

func TestS69_behind_a_pooler_without_a_direct_address_listening_only_waits(t *testing.T) {
	t.Parallel()
	s, _ := open(t, Config{Pooled: true})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Listen(ctx, func(store.Hint) { t.Error("a hint was heard") }) }()
	if err := s.Notify(t.Context(), store.Hint{Log: true}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
