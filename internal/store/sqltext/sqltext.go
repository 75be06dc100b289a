// Package sqltext splits .sql files into named statements, so that stores keep their SQL beside their code and not inside it. It is independent of
// any database and does not parse the statements.
package sqltext

import (
	"fmt"
	"io/fs"
	"strings"
)

// marker begins a line that names the following statement.
const marker = "-- name: "

// Load reads every .sql file that matches pattern (as in path.Match) and returns its statements by name. A duplicate name, and text before the
// first name that is not a comment, are errors.
func Load(files fs.FS, pattern string) (map[string]string, error) {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		return nil, err
	}
	statements := map[string]string{}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		if err := split(string(text), statements); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return statements, nil
}

// split adds the statements of one file. Comment lines and the final semicolon are omitted.
func split(text string, statements map[string]string) error {
	name := ""
	var lines []string
	finish := func() error {
		body := strings.TrimSuffix(strings.TrimSpace(strings.Join(lines, "\n")), ";")
		lines = lines[:0]
		switch {
		case name == "" && body == "":
			return nil
		case name == "":
			return fmt.Errorf("text before the first name: %.40q", body)
		case body == "":
			return fmt.Errorf("statement %s is empty", name)
		}
		if _, twice := statements[name]; twice {
			return fmt.Errorf("statement %s is there twice", name)
		}
		statements[name] = body
		return nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if next, found := strings.CutPrefix(line, marker); found {
			if err := finish(); err != nil {
				return err
			}
			name = strings.TrimSpace(next)
			continue
		}
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			lines = append(lines, line)
		}
	}
	return finish()
}
