//go:build goexperiment.jsonv2 && unix

package wire

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"net/http"
	"syscall"
	"testing"

	"github.com/flowfabric/flowfabric/api"
)

// BenchmarkBulkSubmit reads the body of a bulk submit with our reader and with encoding/json/v2 into plain structs of the same fields, which
// refuses unknown and repeated members too. Ours also checks types against the document, chooses the form of payloads and reads times and spans.
// Run by hand:
//
//	GOEXPERIMENT=jsonv2 go test ./internal/wire -run - -bench BulkSubmit -benchmem
func BenchmarkBulkSubmit(b *testing.B) {
	for name, more := range map[string]func(*api.Submission){
		"plain":          func(*api.Submission) {},
		"with a policy":  func(s *api.Submission) { s.Policy = benchPolicy() },
		"4 KiB of input": func(s *api.Submission) { s.Input = api.Bytes(benchInput(4096), ContentJSON) },
		"a policy in all": func(s *api.Submission) {
			s.Policy, s.Requires, s.Quotas = benchPolicy(), []string{"gpu"}, []api.QuotaUse{{Quota: "tenant", Key: "acme"}}
		},
	} {
		items := benchSubmissions()
		input := api.Bytes([]byte(`{"to":"someone@example.com","n":17}`), ContentJSON)
		text, err := benchBatch(items, func(item *api.Submission) {
			item.Input = input
			more(item)
		})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name+"/ours", func(b *testing.B) {
			benchRead(b, text, func() error {
				_, err := requestOf(SubmitExecutions, Incoming{Header: http.Header{"Content-Type": {ContentJSON}}, Body: text})
				return err
			})
		})
		b.Run(name+"/v2", func(b *testing.B) {
			benchRead(b, text, func() error {
				var body struct {
					Items []submissionV2 `json:"items"`
				}
				return json.Unmarshal(text, &body, json.RejectUnknownMembers(true))
			})
		})
	}
}

func benchPolicy() *api.Policy {
	return &api.Policy{Retry: &api.RetryPolicy{MaxRetries: 5, Categories: []string{"timeout", "transient"}}}
}

func benchInput(size int) []byte {
	text := []byte(`{"lines":["`)
	for len(text) < size {
		text = append(text, "0123456789abcdef "...)
	}
	return append(text, `"]}`...)
}

func benchRead(b *testing.B, text []byte, read func() error) {
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	before := processorTime(b)
	for b.Loop() {
		if err := read(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
}

// processorTime returns the processor time of this process in nanoseconds: on a busy machine it says more than the time that passes.
func processorTime(b *testing.B) int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}

// submissionV2 has the fields of a submission. What we pass on as text is text here, too.
type submissionV2 struct {
	Kind        string            `json:"kind"`
	Input       jsontext.Value    `json:"input"`
	InputText   string            `json:"input_text"`
	InputBase64 []byte            `json:"input_base64"`
	ContentType string            `json:"input_content_type"`
	ID          string            `json:"execution_id"`
	Lane        string            `json:"lane"`
	Priority    int               `json:"priority"`
	Delay       int64             `json:"delay_ms"`
	StartAt     int64             `json:"delay_until"`
	Deadline    int64             `json:"deadline_at"`
	Key         string            `json:"idempotency_key"`
	Tags        map[string]string `json:"tags"`
	Policy      jsontext.Value    `json:"policy"`
	Requires    []string          `json:"requires"`
	FairnessKey string            `json:"fairness_key"`
	Quotas      []quotaV2         `json:"quotas"`
	BudgetIDs   []string          `json:"budget_ids"`
	Estimate    map[string]int64  `json:"estimate"`
	Budgets     []jsontext.Value  `json:"budgets"`
}

type quotaV2 struct {
	Quota string `json:"quota"`
	Key   string `json:"key"`
}
