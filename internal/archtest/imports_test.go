package archtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// room is a directory with the packages of this module that it may import. Paths are relative to the root; "." is the root
// package; "x/*" are all packages below x; a room covers everything below it that is no room itself. A package may always import
// its own room.
type room struct {
	path   string
	may    []string
	tests  []string // further packages that its tests may import
	stdlib bool     // outside this module it imports the standard library alone
	reason string
}

// rooms are the arrows of docs/architecture.md.
var rooms = []room{
	{path: "internal/core", may: []string{"internal/core/*"}, stdlib: true, reason: "core is the rules alone: a pure function needs no database, no clock and no library"},
	{path: "internal/core/base", stdlib: true, reason: "it is what all of core is written with, and knows no rule"},
	{path: "internal/core/*", may: []string{"internal/core/base"}, stdlib: true, reason: "a part of core is a small machine: it knows neither an execution nor another part"},
	{path: "internal/jsonx", stdlib: true, reason: "jsonx reads and writes JSON and knows no type of ours: its importers carry nothing else"},
	{path: "api", may: []string{"internal/core/*", "internal/hint", "internal/jsonx", "internal/payload"}, stdlib: true, reason: "values are what everybody imports: they must carry no engine, no store and no library"},
	{path: "ops", may: []string{"api", "internal/calls", "internal/transport", "internal/wire", "internal/core/*", "internal/clock", "internal/mint", "internal/backoff"}, stdlib: true, reason: "clients return its groups: it must be as light as they are, and know none"},
	{path: "workapi", may: []string{"api", "internal/calls", "internal/transport", "internal/wire", "internal/core/*"}, stdlib: true, reason: "clients return it: it must be as light as they are, and know none"},
	{path: "internal/calls", may: []string{"api", "internal/transport", "internal/wire", "internal/core/*"}, stdlib: true, reason: "it has what groups of calls share and must not care what they do"},
	{path: "internal/payload", may: []string{"internal/jsonx"}, stdlib: true, reason: "api and wire write payloads in the same forms, and api must stay light"},
	{path: "internal/wire", may: []string{"api", "internal/jsonx", "internal/payload"}, stdlib: true, reason: "wire is shared by server and remote client: whatever it imported both would carry"},
	{path: "internal/transport", may: []string{"api", "internal/wire", "internal/clock", "internal/metrics"}, stdlib: true, reason: "it carries operations and must not care what they do"},
	{
		path: "internal/transport/http", may: []string{"api", "internal/transport", "internal/wire", "internal/core/*", "internal/backoff", "internal/clock", "internal/mint"}, stdlib: true,
		reason: "it sends operations to a server, and programs that only connect to one carry it: no library, no engine",
	},
	{path: "internal/mint", may: []string{"api", "internal/core/*", "internal/clock"}, stdlib: true, reason: "it makes names and must not care for what"},
	{
		path: "internal/service", may: []string{"api", "internal/wire", "internal/core", "internal/core/*", "internal/engine", "internal/backoff", "internal/clock", "internal/metrics", "internal/transport", "internal/mint"}, stdlib: true,
		reason: "each operation is done here once: it sees the engine and the values, never how they travel",
	},
	{path: "internal/metrics", stdlib: true, reason: "it names what is measured and is a leaf for all who measure"},
	{path: "internal/clock", stdlib: true, reason: "the clock is a leaf: everybody who needs time gets it handed in"},
	{path: "internal/backoff", may: []string{"internal/clock"}, stdlib: true, reason: "it waits and must not care for what"},
	{path: "internal/webhooksend", may: []string{"internal/core/*", "internal/clock"}, stdlib: true, reason: "it sends one request and must not care what for: which addresses it may reach is a rule of core"},
	{path: "internal/quiet", may: []string{"internal/clock"}, stdlib: true, reason: "it counts lines of a log and must not care what they tell"},
	{path: "internal/gctune", stdlib: true, reason: "it sets how programs use memory, whatever they do"},
	{path: "internal/store", may: []string{"internal/core", "internal/core/*"}, stdlib: true, reason: "the contract speaks of rows of core and knows no database"},
	{path: "internal/store/sqltext", stdlib: true, reason: "it splits text and knows no database"},
	{path: "internal/store/storetest", may: []string{"internal/store", "internal/core", "internal/core/*", "internal/clock", "internal/testseed"}, reason: "the suite sees the contract alone: what it cannot see no store can be asked for"},
	{
		path: "internal/store/*", may: []string{"internal/store", "internal/store/sqltext", "internal/core", "internal/core/*", "internal/clock", "internal/metrics", "internal/quiet"},
		reason: "a store keeps rows: it must be replaceable, so it sees the contract and never the engine or another store",
	},
	{
		path: "internal/engine/txn", may: []string{"internal/backoff", "internal/core", "internal/core/*", "internal/store", "internal/clock", "internal/metrics", "internal/quiet"},
		reason: "the engine works on the contract: one that knows a particular database cannot run on the next; rooms register with it, and it knows none",
	},
	{
		path: "internal/engine/eventlog", may: []string{"internal/engine/txn", "internal/core", "internal/core/*", "internal/store"}, stdlib: true,
		reason: "it reads the event log for others and must not care what the events are about",
	},
	{
		path: "internal/engine/streams", may: []string{"internal/engine/txn", "internal/core", "internal/core/*", "internal/store", "internal/metrics"}, stdlib: true,
		reason: "frames hang on the fence of an attempt alone: the room knows no other",
	},
	{
		path: "internal/engine/admin", may: []string{"internal/engine/txn", "internal/core", "internal/core/*", "internal/store", "internal/metrics"}, stdlib: true,
		reason: "it records what is done and must not care what that is for",
	},
	{
		path: "internal/engine/webhooks", may: []string{"internal/engine/txn", "internal/engine/eventlog", "internal/engine/admin", "internal/core", "internal/core/*", "internal/store", "internal/metrics"}, stdlib: true,
		reason: "it sends what the log says and must not care what that is about, nor how requests are made",
	},
	{
		path: "internal/engine/limits", may: []string{"internal/engine/txn", "internal/engine/admin", "internal/core", "internal/core/*", "internal/store", "internal/metrics"}, stdlib: true,
		reason: "it decides what may be taken; it knows neither who takes it nor how",
	},
	{
		path: "internal/engine/waits", may: []string{"internal/engine/txn", "internal/engine/admin", "internal/engine/limits", "internal/core", "internal/core/*", "internal/store", "internal/metrics"}, stdlib: true,
		reason: "it keeps what executions wait for; it knows neither how they are submitted nor what they are part of",
	},
	{
		path: "internal/engine/work", may: []string{"internal/engine/txn", "internal/engine/admin", "internal/engine/limits", "internal/engine/waits", "internal/core", "internal/core/*", "internal/store", "internal/metrics"}, stdlib: true,
		reason: "it acts on single executions through what the kernel shows; it knows neither graphs nor how work gets to workers",
	},
	{
		path: "internal/engine/flows", may: []string{"internal/engine/txn", "internal/engine/admin", "internal/engine/limits", "internal/engine/waits", "internal/engine/work", "internal/core", "internal/core/*", "internal/store", "internal/clock", "internal/metrics", "internal/quiet"}, stdlib: true,
		reason: "it keeps graphs of executions by what the kernel shows; it does not know how members get to workers",
	},
	{
		path: "internal/engine/claims", may: []string{"internal/engine/txn", "internal/engine/admin", "internal/engine/limits", "internal/engine/waits", "internal/engine/work", "internal/engine/flows", "internal/core", "internal/core/*", "internal/store", "internal/clock", "internal/metrics", "internal/quiet"}, stdlib: true,
		reason: "it gives work to workers through what the kernel shows, and the kernel calls it as its dispatcher",
	},
	{path: "internal/engine/inspect", may: []string{"internal/engine/txn", "internal/engine/eventlog", "internal/engine/admin", "internal/engine/limits", "internal/engine/waits", "internal/engine/work", "internal/engine/flows", "internal/core", "internal/core/*", "internal/store"}, stdlib: true, reason: "it reads what the kernel shows"},
	{
		path: "internal/engine/bulk", may: []string{"internal/engine/txn", "internal/engine/admin", "internal/engine/limits", "internal/engine/waits", "internal/engine/work", "internal/engine/flows", "internal/engine/claims", "internal/engine/inspect", "internal/core", "internal/core/*", "internal/store", "internal/metrics"}, stdlib: true,
		reason: "jobs are the highest room: they act through the commands of all others",
	},
	{
		path: "internal/engine", may: []string{"internal/engine/txn", "internal/engine/eventlog", "internal/engine/streams", "internal/engine/admin", "internal/engine/webhooks", "internal/engine/limits", "internal/engine/waits", "internal/engine/work", "internal/engine/flows", "internal/engine/claims", "internal/engine/inspect", "internal/engine/bulk", "internal/core", "internal/core/*", "internal/store"}, stdlib: true,
		reason: "it puts kernel and rooms together and decides nothing",
	},
	{
		path: ".", may: []string{"api", "ops", "workapi", "internal/calls", "internal/transport", "internal/transport/http", "internal/wire", "internal/core/*", "internal/clock", "internal/metrics", "internal/quiet", "internal/backoff", "internal/mint"}, stdlib: true,
		reason: "a program that only connects to a server compiles no rules, no engine, no store and no library",
	},
	{
		path: "internal/inprocess", may: []string{".", "api", "internal/transport", "internal/service", "internal/engine", "internal/webhooksend", "internal/store", "internal/core", "internal/core/*", "internal/clock", "internal/metrics", "internal/jsonx", "internal/mint"}, stdlib: true,
		reason: "it puts an engine behind a client and knows no database: a program carries the store that it imports and no other",
	},
	{
		path: "sqlite", may: []string{".", "api", "internal/inprocess", "internal/transport", "internal/store", "internal/store/sqlite"}, stdlib: true,
		reason: "it is what a program imports that keeps its work in a file: it must not carry Postgres",
	},
	{
		path: "postgres", may: []string{".", "api", "internal/inprocess", "internal/transport", "internal/store", "internal/store/postgres", "internal/core", "internal/core/*"},
		reason: "it is what a program imports that keeps its work in Postgres: it must not carry SQLite",
	},
	{
		path: "embedded", may: []string{".", "api", "sqlite", "postgres", "internal/inprocess", "internal/transport", "internal/store/sqlite", "internal/store/postgres", "internal/core", "internal/core/*"}, stdlib: true,
		reason: "it chooses a store by its address and adds nothing",
	},
	{path: "flowfabrictest", may: []string{".", "api", "ops", "workapi", "embedded", "internal/inprocess", "internal/mint", "internal/transport", "internal/wire", "internal/quiescence", "internal/engine", "internal/core", "internal/core/*", "internal/metrics", "internal/service", "internal/store", "internal/store/*", "internal/clock"}, tests: []string{"flowfabrichttp"}, reason: "a test environment is the real engine with another clock"},
	{path: "flowfabrichttp", may: []string{".", "internal/inprocess", "internal/server"}, tests: []string{"api", "ops", "workapi", "flowfabrictest"}, reason: "it mounts the server and adds nothing"},
	{path: "flowfabricprom", may: []string{".", "internal/metrics"}, reason: "metrics are read behind the public handlers alone"},
	{path: "flowfabricotel", may: []string{".", "api"}, reason: "spans hang on the public hook alone"},
	{
		path: "internal/server", may: []string{"api", "internal/service", "internal/transport", "internal/wire", "internal/hint", "internal/jsonx", "internal/clock", "internal/metrics", "internal/quiet"},
		tests: []string{".", "ops", "workapi"}, reason: "the server is HTTP alone: what it serves is done by the service, for the caller of a request, and it sees no engine and no client",
	},
	{path: "cmd", may: []string{".", "api", "ops", "workapi", "embedded", "internal/inprocess", "internal/server", "internal/service", "internal/store/postgres", "internal/wire", "internal/hint", "internal/jsonx", "internal/clock", "internal/gctune", "flowfabrichttp", "flowfabricotel", "bench/*", "examples/*"}, reason: "cmd wires and prints; rules and SQL live elsewhere"},
	{path: "bench", may: []string{".", "api", "ops", "workapi", "embedded", "flowfabrictest", "flowfabrichttp", "internal/pgtest"}, reason: "a benchmark goes through the public API, or its figures are not those of users"},
	{path: "examples", may: []string{".", "api", "ops", "workapi", "embedded", "sqlite", "postgres", "flowfabrictest", "flowfabrichttp"}, reason: "an example shows what a user can write"},
	{path: "test", may: []string{"*"}, reason: "end-to-end and crash tests look at everything"},
	{path: "internal/hint", stdlib: true, reason: "it writes texts and must not care which"},
	{path: "internal/aptget", stdlib: true, reason: "it calls apt-get and must not care for whom"},
	{path: "internal/binary", stdlib: true, reason: "it builds the program and must not know what that does"},
	{path: "internal/pagetest", stdlib: true, reason: "it compares a file with a text"},
	{path: "internal/pgtest/migrated", may: []string{"internal/pgtest", "internal/store/postgres"}, reason: "it fills the databases of a private server and starts none"},
	{path: "internal/pgtest", may: []string{"internal/aptget"}, reason: "it starts a database and must be usable by tests of every package"},
	{path: "internal/testseed", reason: "it chooses random numbers and must not care for what"},
	{path: "internal/quiescence", stdlib: true, reason: "it looks at goroutines and must not care what they do"},
	{path: "internal/invariants", may: []string{"internal/core", "internal/core/*", "internal/store"}, stdlib: true, reason: "what must hold is stated apart from the engine that is held to it"},
	{path: "internal/sim", may: []string{"internal/engine", "internal/invariants", "internal/store", "internal/store/memory", "internal/core", "internal/core/*", "internal/clock"}, stdlib: true, reason: "it runs engines on the store in memory, and must not reach past their commands"},
	{path: "internal/archtest", stdlib: true, reason: "it reads the tree as text"},
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	holds(t, checkImports, "imports point one way: (sqlite, postgres, embedded) -> inprocess -> (flowfabric, service) -> engine -> (core, store); store/* -> (store, core, clock); "+
		"wire -> jsonx; core, jsonx -> standard library. A new room needs an entry in archtest and a line in docs/architecture.md.")
}

func TestEveryPackageIsInARoomAndImportsWhatItMay(t *testing.T) {
	t.Parallel()
	imports := func(paths ...string) string {
		return "package p\nimport (\n\"" + strings.Join(paths, "\"\n\"") + "\"\n)\n"
	}
	finds(t, checkImports, []example{
		{name: "what the arrows allow", files: map[string]string{
			"flowfabric.go":                  imports(module+"/internal/transport/http", module+"/internal/core/base"),
			"postgres/postgres.go":           imports(module, module+"/internal/store/postgres", "github.com/jackc/pgx/v5"),
			"internal/core/a.go":             imports("strings", "encoding/json", module+"/internal/core/base"),
			"internal/core/a_test.go":        imports("pgregory.net/rapid"),
			"internal/engine/txn/a.go":       imports(module+"/internal/core", "golang.org/x/sync/errgroup"),
			"internal/engine/txn/a_test.go":  imports(module + "/internal/store/sqlite"),
			"internal/engine/txn/sub/a.go":   imports(module + "/internal/engine/txn"),
			"internal/server/a.go":           imports(module+"/internal/service", module+"/internal/wire"),
			"internal/server/a_test.go":      imports(module, module+"/embedded"),
			"internal/store/sqlite/a.go":     imports(module+"/internal/store", "modernc.org/sqlite"),
			"internal/store/sqlite/sub/a.go": imports(module + "/internal/store/sqlite"),
			"tools/tally/main.go":            imports("github.com/other/tools"),
		}},
		{name: "core that imports a library", files: map[string]string{"internal/core/a.go": imports("github.com/google/uuid")}, want: []string{"internal/core/a.go imports github.com/google/uuid"}},
		{name: "core that imports the store", files: map[string]string{"internal/core/a.go": imports(module + "/internal/store")}, want: []string{"rules alone"}},
		{name: "a part of core that imports core or another part", files: map[string]string{
			"internal/core/keyring/a.go": imports(module+"/internal/core", module+"/internal/core/base"), "internal/core/condition/a.go": imports(module + "/internal/core/eventdata"),
			"internal/core/base/a.go": imports(module + "/internal/core/keyring"),
		}, want: []string{"internal/core/base/a.go", "internal/core/condition/a.go", "internal/core/keyring/a.go"}},
		{name: "jsonx that knows a type of ours", files: map[string]string{"internal/jsonx/a.go": imports(module + "/internal/core")}, want: []string{"no type of ours"}},
		{name: "the engine that knows a database", files: map[string]string{"internal/engine/a.go": imports(module + "/internal/store/postgres")}, want: []string{"internal/store/postgres"}},
		{name: "a store that knows another", files: map[string]string{"internal/store/sqlite/a.go": imports(module + "/internal/store/postgres")}, want: []string{"replaceable"}},
		{name: "a root that knows an engine", files: map[string]string{"flowfabric.go": imports(module+"/internal/engine", "github.com/jackc/pgx/v5")}, want: []string{"internal/engine", "compiles no rules, no engine"}},
		{name: "internal code that imports the root", files: map[string]string{"internal/engine/a.go": imports(module), "internal/store/sqlite/a_test.go": imports(module)}, want: []string{"internal/engine/a.go imports " + module, "internal/store/sqlite/a_test.go"}},
		{name: "a server that goes past the service", files: map[string]string{"internal/server/a.go": imports(module + "/internal/engine")}, want: []string{"HTTP alone"}},
		{name: "a server that needs a client", files: map[string]string{"internal/server/a.go": imports(module)}, want: []string{"HTTP alone"}},
		{name: "a package in no room", files: map[string]string{"internal/misc/a.go": imports("fmt")}, want: []string{"internal/misc is in no room"}},
	})
}

func checkImports(all []source) []string {
	var found []string
	homeless := map[string]bool{}
	for _, s := range all {
		if !s.isGo() || s.foreign() {
			continue
		}
		home, ok := roomOf(s.dir())
		if !ok {
			if !homeless[s.dir()] {
				homeless[s.dir()] = true
				found = append(found, s.dir()+" is in no room")
			}
			continue
		}
		for _, spec := range s.file.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err != nil || allowed(home, s, to) {
				continue
			}
			found = append(found, fmt.Sprintf("%s imports %s: %s", s.path, to, home.reason))
		}
	}
	return found
}

// allowed reports whether a file of a room may import a path. Tests may use more of this module and any library, but the root
// package only where it is allowed: an internal test that needs it belongs to the root, whose suite runs over the server as well.
func allowed(home room, from source, to string) bool {
	if to != module && !strings.HasPrefix(to, module+"/") {
		return from.isTest() || !home.stdlib || !strings.Contains(strings.SplitN(to, "/", 2)[0], ".")
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(to, module), "/")
	if rel == "" {
		rel = "."
	}
	if target, ok := roomOf(rel); ok && target.path == home.path && (!strings.HasSuffix(home.path, "/*") || sameStore(from.dir(), rel)) {
		return true
	}
	for _, may := range home.may {
		base, below := strings.CutSuffix(may, "/*")
		if may == "*" || may == rel || below && under(rel, base) {
			return true
		}
	}
	if from.isTest() && slices.Contains(home.tests, rel) {
		return true
	}
	if from.isTest() && slices.Contains(openers, rel) {
		return slices.Contains(home.may, ".") || slices.Contains(home.tests, ".") || home.path == "."
	}
	return from.isTest() && under(rel, "internal") && !(under(home.path, "internal/core") && home.path != "internal/core" && under(rel, "internal/core")) && (home.path == "." || !under(rel, "internal/server"))
}

// openers open an engine behind a client, as tests of clients and servers do.
var openers = []string{"sqlite", "postgres", "embedded"}

// sameStore reports whether two packages belong to one store, or to one part of core.
func sameStore(a, b string) bool {
	return strings.SplitN(a+"/", "/", 4)[2] == strings.SplitN(b+"/", "/", 4)[2]
}

// roomOf finds the innermost room of a directory.
func roomOf(dir string) (room, bool) {
	var best room
	depth := -1
	for _, r := range rooms {
		base, star := strings.CutSuffix(r.path, "/*")
		inside := under(dir, base) && (!star || dir != base)
		if r.path == "." {
			inside = dir == "."
		}
		n := strings.Count(r.path, "/")
		if inside && n > depth {
			best, depth = r, n
		}
	}
	return best, depth >= 0
}
