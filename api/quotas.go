package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// QuotaSettings are all settings of a quota. The zero value limits nothing.
type QuotaSettings struct {
	// RateLimit is the number of starts per window, at most 1,000,000; 0: no limit. A retry counts as a start, a resume does not.
	RateLimit int `json:"rate_limit,omitempty" minimum:"0" maximum:"1000000" doc:"Starts per window; 0: no limit."`
	// Window is the period of the rate limit, a second to a day; 0: a minute.
	Window time.Duration `json:"window_ms,omitempty" minimum:"0" maximum:"86400000" doc:"Period of the rate limit, 1 second to a day; a minute if absent."`
	// ConcurrencyLimit is how many executions can run concurrently, at most 1,000,000; 0: no limit.
	ConcurrencyLimit int `json:"concurrency_limit,omitempty" minimum:"0" maximum:"1000000" doc:"Concurrent executions; 0: no limit."`
	// PerKey applies the limits to each key separately.
	PerKey bool `json:"per_key,omitempty" doc:"The limits apply to each key separately."`
}

// Quota is a quota with its settings and its use in the caller's namespaces.
type Quota struct {
	ID string `json:"quota_id" doc:"Id of the quota."`
	QuotaSettings
	Revision  int64      `json:"revision" doc:"Counts the changes of the settings."`
	CreatedAt time.Time  `json:"created_at,omitzero" doc:"When it was created."`
	UpdatedAt time.Time  `json:"updated_at,omitzero" doc:"When its settings changed."`
	Keys      []QuotaKey `json:"keys,omitempty" doc:"Use by key, of keys in use."` // by key: up to 1000, in lists 100
	MoreKeys  bool       `json:"more_keys,omitempty" doc:"More keys are in use than shown."`
}

// QuotaKey is the use of one key of a quota. A quota that is not per key has one entry without a name.
type QuotaKey struct {
	Key     string `json:"key,omitempty" doc:"The key; absent if the quota is not per key."`
	Slots   int    `json:"slots" doc:"Slots in use; for callers that do not see all namespaces, only those of their own executions."`
	Holders []ID   `json:"holders,omitempty" doc:"The first 20 executions that use them."`
	// Admissions is the number of starts in the window, NextFreeAt when the rate has capacity again, zero if it has. Both are
	// over all namespaces and shown only to callers that see all of them.
	Admissions int       `json:"admissions" doc:"Starts in the window; only for callers that see all namespaces."`
	NextFreeAt time.Time `json:"next_free_at,omitzero" doc:"When the rate has capacity again; only for callers that see all namespaces."`
	Blocked    int       `json:"blocked" doc:"Executions that wait for capacity."`
	AtLeast    bool      `json:"at_least,omitempty" doc:"A count stopped at 10,000."`
}

// QuotaUse attaches a quota to an execution.
type QuotaUse struct {
	Quota string `json:"quota" required:"true" maxLength:"128" doc:"Id of the quota."`
	// Key selects the limits to count against; required for a per-key quota, else not allowed.
	Key string `json:"key,omitempty" maxLength:"128" doc:"Key of a per-key quota."`
}

// MarshalJSON writes the quota as the HTTP API shows it.
func (q Quota) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&q) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (q *Quota) UnmarshalJSON(text []byte) error { return readAnswer(text, q) }

// MarshalJSON writes the settings as the HTTP API accepts them.
func (s QuotaSettings) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&s) }

// UnmarshalJSON reads settings as strictly as the HTTP API does.
func (s *QuotaSettings) UnmarshalJSON(text []byte) error { return readRequest(text, s) }
