package wire

import (
	"encoding/json"
	"net/http"
)

// adminCalls are about the caller and the server (section 2.7).
var adminCalls = []*Operation{row(Whoami), row(GetInfo), row(GetSettings), row(RunDoctor), row(CheckIntegrity), row(AcknowledgeRollbacks), row(MakeBackup), row(DrainServer), row(Nudge)}

// The calls about the caller and the server.
var (
	Whoami = Call[None, Principal]{&Operation{
		ID: "whoami", Rule: "U111", Method: http.MethodGet, Path: "/v1/whoami", Roles: Any,
		Go: "Admin.Whoami", Command: "info", Summary: "Show who the caller is", Status: []int{http.StatusOK},
	}}
	GetInfo = Call[None, Info]{&Operation{
		ID: "get_info", Rule: "U112", Method: http.MethodGet, Path: "/v1/info", Roles: Any,
		Go: "Admin.Info", Command: "info", Summary: "Show version, store, features and limits", Status: []int{http.StatusOK},
	}}
	GetSettings = Call[None, Settings]{&Operation{
		ID: "get_settings", Rule: "U113", Method: http.MethodGet, Path: "/v1/admin/settings", Roles: Admin, Only: everywhere,
		Go: "Admin.Settings", Command: "config", Summary: "Show the effective settings and where they came from", Status: []int{http.StatusOK},
	}}
	RunDoctor = Call[None, Checkup]{&Operation{
		ID: "run_doctor", Rule: "U113", Method: http.MethodGet, Path: "/v1/admin/doctor", Roles: Admin, Only: everywhere,
		Go: "Admin.Doctor", Command: "doctor", Summary: "Check store and server", Status: []int{http.StatusOK},
	}}
	CheckIntegrity = Call[None, Integrity]{&Operation{
		ID: "check_integrity", Rule: "U113", Method: http.MethodGet, Path: "/v1/admin/integrity", Roles: Admin, Only: everywhere,
		Go: "Admin.Integrity", Command: "doctor --integrity", Summary: "Recount what is counted and show differences", Status: []int{http.StatusOK},
	}}
	AcknowledgeRollbacks = Call[AcknowledgeRollbacksRequest, Rollbacks]{&Operation{
		ID: "acknowledge_rollbacks", Rule: "R5", Method: http.MethodPost, Path: "/v1/admin/rollbacks/acknowledge", Roles: Admin, Only: everywhere,
		Go: "Admin.AcknowledgeRollbacks", Command: "doctor --acknowledge-rollback", Summary: "Acknowledge that the database came back without commits",
		Status: []int{http.StatusOK},
	}}
	MakeBackup = Call[None, Raw]{&Operation{
		ID: "make_backup", Rule: "U113", Method: http.MethodPost, Path: "/v1/admin/backup", Roles: Admin, Only: everywhere,
		Go: "Admin.Backup", Command: "backup", Summary: "Deliver a consistent copy of a SQLite store", Status: []int{http.StatusOK}, Raw: true,
	}}
	DrainServer = Call[None, ServerDrain]{&Operation{
		ID: "drain_server", Rule: "U113", Method: http.MethodPost, Path: "/v1/admin/drain", Roles: Admin, Only: everywhere,
		NoGo: "it concerns a server process; Client.Close is that of an embedded engine", NoCommand: "send SIGTERM, or flowfabric api",
		Summary: "Stop claiming in this process and be not ready", Status: []int{http.StatusOK},
	}}
	Nudge = Call[NudgeRequest, None]{&Operation{
		ID: "nudge", Rule: "U118", Method: http.MethodPost, Path: "/v1/nudge", Roles: Submit | Work,
		Go: "Client.Nudge", NoCommand: "it follows a transactional submit, which only a program makes", Summary: "Look for ready work now",
		Status: []int{http.StatusNoContent},
	}}
)

// Principal is who the caller is (U111).
type Principal struct {
	Principal  string   `json:"principal" doc:"Name of the caller."`
	KeyID      string   `json:"key_id,omitempty" doc:"Its API key."`
	Namespaces []string `json:"namespaces" doc:"Where it may act; * is everywhere."`
	Roles      []string `json:"roles" doc:"What it may do."`
	Open       bool     `json:"open" doc:"The server asks nobody for credentials."`
}

// Info is what the server is (U112).
type Info struct {
	Version     string           `json:"version" doc:"Version of the server."`
	Commit      string           `json:"commit,omitempty" doc:"Commit that it was built from."`
	API         string           `json:"api" doc:"Version of this API."`
	Store       StoreInfo        `json:"store" doc:"The store."`
	ServerTime  Time             `json:"server_time,omitzero" doc:"The store's clock."`
	ClockSkewMS int64            `json:"clock_skew_ms" doc:"How far the host's clock is ahead of the store's."`
	Features    map[string]bool  `json:"features" doc:"What this server can do; the routes of a false one answer 501."`
	Limits      map[string]int64 `json:"limits" doc:"Its limits."`
}

// StoreInfo is what the store is.
type StoreInfo struct {
	Kind    string `json:"kind" doc:"sqlite or postgres."`
	Version string `json:"version" doc:"Version of the database."`
	Schema  int    `json:"schema" doc:"Version of our tables."`

	InstallationID string `json:"installation_id,omitempty" doc:"Names the database; transactional submits look for it."`
	LogID          string `json:"log_id,omitempty" doc:"Names the event log; another after a copy was restored or commits were lost."`

	State string `json:"state,omitempty" doc:"ok, store_full (nothing can be written) or corruption (parts of it cannot be read), as far as this server has met it."`
}

// Settings are the effective settings (U113).
type Settings struct {
	Settings []Setting `json:"settings" doc:"By name."`
}

// Setting is one setting.
type Setting struct {
	Name   string          `json:"name" doc:"Its name, as in FF_NAME."`
	Value  json.RawMessage `json:"value,omitempty" doc:"Its value; of a secret, whether it is set."`
	Source string          `json:"source" enum:"default,file,environment,flag,program" doc:"Where it came from."`
}

// Checkup is what doctor found (U165).
type Checkup struct {
	OK     bool    `json:"ok" doc:"Nothing failed."`
	Checks []Check `json:"checks" doc:"One entry a check."`
}

// Check is one check.
type Check struct {
	Name   string `json:"name" doc:"What was checked."`
	State  string `json:"state" enum:"ok,warn,fail" doc:"How it is."`
	Detail string `json:"detail" doc:"What that means."`
	Hint   string `json:"hint,omitempty" doc:"What to do."`
}

// AcknowledgeRollbacksRequest acknowledges every loss of commits that is open.
type AcknowledgeRollbacksRequest struct {
	Body struct {
		AdminFields
	}
}

// Rollbacks are the losses that were acknowledged.
type Rollbacks struct {
	Rollbacks []Rollback `json:"rollbacks" doc:"The oldest first; empty when none was open."`
}

// Rollback is a loss of acknowledged commits: the database came back without them.
type Rollback struct {
	From        int64  `json:"from_position" doc:"The newest position of the event log that was known before."`
	To          int64  `json:"to_position" doc:"Where the event log ended when the loss was noticed."`
	Incarnation string `json:"incarnation" doc:"Names the database as it came back."`
	At          Time   `json:"at,omitzero" doc:"When the loss was noticed."`
}

// Integrity is the outcome of a recount (U113).
type Integrity struct {
	OK          bool         `json:"ok" doc:"There is no difference."`
	Checked     []string     `json:"checked" doc:"What was recounted."`
	Differences []Difference `json:"differences,omitempty" doc:"What does not agree."`
}

// Difference is a count that does not agree.
type Difference struct {
	What   string `json:"what" doc:"What was recounted."`
	Key    string `json:"key" doc:"Of which thing."`
	Stored int64  `json:"stored" doc:"What is stored."`
	Found  int64  `json:"found" doc:"What the recount found."`
}

// ServerDrain is the answer to a drain of the server.
type ServerDrain struct {
	Draining bool `json:"draining" doc:"This process claims nothing new."`
}

// NudgeRequest makes the engine look for work.
type NudgeRequest struct {
	Body struct {
		Lanes []string `json:"lanes,omitempty" doc:"Lanes to look in; all if absent."`
	}
}
