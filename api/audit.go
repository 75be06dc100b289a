package api

import (
	"encoding/json"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// AuditRow is one row of the audit log: a change made with the role operate or admin, or a refusal. The rows of a namespace form
// a chain: each contains the hash of the previous row.
type AuditRow struct {
	ID        string          `json:"audit_id" doc:"Id of the row."`
	At        time.Time       `json:"at,omitzero" doc:"When."`
	Namespace string          `json:"namespace,omitempty" doc:"Namespace whose chain it is in."` // "*": several namespaces, or something shared
	Principal string          `json:"principal" doc:"Who."`
	Action    string          `json:"action" doc:"What was done."`                        // the operation: cancel, put_lane, create_api_key, ...
	Entity    string          `json:"entity,omitempty" doc:"Type of the changed entity."` // execution, lane, quota, worker, bulk, api_key, signing_key, namespace
	EntityID  string          `json:"entity_id,omitempty" doc:"Id of the changed entity."`
	Reason    string          `json:"reason,omitempty" doc:"Why."`
	RequestID string          `json:"request_id,omitempty" doc:"Request that made the change."`
	Address   string          `json:"address,omitempty" doc:"Address of the caller."`
	Before    json.RawMessage `json:"before,omitempty" doc:"Changed fields before."` // never a payload
	After     json.RawMessage `json:"after,omitempty" doc:"Changed fields after."`
	Outcome   string          `json:"outcome" doc:"done, or the code of the refusal."`            // "done", or the code of the refusal
	PrevHash  string          `json:"prev_hash" doc:"Hash of the previous row."`                  // hexadecimal
	Hash      string          `json:"hash" doc:"Hash over the previous row's hash and this row."` // SHA-256 over PrevHash and the row
}

// AuditCheck is the result of a verification of the audit log.
type AuditCheck struct {
	Namespace  string   `json:"namespace" doc:"Namespace of the chain; * for rows without a namespace."`
	OK         bool     `json:"ok" doc:"All rows are consistent, and with a key the chain is the one that was written."`
	Keyed      bool     `json:"keyed" doc:"The chain is sealed with a key that the master key protects. If not, anyone who can write the database can rewrite it unnoticed."`
	FirstKeyed int64    `json:"first_keyed,omitempty" doc:"Number of the first row written with the key."` // 0: none was
	First      int64    `json:"first" doc:"Number of the oldest stored row."`
	Last       int64    `json:"last" doc:"Number of the newest row; 0 if there never was one."`
	Rows       int64    `json:"rows" doc:"Stored rows that are consistent."`
	Broken     int64    `json:"broken,omitempty" doc:"Number of the first inconsistent row, from the beginning of the chain; absent if the fault is not in one row."`
	Problem    string   `json:"problem,omitempty" doc:"What is wrong."`
	Removed    []string `json:"removed,omitempty" doc:"Namespaces whose chains were removed completely; only with shared."`
	Hash       string   `json:"hash,omitempty" doc:"Hash of the newest row: stored elsewhere, it can later prove that the chain was not set back."`
}

// MarshalJSON writes the row as the HTTP API shows it.
func (r AuditRow) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&r) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (r *AuditRow) UnmarshalJSON(text []byte) error { return readAnswer(text, r) }
