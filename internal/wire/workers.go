package wire

import (
	"net/http"

	"github.com/flowfabric/flowfabric/api"
)

// workerCalls are the fleet of section 2.7.
var workerCalls = []*Operation{row(ListWorkers), row(GetWorker), row(ListWorkerLeases), row(DrainWorker), row(UndrainWorker), row(MarkWorkerDead), row(DrainWorkers), row(UndrainWorkers)}

// sharedOrOwn is shared, and limits work to the key's own instance.
var sharedOrOwn = map[Role]Condition{Operate: SharedThings, Admin: SharedThings, Work: OwnInstance}

// The calls on workers.
var (
	ListWorkers = Call[ListWorkersRequest, api.Page[*api.Worker]]{&Operation{
		ID: "list_workers", Rule: "U102", Method: http.MethodGet, Path: "/v1/workers", Roles: Read,
		Go: "Workers.List", Command: "workers list", Summary: "List worker instances", Status: []int{http.StatusOK},
	}}
	GetWorker = Call[ByInstance, api.Worker]{&Operation{
		ID: "get_worker", Rule: "U102", Method: http.MethodGet, Path: "/v1/workers/{instance}", Roles: Read,
		Go: "Workers.Get", Command: "workers get", Summary: "Show a worker instance", Status: []int{http.StatusOK},
	}}
	ListWorkerLeases = Call[ListWorkerLeasesRequest, Page[*api.Execution]]{&Operation{
		ID: "list_worker_leases", Rule: "U102", Method: http.MethodGet, Path: "/v1/workers/{instance}/leases", Roles: Read,
		Go: "Workers.Leases", Command: "workers leases", Summary: "List the executions that an instance holds leases on", Status: []int{http.StatusOK},
	}}
	DrainWorker = Call[DrainWorkerRequest, api.Worker]{&Operation{
		ID: "drain_worker", Rule: "U103", Method: http.MethodPost, Path: "/v1/workers/{instance}/drain", Roles: Operate | Work, Only: sharedOrOwn,
		Audit: "drain", Go: "Workers.Drain", Command: "workers drain", Summary: "Stop an instance from claiming new work", Status: []int{http.StatusOK},
	}}
	UndrainWorker = Call[ByInstance, api.Worker]{&Operation{
		ID: "undrain_worker", Rule: "U103", Method: http.MethodPost, Path: "/v1/workers/{instance}/undrain", Roles: Operate | Work, Only: sharedOrOwn,
		Audit: "undrain", Go: "Workers.Undrain", Command: "workers undrain", Summary: "End a drain", Status: []int{http.StatusOK},
	}}
	MarkWorkerDead = Call[MarkDeadRequest, api.Worker]{&Operation{
		ID: "mark_worker_dead", Rule: "U103", Method: http.MethodPost, Path: "/v1/workers/{instance}/dead", Roles: Operate | Work, Only: sharedOrOwn,
		Audit: "mark_dead", Go: "Workers.MarkDead", Command: "workers dead", Summary: "Declare an instance dead", Status: []int{http.StatusOK},
	}}
	DrainWorkers = Call[ByWorker, api.Drained]{&Operation{
		ID: "drain_workers", Rule: "U103", Method: http.MethodPost, Path: "/v1/workers/drain", Roles: Operate | Work, Only: sharedOrOwn,
		Audit: "drain", Go: "Workers.Drain", Command: "workers drain --worker", Summary: "Stop all instances of a worker from claiming new work",
		Status: []int{http.StatusOK},
	}}
	UndrainWorkers = Call[ByWorker, api.Drained]{&Operation{
		ID: "undrain_workers", Rule: "U103", Method: http.MethodPost, Path: "/v1/workers/undrain", Roles: Operate | Work, Only: sharedOrOwn,
		Audit: "undrain", Go: "Workers.Undrain", Command: "workers undrain --worker", Summary: "End the drain of all instances of a worker",
		Status: []int{http.StatusOK},
	}}
)

// ListWorkersRequest lists instances.
type ListWorkersRequest struct {
	PageFields
	Lane       string `query:"lane" doc:"Instances that claim from this lane."`
	Capability string `query:"capability" doc:"Instances with this capability."`
	State      string `query:"state" enum:"live,draining,dead,all" doc:"Default live."`
}

// ByInstance identifies an instance in the path.
type ByInstance struct {
	Instance string `path:"instance" argument:"worker_instance_id" doc:"The instance."`
}

// DrainWorkerRequest drains an instance.
type DrainWorkerRequest struct {
	ByInstance
	Leaving bool `query:"leaving" doc:"The instance itself is about to stop: the drain ends when it registers again. An instance of another key is drained as without this."`
}

// ListWorkerLeasesRequest lists the executions of an instance.
type ListWorkerLeasesRequest struct {
	ByInstance
	PageFields
}

// MarkDeadRequest declares an instance dead.
type MarkDeadRequest struct {
	ByInstance
	Leaving bool `query:"leaving" doc:"The instance itself has stopped: it signs off, and leases that it has left expire."`
	Body    struct {
		Reason     string `json:"reason" required:"true" maxLength:"1024" doc:"Reason."`
		TakeLeases *bool  `json:"take_leases,omitempty" doc:"Let its leases lapse at once; default true."`
	}
}

// ByWorker identifies all instances of a worker.
type ByWorker struct {
	WorkerID string `query:"worker_id" required:"true" doc:"Logical name of the worker."`
}
