package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// adminCalls are about the caller and the server (section 2.7).
var adminCalls = []*Operation{row(Whoami), row(GetInfo), row(GetSettings), row(RunDoctor), row(CheckIntegrity), row(AcknowledgeRollbacks), row(MakeBackup), row(DrainServer), row(Nudge)}

// The calls about the caller and the server.
var (
	Whoami = Call[None, api.Principal]{&Operation{
		ID: "whoami", Rule: "U111", Method: http.MethodGet, Path: "/v1/whoami", Roles: Any,
		Go: "Admin.Whoami", Command: "info", Summary: "Show the identity of the caller", Status: []int{http.StatusOK},
	}}
	GetInfo = Call[None, api.Info]{&Operation{
		ID: "get_info", Rule: "U112", Method: http.MethodGet, Path: "/v1/info", Roles: Any,
		Go: "Admin.Info", Command: "info", Summary: "Show version, store, features and limits", Status: []int{http.StatusOK},
	}}
	GetSettings = Call[None, api.Settings]{&Operation{
		ID: "get_settings", Rule: "U113", Method: http.MethodGet, Path: "/v1/admin/settings", Roles: Admin, Only: everywhere,
		Go: "Admin.Settings", Command: "config", Summary: "Show the effective settings and their sources", Status: []int{http.StatusOK},
	}}
	RunDoctor = Call[None, api.HealthReport]{&Operation{
		ID: "run_doctor", Rule: "U113", Method: http.MethodGet, Path: "/v1/admin/doctor", Roles: Admin, Only: everywhere,
		Go: "Admin.Doctor", Command: "doctor", Summary: "Check store and server", Status: []int{http.StatusOK},
	}}
	CheckIntegrity = Call[None, api.Integrity]{&Operation{
		ID: "check_integrity", Rule: "U113", Method: http.MethodGet, Path: "/v1/admin/integrity", Roles: Admin, Only: everywhere,
		Go: "Admin.Integrity", Command: "doctor --integrity", Summary: "Recompute counters and show differences", Status: []int{http.StatusOK},
	}}
	AcknowledgeRollbacks = Call[AcknowledgeRollbacksRequest, api.Rollbacks]{&Operation{
		ID: "acknowledge_rollbacks", Rule: "R5", Method: http.MethodPost, Path: "/v1/admin/rollbacks/acknowledge", Roles: Admin, Only: everywhere,
		Go: "Admin.AcknowledgeRollbacks", Command: "doctor --acknowledge-rollback", Summary: "Acknowledge that the database came back without some commits",
		Status: []int{http.StatusOK},
	}}
	MakeBackup = Call[None, Sink]{&Operation{
		ID: "make_backup", Rule: "U113", Method: http.MethodPost, Path: "/v1/admin/backup", Roles: Admin, Only: everywhere,
		Go: "Admin.Backup", Command: "backup", Summary: "Download a consistent copy of a SQLite store", Status: []int{http.StatusOK}, Raw: true,
	}}
	DrainServer = Call[None, ServerDrain]{&Operation{
		ID: "drain_server", Rule: "U113", Method: http.MethodPost, Path: "/v1/admin/drain", Roles: Admin, Only: everywhere,
		NoGo: "it is about a server process; for an embedded engine use Client.Close", NoCommand: "send SIGTERM, or flowfabric api",
		Summary: "Stop claiming in this process, and report it as not ready", Status: []int{http.StatusOK},
	}}
	Nudge = Call[NudgeRequest, None]{&Operation{
		ID: "nudge", Rule: "U118", Method: http.MethodPost, Path: "/v1/nudge", Roles: Submit | Work,
		Go: "Client.Nudge", NoCommand: "it follows a transactional submit, which only programs make", Summary: "Look for ready work now",
		Status: []int{http.StatusNoContent},
	}}
)

// AcknowledgeRollbacksRequest acknowledges every open loss of commits.
type AcknowledgeRollbacksRequest struct {
	Body struct {
		AdminFields
	}
}

// ServerDrain is the answer to a drain of the server.
type ServerDrain struct {
	Draining bool `json:"draining" doc:"Whether this process has stopped claiming."`
}

// NudgeRequest makes the engine look for ready work.
type NudgeRequest struct {
	Body struct {
		Lanes []string `json:"lanes,omitempty" doc:"Lanes to look in; all if absent."`
	}
}
