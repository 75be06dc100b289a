package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Actions of a bulk job.
const (
	BulkCancel      = "cancel"
	BulkReplay      = "replay"
	BulkPriority    = "priority"
	BulkHold        = "hold"
	BulkReleaseHold = "release_hold"
	BulkResume      = "resume"
	BulkSignal      = "signal"
	BulkTag         = "tag"
	BulkRetain      = "retain"
	BulkDelete      = "delete"
)

// BulkJob is a bulk operation with its progress, or the result of a dry run.
type BulkJob struct {
	ID            string         `json:"job_id,omitempty" doc:"Id of the job."` // "" of a dry run
	Action        string         `json:"action" doc:"The action."`
	State         string         `json:"state,omitempty" enum:"running,done,stopped" doc:"State of the job."`
	Total         int            `json:"total,omitempty" doc:"Matching executions at its start."`
	Done          int            `json:"done,omitempty" doc:"Executions that were changed."`
	Refused       map[string]int `json:"refused,omitempty" doc:"Refused executions, by code."`
	Failed        int            `json:"failed,omitempty" doc:"Executions that failed."`
	StartedAt     time.Time      `json:"started_at,omitzero" doc:"When it started."`
	EndedAt       time.Time      `json:"ended_at,omitzero" doc:"When it ended."`
	DryRun        bool           `json:"dry_run,omitempty" doc:"Nothing was changed."`
	RatePerSecond int            `json:"rate_per_second,omitempty" doc:"Maximum executions per second; absent: no limit."`
	// Matched and Sample, with up to 20 entries, are set in dry runs.
	Matched int  `json:"matched,omitempty" doc:"Dry run: number of matching executions."`
	Sample  []ID `json:"sample,omitempty" doc:"Dry run: some of these."`
}

// BulkItem is the outcome of a bulk job for one execution.
type BulkItem struct {
	ID  ID    `json:"execution_id" doc:"The execution."`
	OK  bool  `json:"ok" doc:"Whether it was changed."`
	Err error `json:"error,omitempty" doc:"Why it was refused."` // nil when it was done
}

// MarshalJSON writes the job as the HTTP API shows it.
func (j BulkJob) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&j) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (j *BulkJob) UnmarshalJSON(text []byte) error { return readAnswer(text, j) }

// bulkItem is an item in JSON.
type bulkItem struct {
	ID    ID       `json:"execution_id"`
	OK    bool     `json:"ok"`
	Error *Problem `json:"error,omitempty"`
}

// MarshalJSON writes the item as the HTTP API shows it.
func (i BulkItem) MarshalJSON() ([]byte, error) { return i.AppendJSON(nil) }

// AppendJSON appends what MarshalJSON writes.
func (i BulkItem) AppendJSON(text []byte) ([]byte, error) {
	return jsonx.Append(text, &bulkItem{i.ID, i.OK, ProblemOf(i.Err)})
}

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (i *BulkItem) UnmarshalJSON(text []byte) error { return readAnswer(text, i) }

// ReadJSON reads the next value of an answer.
func (i *BulkItem) ReadJSON(d *jsonx.Decoder) {
	var item bulkItem
	if d.Into(&item) {
		*i = BulkItem{item.ID, item.OK, item.Error.Refusal()}
	}
}
