package story

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/examples/stage"
	"github.com/flowfabric/flowfabric/flowfabrichttp"
)

// Bake is the work of the bakery.
const Bake flowfabric.Kind[string, string] = "bake"

// mount is where the operators of the bakery find FlowFabric.
const mount = "/flowfabric"

// bakery is the program that was there before: a few routes and a login.
type bakery struct {
	lane   string
	client *flowfabric.Client
}

// staff are the users of the bakery with their passwords, as its own login knows them.
var staff = map[string]string{"ann": "ann's password", "bob": "bob's password"}

// login is the bakery's own.
func login(r *http.Request) (user string, valid bool) {
	user, password, given := r.BasicAuth()
	return user, given && staff[user] == password
}

// principal says what the users of the bakery may do in FlowFabric: Ann operates, everybody else of the staff looks.
func principal(r *http.Request) (*flowfabrichttp.Principal, error) {
	user, valid := login(r)
	switch {
	case !valid:
		return nil, nil
	case user == "ann":
		return &flowfabrichttp.Principal{Name: user, Namespaces: []string{"default"}, Roles: []string{"operate"}}, nil
	default:
		return &flowfabrichttp.Principal{Name: user, Namespaces: []string{"default"}, Roles: []string{"read"}}, nil
	}
}

// routes are the program's own routes, and FlowFabric below a prefix.
func (b *bakery) routes(s *stage.Stage) (http.Handler, error) {
	fabric, err := flowfabrichttp.New(b.client, flowfabrichttp.Config{Authenticate: principal, Logger: s.Log})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /cakes/{name}", b.orderCake)
	mux.HandleFunc("GET /cakes/{name}", b.showCake)
	mux.Handle(mount+"/", http.StripPrefix(mount, fabric))
	return mux, nil
}

// orderCake hands in the work and answers at once.
func (b *bakery) orderCake(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if _, err := Bake.Submit(r.Context(), b.client, name, flowfabric.SubmitOptions{Lane: b.lane, IdempotencyKey: b.key(name)}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// showCake shows the work of a cake by the name that the bakery knows it by.
func (b *bakery) showCake(w http.ResponseWriter, r *http.Request) {
	filter := ops.Filter{IdempotencyKey: []string{b.key(r.PathValue("name"))}}
	found, err := b.client.Executions().Page(r.Context(), ops.ListOptions{Filter: filter})
	if err != nil || len(found.Items) == 0 {
		http.NotFound(w, r)
		return
	}
	x, err := b.client.Wait(r.Context(), found.Items[0].ID)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(cake{x.ID, x.Status, strings.TrimSpace(string(x.Result.Data))}) // a client that went away needs none
}

// cake is what the bakery shows.
type cake struct {
	Execution flowfabric.ID
	Status    flowfabric.Status
	Result    string
}

// key names the work of a cake.
func (b *bakery) key(name string) string { return b.lane + "/" + name }

// worker bakes in the same process.
func (b *bakery) worker(s *stage.Stage) *flowfabric.Worker {
	w := flowfabric.NewWorker(b.client, flowfabric.WorkerConfig{Lanes: []string{b.lane}, Logger: s.Log})
	flowfabric.Handle(w, Bake, func(_ context.Context, _ *flowfabric.Task, name string) (string, error) {
		return name + " is ready", nil
	})
	return w
}
