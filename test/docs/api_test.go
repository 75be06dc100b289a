package docs

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric/internal/wire"
)

func TestU263_every_route_and_go_name_that_a_page_names_exists(t *testing.T) {
	t.Parallel()
	holds(t, checkRoutes)
	holds(t, checkGoNames)
}

func TestU263_routes_that_do_not_exist_are_found(t *testing.T) {
	t.Parallel()
	planted{
		{"`GET /v1/executions/{id}`, `/v1/executions?status=failed&limit=5`, `/healthz`, `/v1`, `POST /v1/executions/$ID/complete`", ""},
		{"```sh\n$ curl -X POST 127.0.0.1:7433/v1/lanes/mail/pause\n```\n", ""},
		{"`/v1/execution/{id}`", "/v1/execution/{id}"},
		{"`PUT /v1/executions/{id}`", "PUT /v1/executions/{id}"},
		{"`/v1/executions/{id}/finish`", "finish"},
		{"```sh\n$ curl http://127.0.0.1:7433/v1/infos\n```\n", "/v1/infos"},
		{"```text\ncurl http://127.0.0.1:7433/v1/infos\n```\n", "/v1/infos"},
	}.finds(t, checkRoutes)
}

func TestU263_go_names_that_do_not_exist_are_found(t *testing.T) {
	t.Parallel()
	planted{
		{"`embedded.Open`, `flowfabric.Error.Code`, `Client.Submit`, `Task.EffectKey`, `Policy.Retry`, `flowfabrictest.New`, `Operate().Replay`", ""},
		{"`flowfabric.Opne`", "flowfabric.Opne"},
		{"`Client.Sumbit`", "Client.Sumbit"},
		{"`WorkerConfig.Lane`", "WorkerConfig.Lane"},
		{"`flowfabrictest.Nwe`", "flowfabrictest.Nwe"},
	}.finds(t, checkGoNames)
}

// TestU263_every_address_that_the_pages_name_is_answered asks a server for every route of the pages that needs no id.
func TestU263_every_address_that_the_pages_name_is_answered(t *testing.T) {
	t.Parallel()
	server := startDev(t, build(t), t.TempDir())
	asked := 0
	for _, path := range readable() {
		asked++
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s answers %d: %s", path, answer.StatusCode, body)
		}
	}
	if asked < 5 {
		t.Errorf("only %d addresses were asked for", asked)
	}
}

var (
	route = regexp.MustCompile("(?:\\b(GET|HEAD|POST|PUT|PATCH|DELETE) |^|[\\s`\"'(]|127\\.0\\.0\\.1:\\d+)" +
		"(/(?:v1(?:/[^\\s`\"'|),;]*)?|healthz|readyz|metrics|openapi\\.json|docs|problems/[^\\s`\"'|),;]+))(?:\\?[^\\s`\"']*)?(?:[\\s`\"'),;:.]|$)")
	variously = regexp.MustCompile(`[{$<]|…|^[0-9a-f]{8}-`)
)

// named is a route as a page names it.
type named struct{ method, path string }

func routesOf(p page) []named {
	var all []named
	for _, m := range route.FindAllStringSubmatch(p.text, -1) {
		path, _, _ := strings.Cut(m[2], "?")
		all = append(all, named{m[1], strings.TrimSuffix(path, ".")})
	}
	return all
}

// fits reports whether a named path is one of an operation. Either side may leave a part open.
func fits(path, pattern string) bool {
	parts, want := strings.Split(path, "/"), strings.Split(pattern, "/")
	return slices.EqualFunc(parts, want, func(a, b string) bool {
		return a == b || strings.HasPrefix(b, "{") && a != "" || variously.MatchString(a) && strings.HasPrefix(b, "{")
	})
}

func checkRoutes(p page) (faults []string) {
	for _, r := range routesOf(p) {
		if r.path == "/v1" || r.path == "/v1/" || r.path == "/v1/..." {
			continue
		}
		if !slices.ContainsFunc(wire.Operations(), func(o *wire.Operation) bool {
			return fits(r.path, o.Path) && (r.method == "" || r.method == o.Method || r.method == http.MethodHead && o.Method == http.MethodGet)
		}) {
			faults = append(faults, fmt.Sprintf("%s: there is no route %s", p.name, strings.TrimSpace(r.method+" "+r.path)))
		}
	}
	return faults
}

// readable are the named routes that can be asked for as they stand.
func readable() []string {
	var all []string
	for _, p := range pages() {
		for _, r := range routesOf(p) {
			exact := slices.ContainsFunc(wire.Operations(), func(o *wire.Operation) bool {
				return o.Path == r.path && o.Method == http.MethodGet && !o.Reserved
			})
			if exact && !strings.Contains(r.path, "{") && !slices.Contains(all, r.path) {
				all = append(all, r.path)
			}
		}
	}
	return all
}

var goName = regexp.MustCompile(`^(?:(flowfabric|sqlite|postgres|embedded|flowfabrictest|flowfabrichttp|flowfabricotel)\.)?([A-Z]\w+)(?:\(\))?(?:\.([A-Z]\w+))?(?:\(|$)`)

// declared are the public packages, by name.
var declared = sync.OnceValue(func() map[string]*types.Package {
	all := map[string]*types.Package{}
	from := importer.ForCompiler(token.NewFileSet(), "gc", lookup)
	for name, path := range importable() {
		if strings.HasPrefix(path, module) {
			if found, err := from.Import(path); err == nil {
				all[name] = found
			}
		}
	}
	return all
})

// checkGoNames looks at code inside the prose that begins with a public package, or is a public type and something of it.
func checkGoNames(p page) (faults []string) {
	for _, text := range code.FindAllString(p.prose, -1) {
		m := goName.FindStringSubmatch(strings.Trim(text, "`"))
		if m == nil || m[1] == "" && m[3] == "" {
			continue
		}
		if !exists(m[1], m[2], m[3]) {
			faults = append(faults, fmt.Sprintf("%s: %s does not exist", p.name, strings.Trim(text, "`")))
		}
	}
	return faults
}

// exists reports whether a package has a name, and that a member. Without a package it may be that of any; a name that none has is
// somebody else's.
func exists(in, name, member string) bool {
	foreign := in == ""
	for _, home := range declared() {
		object := home.Scope().Lookup(name)
		if in != "" && in != home.Name() || object == nil {
			continue
		}
		foreign = false
		if member == "" {
			return true
		}
		if found, _, _ := types.LookupFieldOrMethod(object.Type(), true, home, member); found != nil {
			return true
		}
	}
	return foreign
}
