package store

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/eventdata"
	"github.com/flowfabric/flowfabric/internal/testseed"
)

func TestE26_the_data_of_events_comes_back_byte_for_byte(t *testing.T) {
	t.Parallel()
	texts := []string{
		``, `{}`, `null`, `{"a":1}`, `{"a":-0,"b":007,"c":1.5,"d":1e9,"e":-12,"f":123456789012345678901}`,
		`{"id":"0190f0c2-1111-7aaa-8bbb-0123456789ab","ID":"0190F0C2-1111-7aaa-8bbb-0123456789ab"}`,
		`{"text":"a \"quoted\" one","unicode":"ä\u0001","list":["a","b",3,true,null]}`, "{\"raw\":\"\x01\"}", `{"cut":"`, `"`, `-`, `[1,2,3]`,
	}
	for _, text := range texts {
		if got := sameData(t, eventdata.OfJSON([]byte(text))); got != text {
			t.Errorf("%q came back as %q", text, got)
		}
	}
}

func TestE26_any_data_comes_back(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) { sameData(t, drawData(t)) })
}

func TestE26_what_core_tells_comes_back_with_any_texts(t *testing.T) {
	t.Parallel()
	testseed.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		told := tellFailures(t, rapid.IntRange(1, 30).Draw(t, "executions"), func() string { return text.Draw(t, "text") })
		back, err := DecodeCommit(EncodeCommit(told))
		if err != nil {
			t.Fatal(err)
		}
		for i := range told {
			if want, got := string(told[i].Data.JSON()), string(back[i].Data.JSON()); got != want {
				t.Fatalf("%s came back as %s", want, got)
			}
		}
	})
}

// sameData stores the data in two events of a commit and returns what it is as JSON.
func sameData(t interface {
	Fatalf(format string, args ...any)
}, data eventdata.Data,
) string {
	want := string(data.JSON())
	event := core.Event{Kind: "k", At: 5, AttemptIndex: -1, Data: data}
	back, err := DecodeCommit(EncodeCommit([]core.Event{event, event}))
	if err != nil || string(back[0].Data.JSON()) != want || string(back[1].Data.JSON()) != want {
		t.Fatalf("%q came back as %+v, %v", want, back, err)
	}
	return want
}

// tellFailures is what core tells of executions that are acquired, fail once and are then cancelled by somebody.
func tellFailures(t *rapid.T, n int, text func() string) []core.Event {
	s := core.Submission{Kind: "charge", PolicyJSON: []byte(`{"retry_policy":{}}`)}
	if err := s.Normalize(base.DefaultLimits()); err != nil {
		t.Fatal(err)
	}
	class := s.Class()
	fx := &core.Effects{Now: 1_790_000_000_000, Actor: core.Actor{Type: "worker", ID: "w"}}
	for i := range n {
		x := core.NewExecution(fx, &s, base.IDOf(base.UUID{byte(i)}), &class)
		x.Acquire(fx, core.Acquisition{LeaseID: base.UUID{1}, AttemptID: base.UUID{2}, WorkerID: text(), InstanceID: text(), TTL: 1000, Forced: i%2 == 0})
		fence := core.Fence{LeaseID: x.Lease.ID, Epoch: x.LeaseEpoch, AttemptID: x.Attempt.ID}
		if _, err := x.Fail(fx, core.FailCommand{Fence: fence, Class: "transient", Message: text()}); err != nil {
			t.Fatal(err)
		}
		if _, err := x.Cancel(fx, core.CancelCommand{By: text(), Reason: text()}); err != nil {
			t.Fatal(err)
		}
	}
	return fx.Events
}
