package settings

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Sources are where values come from; later fields take precedence.
type Sources struct {
	Dev     bool              // use the defaults of `dev`
	File    string            // FF_NAME=value lines; "": none
	Environ []string          // as os.Environ gives it
	Flags   map[string]string // by name, only those given
}

// Sources of a value.
const (
	FromDefault     = "default"
	FromFile        = "file"
	FromEnvironment = "environment"
	FromFlag        = "flag"
)

// Problem is something wrong with one setting.
type Problem struct {
	Variable, Value, Source, Detail string
}

// String is one line of text (U180).
func (p Problem) String() string {
	name := p.Variable
	if p.Value != "" {
		name += "=" + hidePassword(p.Value)
	}
	if p.Source != "" {
		name += " (from " + p.Source + ")"
	}
	return name + ": " + p.Detail
}

// Values are the effective settings.
type Values struct {
	table   []Setting
	byKey   map[string]value
	ignored []Problem
}

// Ignored lists the variables of the environment that are ignored: those of other programs that cannot be parsed, and names with our
// prefix that are no settings. Others add such names: Kubernetes sets FF_PORT in every pod beside a service called ff.
func (v *Values) Ignored() []Problem { return v.ignored }

type value struct {
	parsed any // nil: not set
	text   string
	source string
}

// Load reads the settings of a table and reports all problems at once. An unknown name gets a suggestion; it is a problem in a file,
// and ignored in the environment.
func Load(table []Setting, from Sources) (*Values, []Problem) {
	l := loader{table: table, values: &Values{table: table, byKey: map[string]value{}}}
	for _, s := range table {
		text := s.Default
		if from.Dev && s.Dev != "" {
			text = s.Dev
		}
		if text != "" {
			l.set(s, text, FromDefault)
		}
	}
	if from.File != "" {
		l.file(from.File)
	}
	l.others(from.Environ)
	l.lines(from.Environ, FromEnvironment)
	for _, s := range table {
		if text, given := from.Flags[s.Name]; given {
			l.set(s, text, FromFlag)
		}
		if path, given := from.Flags[s.Name+"-file"]; given && s.MayBeInFile() {
			l.secret(s, path, FromFlag)
		}
	}
	return l.values, l.problems
}

type loader struct {
	table    []Setting
	values   *Values
	problems []Problem
}

func (l *loader) refuse(variable, text, source, detail string) {
	l.problems = append(l.problems, Problem{variable, text, source, detail})
}

// set sets a value. An invalid value is a problem even if a later source has a valid one.
func (l *loader) set(s Setting, text, source string) {
	if text == "" { // an empty variable is ignored
		return
	}
	parsed, err := s.parse(text)
	if s.Secret {
		text = "set"
	}
	if err != nil {
		l.refuse(s.Variable(), text, source, err.Error())
		return
	}
	l.values.byKey[s.Name] = value{parsed, text, source}
}

// secret reads the value from a file. It follows a value that the same source gives directly.
func (l *loader) secret(s Setting, path, source string) {
	if path == "" { // an empty variable is ignored
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		l.refuse(s.Variable()+"_FILE", path, source, err.Error())
		return
	}
	l.set(s, strings.TrimRight(string(data), "\r\n"), source)
}

func (l *loader) file(path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		l.refuse("--config", path, FromFlag, err.Error())
		return
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !strings.HasPrefix(line, "FF_") || !strings.Contains(line, "=") {
			l.refuse(path, "", "", fmt.Sprintf("%q is not FF_NAME=value", line))
			continue
		}
		lines = append(lines, line)
	}
	l.lines(lines, FromFile)
}

// lines parses NAME=value texts; names without the prefix FF_ are skipped.
func (l *loader) lines(lines []string, source string) {
	for _, line := range lines {
		name, text, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(name, "FF_") {
			continue
		}
		plain, isFile := strings.CutSuffix(name, "_FILE")
		if s, ok := find(l.table, name); ok {
			l.set(s, strings.TrimSpace(text), source)
		} else if s, ok := find(l.table, plain); ok && isFile && s.MayBeInFile() {
			l.secret(s, strings.TrimSpace(text), source)
		} else if known := Variables(); !slices.Contains(known, name) && !slices.Contains(foreign, name) {
			problem := Problem{name, "", source, unknown(name, text, known)} // without the value: it may be a secret with a misspelt name
			if source == FromEnvironment {
				if text == "" { // an empty variable is none
					continue
				}
				l.values.ignored = append(l.values.ignored, problem)
			} else {
				l.problems = append(l.problems, problem)
			}
		}
	}
}

// suggest returns the variable that was probably meant: that of the flag of this name, such as FF_API_KEY for FF_KEY, one that
// begins with it, such as FF_LOG_LEVEL for FF_LOG, else the nearest; "" if none is near.
func suggest(name string, known []string) string {
	for _, s := range slices.Concat(serverTable, clientTable) {
		if name == "FF_"+strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_")) {
			return s.Variable()
		}
	}
	bare := make([]string, len(known)) // what all of them begin with makes none of them near
	for i, k := range known {
		if strings.HasPrefix(k, name+"_") {
			return k
		}
		bare[i] = strings.TrimPrefix(k, "FF_")
	}
	if near := jsonx.Nearest(strings.TrimPrefix(name, "FF_"), bare); near != "" {
		return "FF_" + near
	}
	return ""
}

// others reads the variables of other programs.
func (l *loader) others(lines []string) {
	for _, s := range l.table {
		for _, line := range lines {
			name, text, _ := strings.Cut(line, "=")
			if text = strings.TrimSpace(text); s.Also == "" || name != s.Also {
				continue
			}
			if _, err := s.parse(text); err != nil && text != "" {
				l.values.ignored = append(l.values.ignored, Problem{name, text, FromEnvironment, err.Error()})
				continue
			}
			l.set(s, text, FromEnvironment)
		}
	}
}

func find(table []Setting, variable string) (Setting, bool) {
	for _, s := range table {
		if s.Variable() == variable {
			return s, true
		}
	}
	return Setting{}, false
}

// Variables are the names of all variables, including those of files with secrets.
func Variables() []string {
	var names []string
	for _, s := range slices.Concat(serverTable, clientTable) {
		names = append(names, s.Variable())
		if s.MayBeInFile() {
			names = append(names, s.Variable()+"_FILE")
		}
	}
	return names
}

// Get returns the value of a setting, or the zero T if it is not set. A name that is not in the table, or another type, is a bug.
func Get[T any](v *Values, name string) T {
	if !slices.ContainsFunc(v.table, func(s Setting) bool { return s.Name == name }) {
		panic("settings: there is no " + name)
	}
	if v.byKey[name].parsed == nil {
		var zero T
		return zero
	}
	return v.byKey[name].parsed.(T)
}

// Problem is a problem with the value of a setting.
func (v *Values) Problem(name, detail string) Problem {
	for _, s := range v.table {
		if s.Name == name {
			return Problem{s.Variable(), v.byKey[name].text, v.byKey[name].source, detail}
		}
	}
	return Problem{Variable: name, Detail: detail}
}

// Row is one effective setting for display.
type Row struct {
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`
	Source string `json:"source"`
}

// Rows lists the effective settings in the order of the table; a secret is "set".
func (v *Values) Rows() []Row {
	rows := make([]Row, 0, len(v.table))
	for _, s := range v.table {
		found := v.byKey[s.Name]
		if found.source == "" {
			found.source = FromDefault
		}
		rows = append(rows, Row{Name: s.Variable(), Value: hidePassword(found.text), Source: found.source})
	}
	return rows
}
