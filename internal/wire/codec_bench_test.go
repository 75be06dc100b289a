package wire

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/api"
)

// The messages that a busy worker and a busy client exchange, a hundred items each. Run by hand:
//
//	go test ./internal/wire -run - -bench Messages -benchmem

const benchItems = 100

var benchInstant = TimeOf(time.UnixMilli(1790000000123))

func benchID(i int) string {
	return fmt.Sprintf("{fp:%d}:0190c1d2-7a3b-7000-8000-%012d", i%256, i)
}

func benchLease(i int) LeaseRef {
	return LeaseRef{LeaseID: benchID(i)[8:], Epoch: 1, AttemptID: benchID(i + 1)[8:]}
}

func benchClaim() api.ClaimAnswer {
	answer := api.ClaimAnswer{ServerTime: benchInstant.Time}
	for i := range benchItems {
		ref := benchLease(i)
		task := &api.Claimed{
			ID: api.ID(benchID(i)), Kind: "send-mail", Lane: "default", Namespace: "default", Priority: 100,
			Input: api.Bytes([]byte(`{"to":"someone@example.com","n":17}`), ContentJSON).AsBytes(), How: "fresh",
			Attempt: api.Attempt{ID: ref.AttemptID, Type: "initial", State: "started", StartedAt: benchInstant.Time, FirstEpoch: 1, LastEpoch: 1},
			Lease: api.Lease{
				ExecutionID: api.ID(benchID(i)), ID: ref.LeaseID, Epoch: 1, AttemptID: ref.AttemptID, WorkerID: "bench", InstanceID: "bench-1",
				AcquiredAt: benchInstant.Time, RenewedAt: benchInstant.Time, ExpiresAt: benchInstant.Time, TTL: 30 * time.Second,
			},
			Policy: []byte(`{"retry":{"max_retries":3,"backoff":{"strategy":"exponential","initial":1000,"max":60000}}}`), CreatedAt: benchInstant.Time,
			EffectKey: benchID(i) + ":0",
		}
		answer.Tasks = append(answer.Tasks, task)
	}
	return answer
}

func benchCommands() []WorkItem {
	var items []WorkItem
	for i := range benchItems {
		items = append(items, WorkItem{
			Op: "complete", ExecutionID: benchID(i), LeaseField: LeaseField{Lease: benchLease(i)},
		})
	}
	return items
}

func benchSubmissions() []api.Submission {
	var items []api.Submission
	for i := range benchItems {
		items = append(items, api.Submission{Kind: "send-mail", SubmitOptions: api.SubmitOptions{
			ID: api.ID(benchID(i)), Lane: "default", Priority: 100, Tags: map[string]string{"team": "red", "tenant": "acme"},
		}})
	}
	return items
}

// shownWork is an answer of a package that has a type of its own for it, as the server's.
type shownWork struct{ answer api.WorkAnswerFields }

func (s shownWork) MarshalJSON() ([]byte, error) { return Marshal(&s.answer) }

func BenchmarkMessagesClaimAnswer(b *testing.B) {
	answer := benchClaim()
	b.Run("encode", func(b *testing.B) { benchEncode(b, func() ([]byte, error) { return Marshal(&answer) }) })
	text, err := Marshal(&answer)
	benchDecode(b, text, err, func() error {
		_, err := answerOf(ClaimWork, text)
		return err
	})
}

func BenchmarkMessagesWorkBatch(b *testing.B) {
	items := benchCommands()
	result := api.Bytes([]byte(`{"sent":true}`), ContentJSON)
	write := func() ([]byte, error) {
		return benchBatch(items, func(item *WorkItem) { item.Result = result })
	}
	b.Run("encode", func(b *testing.B) { benchEncode(b, write) })
	text, err := write()
	benchDecode(b, text, err, func() error {
		_, err := requestOf(SendWork, Incoming{Header: http.Header{"Content-Type": {ContentJSON}}, Body: text})
		return err
	})
}

func BenchmarkMessagesWorkAnswer(b *testing.B) {
	var answers Items[shownWork]
	for range benchItems {
		answers.Add(shownWork{api.WorkAnswerFields{Status: "succeeded"}}, nil)
	}
	b.Run("encode", func(b *testing.B) { benchEncode(b, func() ([]byte, error) { return Marshal(&answers) }) })
	text, err := Marshal(&answers)
	benchDecode(b, text, err, func() error {
		_, err := answerOf(SendWork, text)
		return err
	})
}

func BenchmarkMessagesSubmissions(b *testing.B) {
	items := benchSubmissions()
	input := api.Bytes([]byte(`{"to":"someone@example.com","n":17}`), ContentJSON)
	write := func() ([]byte, error) {
		return benchBatch(items, func(item *api.Submission) { item.Input = input })
	}
	b.Run("encode", func(b *testing.B) { benchEncode(b, write) })
	text, err := write()
	benchDecode(b, text, err, func() error {
		_, err := requestOf(SubmitExecutions, Incoming{Header: http.Header{"Content-Type": {ContentJSON}}, Body: text})
		return err
	})
}

func BenchmarkMessagesSubmitAnswer(b *testing.B) {
	var answers Items[api.SubmitResult]
	for i := range benchItems {
		answers.Add(api.SubmitResult{ID: api.ID(benchID(i)), PublicState: "waiting", Priority: 100}, nil)
	}
	b.Run("encode", func(b *testing.B) { benchEncode(b, func() ([]byte, error) { return Marshal(&answers) }) })
	text, err := Marshal(&answers)
	benchDecode(b, text, err, func() error {
		_, err := answerOf(SubmitMany, text)
		return err
	})
}

// benchBatch chooses the form of each payload, writes each item by itself and puts them together, as a client does whose callers come one by one.
func benchBatch[T any](items []T, addPayload func(*T)) ([]byte, error) {
	texts := make([][]byte, len(items))
	size := 0
	for i := range items {
		addPayload(&items[i])
		var err error
		if texts[i], err = Marshal(&items[i]); err != nil {
			return nil, err
		}
		size += len(texts[i]) + 1
	}
	body := append(make([]byte, 0, size+16), `{"items":[`...)
	for i, text := range texts {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, text...)
	}
	return append(body, "]}"...), nil
}

func benchEncode(b *testing.B, write func() ([]byte, error)) {
	b.ReportAllocs()
	for b.Loop() {
		text, err := write()
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(text)))
	}
}

func benchDecode(b *testing.B, text []byte, err error, read func() error) {
	if err != nil {
		b.Fatal(err)
	}
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			if err := read(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
