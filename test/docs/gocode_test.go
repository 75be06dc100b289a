package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/flowfabric/flowfabric"

func TestU263_every_block_of_go_compiles(t *testing.T) {
	t.Parallel()
	holds(t, checkGo)
}

func TestU263_go_that_does_not_compile_is_found(t *testing.T) {
	t.Parallel()
	planted{
		{"```go\nx, err := client.Get(ctx, \"id\")\n```\n", ""},
		{"```go\ntype Mail struct{ To string }\n\nconst Send flowfabric.Kind[Mail, flowfabric.None] = \"mail\"\n```\n\n```go\nrun, err := Send.Submit(ctx, client, Mail{\"ana\"})\n```\n", ""},
		{"```go\npackage main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(1) }\n```\n", ""},
		{"```go\nx, err := client.Gett(ctx, \"id\")\n```\n", "page.md:2"},
		{"```go\nclient.Get(ctx, 17)\n```\n", "page.md:2"},
		{"```go\nfunc f() string { return 1 }\n```\n", "page.md:2"},
		{"text\n\n```go\n\nif x {\n```\n", "page.md:"},
		{"```go\npackage main\n\nimport \"fmt\"\n\nfunc main() {}\n```\n", "fmt"},
		{"```go\nflowfabric.Sleep(1)\n```\n", "Sleep"},
	}.finds(t, checkGo)
}

// sources is the text of all Go files of the tree.
var sources = sync.OnceValue(func() []string {
	var all []string
	for _, name := range files(".go") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			panic(err)
		}
		all = append(all, string(text))
	}
	return all
})

// checkGo compiles the blocks of Go that do not stand in a file of the tree word for word. Those of a page are one package.
func checkGo(p page) (faults []string) {
	var together []*ast.File
	fset := token.NewFileSet()
	for _, b := range p.blocks {
		if b.language != "go" || slices.ContainsFunc(sources(), func(text string) bool { return strings.Contains(text, b.text) }) {
			continue
		}
		file, err := parseBlock(fset, b)
		switch {
		case err != nil:
			faults = append(faults, err.Error())
		case file.Name.Name == fragment:
			together = append(together, file)
		default:
			faults = append(faults, compile(fset, file)...)
		}
	}
	return append(faults, compile(fset, together...)...)
}

// fragment is the package of blocks that are no whole file.
const fragment = "fragment"

// scope is what statements of a page may use without saying where it comes from.
const scope = "func _(ctx context.Context, client *flowfabric.Client, w *flowfabric.Worker, t *flowfabric.Task) error {{"

// parseBlock reads a block as a file, as declarations, or as statements.
func parseBlock(fset *token.FileSet, b block) (*ast.File, error) {
	at := fmt.Sprintf("\n//line %s:%d\n", b.page, b.line)
	if strings.HasPrefix(b.text, "package ") {
		return parser.ParseFile(fset, "", strings.TrimPrefix(at, "\n")+b.text, 0)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", "package "+fragment+at+b.text, 0)
	head, tail := "", ""
	if err != nil {
		head, tail = scope, "\n}\nreturn nil\n}"
		if file, err = parser.ParseFile(token.NewFileSet(), "", "package "+fragment+"\n"+head+at+b.text+tail, 0); err != nil {
			return nil, err
		}
	}
	var imports strings.Builder
	for _, name := range usedPackages(file) {
		fmt.Fprintf(&imports, "import %q\n", importable()[name])
	}
	return parser.ParseFile(fset, "", "package "+fragment+"\n"+imports.String()+head+at+b.text+tail, 0)
}

// usedPackages are the names before a dot that only a package can be.
func usedPackages(file *ast.File) []string {
	if len(file.Imports) > 0 {
		return nil
	}
	used := map[string]bool{}
	for _, id := range file.Unresolved {
		if importable()[id.Name] != "" {
			used[id.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(used))
}

// importable are the packages that a block may use, by name.
var importable = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for _, path := range []string{
		"context", "database/sql", "encoding/json", "errors", "fmt", "io", "log", "log/slog", "net/http", "net/netip", "net/smtp", "os", "os/signal", "strings", "syscall",
		"testing", "time", "github.com/jackc/pgx/v5",
	} {
		all[nameOf(path)] = path
	}
	all["flowfabric"] = module
	for _, name := range []string{"api", "ops", "workapi", "sqlite", "postgres", "embedded", "flowfabrictest", "flowfabrichttp", "flowfabricotel"} {
		if found, _ := filepath.Glob(filepath.Join(root, name, "*.go")); len(found) > 0 {
			all[name] = module + "/" + name
		}
	}
	return all
})

func nameOf(importPath string) string {
	if name := path.Base(importPath); name != "v5" {
		return name
	}
	return path.Base(path.Dir(importPath))
}

// exported are the compiled forms of all packages that blocks may use.
var exported = sync.OnceValues(func() (map[string]string, error) {
	args := append([]string{"list", "-export", "-deps", "-json=ImportPath,Export"}, slices.Collect(maps.Values(importable()))...)
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	var problem bytes.Buffer
	cmd.Stderr = &problem
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, problem.String())
	}
	all := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var found struct{ ImportPath, Export string }
		if err := decoder.Decode(&found); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all[found.ImportPath] = found.Export
	}
})

// lookup opens the compiled form of a package.
func lookup(path string) (io.ReadCloser, error) {
	all, err := exported()
	if err != nil {
		return nil, err
	}
	if all[path] == "" {
		return nil, fmt.Errorf("blocks do not know the package %s", path)
	}
	return os.Open(all[path])
}

// compile checks the types of a package. In fragments a variable may stay unused: what follows is left to the reader.
func compile(fset *token.FileSet, all ...*ast.File) (faults []string) {
	if len(all) == 0 {
		return nil
	}
	config := types.Config{
		Importer: importer.ForCompiler(fset, "gc", lookup),
		Error: func(err error) {
			if all[0].Name.Name != fragment || !strings.Contains(err.Error(), "declared and not used") {
				faults = append(faults, err.Error())
			}
		},
	}
	_, _ = config.Check(all[0].Name.Name, fset, all, nil)
	return faults
}

func TestU132_the_compiler_finds_mistakes_in_the_configuration_and_in_types(t *testing.T) {
	t.Parallel()
	const kind = "const Mail flowfabric.Kind[string, int] = \"mail\"\n\nfunc f(ctx context.Context, client *flowfabric.Client, w *flowfabric.Worker) {\n"
	in := func(statement string) string { return "```go\n" + kind + statement + "\n}\n```\n" }
	planted{
		{in(`client, err := sqlite.Open(ctx, "app.db")`), ""},
		{in(`client, err := sqlite.Open(ctx, "app.db", sqlite.Config{})`), ""},
		{in(`client, err := flowfabric.Connect("https://host", sqlite.Config{})`), "ConnectConfig"},
		{in(`client, err := sqlite.Open(ctx, "app.db", sqlite.Config{PoolSize: 4})`), "unknown field PoolSize"},
		{in(`client, err := postgres.OpenPool(ctx, "postgres://db", postgres.Config{})`), "pgxpool.Pool"},
		{in(`_, err := client.Lanes().Pause(ctx, "mail", ops.ListOptions{})`), "LaneAction"},
		{in(`_, err := Mail.Submit(ctx, client, 17)`), "string"},
		{in(`_, err := Mail.Submit(ctx, client, "ana", flowfabric.Policy{})`), "SubmitOptions"},
		{in(`flowfabric.Handle(w, Mail, func(ctx context.Context, t *flowfabric.Task, in string) (string, error) { return in, nil })`), "func"},
	}.finds(t, checkGo)
}
