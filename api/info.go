package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Principal is the identity of a client.
type Principal struct {
	Principal  string   `json:"principal" doc:"Name of the caller."`
	KeyID      string   `json:"key_id,omitempty" doc:"Its API key."`
	Namespaces []string `json:"namespaces" doc:"Namespaces it is valid for; * means all."`
	Roles      []string `json:"roles" doc:"Its roles."`
	Open       bool     `json:"open" doc:"The server requires no credentials."`
}

// Info describes what a client is connected to.
type Info struct {
	Version    string           `json:"version" doc:"Version of the server."` // in this process: of this module
	Commit     string           `json:"commit,omitempty" doc:"Commit that it was built from."`
	API        string           `json:"api" doc:"Version of this API."`
	Store      StoreInfo        `json:"store" doc:"The store."`
	ServerTime time.Time        `json:"server_time,omitzero" doc:"The store's clock."`
	ClockSkew  time.Duration    `json:"clock_skew_ms" doc:"How far the host's clock is ahead of the store's."`
	Features   map[string]bool  `json:"features" doc:"Features of the server; routes of a false one answer 501."`
	Limits     map[string]int64 `json:"limits" doc:"Its limits."`
}

// StoreInfo describes a store.
type StoreInfo struct {
	Kind    string `json:"kind" doc:"sqlite or postgres."`
	Version string `json:"version" doc:"Version of the database."`
	Schema  int    `json:"schema" doc:"Version of the schema."`

	SchemaName string `json:"schema_name,omitempty" doc:"Schema of the Postgres database that has the tables."`

	InstallationID string `json:"installation_id,omitempty" doc:"Identifies the database; transactional submits check it."`
	LogID          string `json:"log_id,omitempty" doc:"Identifies the event log; it changes if a copy is restored or commits are lost."`

	State string `json:"state,omitempty" doc:"ok, store_full (nothing can be written) or corruption (parts cannot be read), as observed by this server."`
}

// Settings are the effective settings.
type Settings struct {
	Settings []Setting `json:"settings" doc:"By name."`
}

// Setting is an effective setting.
type Setting struct {
	Name string `json:"name" doc:"Name of its environment variable."` // such as FF_MAX_PAYLOAD
	// Value is nil if not set, and "set" for a secret.
	Value any `json:"value,omitempty" doc:"Its value; for a secret, whether it is set."`
	// Source is "program" for values passed to Open.
	Source string `json:"source" enum:"default,file,environment,flag,program" doc:"Source of the value."`
}

// MarshalJSON writes the answer as the HTTP API shows it.
func (i Info) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&i) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (i *Info) UnmarshalJSON(text []byte) error { return readAnswer(text, i) }
