package api

import (
	"encoding/json"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// AuditRow is one row of the audit log: a change made with the role operate or admin, or a refusal. Rows of a namespace form a
// chain: each has the hash of the one before.
type AuditRow struct {
	ID        string          `json:"audit_id" doc:"Id of the row."`
	At        time.Time       `json:"at,omitzero" doc:"When."`
	Namespace string          `json:"namespace,omitempty" doc:"Namespace whose chain it belongs to."` // "*": it concerns several, or what all share
	Principal string          `json:"principal" doc:"Who."`
	Action    string          `json:"action" doc:"What was done."`                               // the operation: cancel, put_lane, create_api_key, ...
	Entity    string          `json:"entity,omitempty" doc:"What sort of thing it was done to."` // execution, lane, quota, worker, bulk, api_key, signing_key, namespace
	EntityID  string          `json:"entity_id,omitempty" doc:"Which one."`
	Reason    string          `json:"reason,omitempty" doc:"Why."`
	RequestID string          `json:"request_id,omitempty" doc:"Request that did it."`
	Address   string          `json:"address,omitempty" doc:"Where it came from."`
	Before    json.RawMessage `json:"before,omitempty" doc:"Changed fields as they were."` // never a payload
	After     json.RawMessage `json:"after,omitempty" doc:"Changed fields as they are."`
	Outcome   string          `json:"outcome" doc:"Whether it was done."`                // "done", or the code of the refusal
	PrevHash  string          `json:"prev_hash" doc:"Hash of the row before."`           // hexadecimal
	Hash      string          `json:"hash" doc:"Hash over the row before and this one."` // SHA-256 over PrevHash and the row
}

// AuditCheck is the outcome of a recomputation of the audit log.
type AuditCheck struct {
	Namespace  string   `json:"namespace" doc:"Namespace whose chain it is; * of what belongs to none."`
	OK         bool     `json:"ok" doc:"Every row fits, and with a key the chain is the one that was written."`
	Keyed      bool     `json:"keyed" doc:"The chain is sealed under a key that the master key protects. If not, who can write the database can rewrite it, unseen."`
	FirstKeyed int64    `json:"first_keyed,omitempty" doc:"Number of the first row that was written under the key."` // 0: none was
	First      int64    `json:"first" doc:"Number of the oldest row that is kept."`
	Last       int64    `json:"last" doc:"Number of the newest row; 0 if there never was one."`
	Rows       int64    `json:"rows" doc:"Rows that are kept and fit."`
	Broken     int64    `json:"broken,omitempty" doc:"Number of the first row that does not fit, from the beginning of the chain; absent if the fault is not that of one row."`
	Problem    string   `json:"problem,omitempty" doc:"What is wrong."`
	Removed    []string `json:"removed,omitempty" doc:"Namespaces whose chains were removed whole; with shared only."`
	Hash       string   `json:"hash,omitempty" doc:"Hash of the newest row: kept elsewhere it proves later that the chain was not set back."`
}

// MarshalJSON writes the row as the HTTP API shows it.
func (r AuditRow) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&r) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *AuditRow) UnmarshalJSON(text []byte) error { return readAnswer(text, r) }
