// Command vulns looks for known vulnerabilities in the code of modules that the packages of given directories reach. It asks no server but
// the module proxy: the database is the module golang.org/x/vulndb, brought into the form that govulncheck reads.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1], os.Args[2:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vulns:", err)
		os.Exit(1)
	}
}

// run lets govulncheck look at modules.
func run(ctx context.Context, govulncheck string, modules []string) error {
	source, err := download(ctx)
	if err != nil {
		return err
	}
	db, err := os.MkdirTemp("", "vulns")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(db) }()
	if err := build(filepath.Join(source, "data", "osv"), db); err != nil {
		return err
	}
	for _, module := range modules {
		cmd := exec.CommandContext(ctx, govulncheck, "-db", "file://"+filepath.ToSlash(db), "./...")
		cmd.Dir, cmd.Stdout, cmd.Stderr = module, os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", module, err)
		}
	}
	return nil
}

// download fetches the newest database and tells where it is.
func download(ctx context.Context) (string, error) {
	var answer, problem bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", "golang.org/x/vulndb@master")
	cmd.Dir, cmd.Stdout, cmd.Stderr = os.TempDir(), &answer, &problem // outside of any module
	fault := cmd.Run()
	var module struct{ Dir, Version, Error string }
	if err := json.Unmarshal(answer.Bytes(), &module); err != nil || module.Dir == "" {
		return "", fmt.Errorf("cannot fetch the database: %w %s%s", fault, module.Error, problem.Bytes())
	}
	fmt.Println("golang.org/x/vulndb", module.Version)
	return module.Dir, nil
}

// entry is what the index needs of a report.
type entry struct {
	ID       string `json:"id"`
	Modified string `json:"modified"`
	Affected []struct {
		Package struct {
			Name string `json:"name"`
		} `json:"package"`
		Ranges []struct {
			Events []struct {
				Fixed string `json:"fixed"`
			} `json:"events"`
		} `json:"ranges"`
	} `json:"affected"`
}

// indexed is a module in the index.
type indexed struct {
	Path  string `json:"path"`
	Vulns []vuln `json:"vulns"`
}

type vuln struct {
	ID       string `json:"id"`
	Modified string `json:"modified"`
	Fixed    string `json:"fixed,omitempty"`
}

// build writes the database of the reports in a directory.
func build(reports, db string) error {
	files, err := filepath.Glob(filepath.Join(reports, "GO-*.json"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("there are no reports in %s", reports)
	}
	byModule := map[string]*indexed{}
	modified := ""
	for _, file := range files {
		e, err := copyReport(file, filepath.Join(db, "ID"))
		if err != nil {
			return err
		}
		modified = max(modified, e.Modified)
		for i := range e.Affected {
			path := e.Affected[i].Package.Name
			if byModule[path] == nil {
				byModule[path] = &indexed{Path: path}
			}
			byModule[path].add(e, i)
		}
	}
	var modules []*indexed
	for _, m := range byModule {
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b *indexed) int { return strings.Compare(a.Path, b.Path) })
	if err := writeJSON(filepath.Join(db, "index", "modules.json"), modules); err != nil {
		return err
	}
	return writeJSON(filepath.Join(db, "index", "db.json"), map[string]string{"modified": modified})
}

// add notes a report of the module, with the last version that mends it.
func (m *indexed) add(e *entry, affected int) {
	v := vuln{ID: e.ID, Modified: e.Modified}
	for _, r := range e.Affected[affected].Ranges {
		for _, event := range r.Events {
			if event.Fixed != "" {
				v.Fixed = event.Fixed
			}
		}
	}
	m.Vulns = append(m.Vulns, v)
}

// copyReport copies a report and reads it.
func copyReport(file, to string) (*entry, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	e := &entry{}
	if err := json.Unmarshal(text, e); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return e, write(filepath.Join(to, filepath.Base(file)), text)
}

func writeJSON(file string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return write(file, text)
}

func write(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}
