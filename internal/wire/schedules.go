package wire

import "net/http"

// scheduleCalls reserve the routes of schedules (U109): all answer 501 until they are implemented.
var scheduleCalls = []*Operation{
	reserved("list_schedules", http.MethodGet, "/v1/schedules"),
	reserved("create_schedule", http.MethodPost, "/v1/schedules"),
	reservedNamed("get_schedule", http.MethodGet, "/v1/schedules/{name}"),
	reservedNamed("put_schedule", http.MethodPut, "/v1/schedules/{name}"),
	reservedNamed("delete_schedule", http.MethodDelete, "/v1/schedules/{name}"),
	reservedNamed("pause_schedule", http.MethodPost, "/v1/schedules/{name}/pause"),
	reservedNamed("resume_schedule", http.MethodPost, "/v1/schedules/{name}/resume"),
	reservedNamed("run_schedule", http.MethodPost, "/v1/schedules/{name}/run"),
	reservedNamed("backfill_schedule", http.MethodPost, "/v1/schedules/{name}/backfill"),
	reservedNamed("list_schedule_runs", http.MethodGet, "/v1/schedules/{name}/history"),
}

// ByName names a schedule in the path.
type ByName struct {
	Name string `path:"name" doc:"Name of the schedule."`
}

func reserved(id, method, path string) *Operation {
	return row(Call[None, None]{reservedOperation(id, method, path)})
}

func reservedNamed(id, method, path string) *Operation {
	return row(Call[ByName, None]{reservedOperation(id, method, path)})
}

func reservedOperation(id, method, path string) *Operation {
	const why = "schedules are reserved"
	return &Operation{
		ID: id, Rule: "U109", Method: method, Path: path, Roles: Submit | Operate, NoGo: why, NoCommand: why,
		Summary: "Reserved for schedules", Status: []int{http.StatusNotImplemented}, Reserved: true,
	}
}
