package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Principal is who a client acts for.
type Principal struct {
	Principal  string   `json:"principal" doc:"Name of the caller."`
	KeyID      string   `json:"key_id,omitempty" doc:"Its API key."`
	Namespaces []string `json:"namespaces" doc:"Where it may act; * is everywhere."`
	Roles      []string `json:"roles" doc:"What it may do."`
	Open       bool     `json:"open" doc:"The server asks nobody for credentials."`
}

// Info is what a client runs on.
type Info struct {
	Version    string           `json:"version" doc:"Version of the server."` // in this process: of this module
	Commit     string           `json:"commit,omitempty" doc:"Commit that it was built from."`
	API        string           `json:"api" doc:"Version of this API."`
	Store      StoreInfo        `json:"store" doc:"The store."`
	ServerTime time.Time        `json:"server_time,omitzero" doc:"The store's clock."`
	ClockSkew  time.Duration    `json:"clock_skew_ms" doc:"How far the host's clock is ahead of the store's."`
	Features   map[string]bool  `json:"features" doc:"What this server can do; the routes of a false one answer 501."`
	Limits     map[string]int64 `json:"limits" doc:"Its limits."`
}

// StoreInfo is what a store is.
type StoreInfo struct {
	Kind    string `json:"kind" doc:"sqlite or postgres."`
	Version string `json:"version" doc:"Version of the database."`
	Schema  int    `json:"schema" doc:"Version of our tables."`

	InstallationID string `json:"installation_id,omitempty" doc:"Names the database; transactional submits look for it."`
	LogID          string `json:"log_id,omitempty" doc:"Names the event log; another after a copy was restored or commits were lost."`

	State string `json:"state,omitempty" doc:"ok, store_full (nothing can be written) or corruption (parts of it cannot be read), as far as this server has met it."`
}

// Settings are the settings in force.
type Settings struct {
	Settings []Setting `json:"settings" doc:"By name."`
}

// Setting is a setting in force.
type Setting struct {
	Name string `json:"name" doc:"Its name, as in FF_NAME."` // of its environment variable: FF_MAX_PAYLOAD
	// Value is a string, or what else a server shows; nil when it is not set, "set" of a secret.
	Value any `json:"value,omitempty" doc:"Its value; of a secret, whether it is set."`
	// Source is "program" for what a program gave to Open.
	Source string `json:"source" enum:"default,file,environment,flag,program" doc:"Where it came from."`
}

// MarshalJSON writes the answer as the HTTP API shows it.
func (i Info) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&i) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (i *Info) UnmarshalJSON(text []byte) error { return readAnswer(text, i) }
