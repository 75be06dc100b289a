package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// mutant is a planted bug.
//
// Its file begins with lines of the form "key: value": what it breaks, the package of its check, and the pattern of the tests to run. Each change
// follows as "-- file PATH --" with the text to be replaced, which must occur exactly once, and "-- with --" with the new text. Line ends before the
// next mark do not belong to the texts.
type mutant struct {
	Name    string
	What    string // one line: the bug
	Package string // of the check, relative to the module
	Tests   string // pattern of the tests that notice it
	Server  bool   // the check needs Postgres
	Race    bool   // the check is the race detector
	changes []change
}

// change replaces one text of a file.
type change struct{ file, before, after string }

// readAll reads all planted bugs of a directory, by name.
func readAll(dir string) ([]*mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.mutant"))
	if err != nil {
		return nil, err
	}
	sort.Strings(paths)
	var all []*mutant
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m, err := parse(strings.TrimSuffix(filepath.Base(path), ".mutant"), string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// parse reads one planted bug.
func parse(name, text string) (*mutant, error) {
	m := &mutant{Name: name}
	head, rest, _ := strings.Cut(text, "-- file ")
	for line := range strings.Lines(head) {
		key, value, found := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case strings.TrimSpace(line) == "":
		case !found || !m.set(key, value):
			return nil, fmt.Errorf("unknown line %q", strings.TrimSpace(line))
		}
	}
	for part := range strings.SplitSeq(rest, "-- file ") {
		file, body, _ := strings.Cut(part, " --\n")
		before, after, found := strings.Cut(body, "-- with --\n")
		c := change{file: file, before: strings.TrimSuffix(before, "\n"), after: strings.TrimRight(after, "\n")}
		if !found || c.file == "" || c.before == "" {
			return nil, fmt.Errorf("a change lacks its file, the text to be replaced, or the line -- with --")
		}
		m.changes = append(m.changes, c)
	}
	if m.What == "" || m.Package == "" || m.Tests == "" {
		return nil, fmt.Errorf("it lacks one of what, package and tests")
	}
	return m, nil
}

// set sets a field by the key of its line.
func (m *mutant) set(key, value string) bool {
	switch key {
	case "what":
		m.What = value
	case "package":
		m.Package = value
	case "tests":
		m.Tests = value
	case "server":
		m.Server = value == "postgres"
	case "race":
		m.Race = value == "yes"
	default:
		return false
	}
	return true
}

// apply returns the changed files: their contents by their paths relative to the root.
func (m *mutant) apply(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, c := range m.changes {
		text, read := files[c.file]
		if !read {
			content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(c.file)))
			if err != nil {
				return nil, err
			}
			text = string(content)
		}
		if n := strings.Count(text, c.before); n != 1 {
			return nil, fmt.Errorf("the text to be replaced occurs %d times in %s, not once:\n%s", n, c.file, c.before)
		}
		files[c.file] = strings.Replace(text, c.before, c.after, 1)
	}
	return files, nil
}

// table returns the bugs and their checks as Markdown.
func table(mutants []*mutant) string {
	var b strings.Builder
	b.WriteString("| Planted bug | Check | Package |\n|---|---|---|\n")
	for _, m := range mutants {
		fmt.Fprintf(&b, "| %s | `%s` | `%s` |\n", m.What, strings.ReplaceAll(m.Tests, "|", "\\|"), strings.TrimPrefix(m.Package, "./"))
	}
	return b.String()
}
