package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// QuotaSettings are all settings of a quota. The zero value limits nothing.
type QuotaSettings struct {
	// RateLimit is how many starts a window may have, at most 1 000 000; 0: no limit. A retry is a start, continuing after a wait is none.
	RateLimit int `json:"rate_limit,omitempty" minimum:"0" maximum:"1000000" doc:"Starts in a window; 0: no limit."`
	// Window is how long a start counts, a second to a day; 0: a minute.
	Window time.Duration `json:"window_ms,omitempty" minimum:"0" maximum:"86400000" doc:"How long a start counts, 1 second to a day; a minute if absent."`
	// ConcurrencyLimit is how many executions may run at a time, at most 1 000 000; 0: no limit.
	ConcurrencyLimit int `json:"concurrency_limit,omitempty" minimum:"0" maximum:"1000000" doc:"Executions at a time; 0: no limit."`
	// PerKey gives each key that executions name limits of its own.
	PerKey bool `json:"per_key,omitempty" doc:"Each key that executions give has limits of its own."`
}

// Quota is a quota, its settings, and its use as far as the caller's namespaces are concerned.
type Quota struct {
	ID string `json:"quota_id" doc:"Id of the quota."`
	QuotaSettings
	Revision  int64      `json:"revision" doc:"Counts the changes of the settings."`
	CreatedAt time.Time  `json:"created_at,omitzero" doc:"When it was created."`
	UpdatedAt time.Time  `json:"updated_at,omitzero" doc:"When its settings changed."`
	Keys      []QuotaKey `json:"keys,omitempty" doc:"Its use by key, of those in use."` // by key: up to 1000, in lists 100
	MoreKeys  bool       `json:"more_keys,omitempty" doc:"More keys are in use than are shown."`
}

// QuotaKey is the use of one key of a quota. A quota that does not count by key has one, without a name.
type QuotaKey struct {
	Key     string `json:"key,omitempty" doc:"The key; absent where the quota has none."`
	Slots   int    `json:"slots" doc:"Slots held; for callers who do not see all namespaces those of their own executions."`
	Holders []ID   `json:"holders,omitempty" doc:"The first 20 executions that hold them."`
	// Admissions is how many starts count now, NextFreeAt when the rate has room again, zero while it has. Both are over all namespaces and
	// shown only to a caller who sees all of them.
	Admissions int       `json:"admissions" doc:"Starts that count in the window now; only for callers who see all namespaces."`
	NextFreeAt time.Time `json:"next_free_at,omitzero" doc:"When the rate has room again; only for callers who see all namespaces."`
	Blocked    int       `json:"blocked" doc:"Executions that wait for room."`
	AtLeast    bool      `json:"at_least,omitempty" doc:"A count stopped at 10 000."`
}

// QuotaUse attaches a quota to an execution.
type QuotaUse struct {
	Quota string `json:"quota" required:"true" maxLength:"128" doc:"Id of the quota."`
	// Key says whose share it is; required if the quota counts by key, else not allowed.
	Key string `json:"key,omitempty" maxLength:"128" doc:"Whose share it is; of a quota that counts by key."`
}

// MarshalJSON writes the quota as the HTTP API shows it.
func (q Quota) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&q) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (q *Quota) UnmarshalJSON(text []byte) error { return readAnswer(text, q) }

// MarshalJSON writes the settings as the HTTP API takes them.
func (s QuotaSettings) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&s) }

// UnmarshalJSON reads settings as strictly as the HTTP API does.
func (s *QuotaSettings) UnmarshalJSON(text []byte) error { return readRequest(text, s) }
