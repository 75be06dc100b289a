package wire

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/api"
)

func TestU2_every_operation_is_there_once(t *testing.T) {
	t.Parallel()
	ids, routes := map[string]bool{}, map[string]bool{}
	for _, o := range Operations() {
		if ids[o.ID] {
			t.Errorf("two operations are called %s", o.ID)
		}
		if route := o.Method + " " + o.Path; routes[route] {
			t.Errorf("two operations are %s", route)
		}
		ids[o.ID], routes[o.Method+" "+o.Path] = true, true
		if !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(o.ID) {
			t.Errorf("%s is no name for an operation", o.ID)
		}
	}
}

func TestU2_every_operation_is_reachable_from_go_and_the_command_line_or_says_why_not(t *testing.T) {
	t.Parallel()
	for _, o := range Operations() {
		if (o.Go == "") == (o.NoGo == "") {
			t.Errorf("%s: Go %q, NoGo %q: exactly one is needed", o.ID, o.Go, o.NoGo)
		}
		if (o.Command == "") == (o.NoCommand == "") {
			t.Errorf("%s: Command %q, NoCommand %q: exactly one is needed", o.ID, o.Command, o.NoCommand)
		}
	}
}

func TestU2_what_is_no_part_of_the_http_api_says_so_and_has_no_route(t *testing.T) {
	t.Parallel()
	for _, o := range localCalls {
		if o.Local == "" || o.Path != "" || slices.Contains(Operations(), o) {
			t.Errorf("%s: local %q at %q", o.ID, o.Local, o.Path)
		}
	}
	for _, o := range Operations() {
		if o.Local != "" {
			t.Errorf("%s is in the table, and local: %s", o.ID, o.Local)
		}
	}
}

func TestU2_no_call_is_left_out_of_the_table(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	var declared []string
	eachFile(t, func(file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			literal, ok := spec.Values[0].(*ast.CompositeLit)
			if !ok {
				return true
			}
			if strings.HasSuffix(spec.Names[0].Name, "Calls") {
				for _, e := range literal.Elts {
					for _, argument := range e.(*ast.CallExpr).Args {
						if id, ok := argument.(*ast.Ident); ok {
							listed[id.Name] = true
						}
					}
				}
			} else if generic, ok := literal.Type.(*ast.IndexListExpr); ok && generic.X.(*ast.Ident).Name == "Call" {
				declared = append(declared, spec.Names[0].Name)
			}
			return true
		})
	})
	if len(declared) < 50 {
		t.Fatalf("only %d calls were found: the test does not see them", len(declared))
	}
	for _, name := range declared {
		if !listed[name] {
			t.Errorf("%s is in no list: add it at the head of its file", name)
		}
	}
}

// eachFile parses the files of this package that are no tests.
func eachFile(t *testing.T, see func(*ast.File)) {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		see(file)
	}
}

func TestU4_every_path_begins_with_the_version_or_is_for_monitors_and_readers(t *testing.T) {
	t.Parallel()
	outside := []string{"/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/problems/{code}", "/approve/{link}/{token}"}
	for _, o := range Operations() {
		if !strings.HasPrefix(o.Path, "/v1/") && !slices.Contains(outside, o.Path) {
			t.Errorf("%s is at %s", o.ID, o.Path)
		}
	}
}

func TestU116_every_operation_can_be_routed(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	for _, o := range Operations() {
		mux.HandleFunc(o.Method+" "+o.Path, func(http.ResponseWriter, *http.Request) {}) // panics on a conflict
	}
}

func TestU116_every_path_parameter_has_a_field_and_the_other_way_round(t *testing.T) {
	t.Parallel()
	for _, o := range Operations() {
		var inFields, inRoute []string
		for _, param := range planOf(o.Request).params {
			if param.in == inPath {
				inFields = append(inFields, param.name)
			}
		}
		for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(o.Path, -1) {
			inRoute = append(inRoute, m[1])
		}
		slices.Sort(inFields)
		slices.Sort(inRoute)
		if !slices.Equal(inFields, inRoute) {
			t.Errorf("%s: the path has %v, the request %v", o.ID, inRoute, inFields)
		}
	}
}

func TestU5_a_get_has_no_body(t *testing.T) {
	t.Parallel()
	for _, o := range Operations() {
		if p := planOf(o.Request); o.Method == http.MethodGet && (p.body != nil || p.raw != nil) {
			t.Errorf("%s has a body", o.ID)
		}
	}
}

func TestU18_what_waits_has_the_fields_for_it(t *testing.T) {
	t.Parallel()
	for _, o := range Operations() {
		p, _ := planOf(o.Request).parameter("wait_ms")
		if (p != nil) != o.Waits {
			t.Errorf("%s: waits %t, takes wait_ms %t", o.ID, o.Waits, p != nil)
		}
	}
}

func TestU11_statuses_and_kinds_of_answers_agree(t *testing.T) {
	t.Parallel()
	for _, o := range Operations() {
		if len(o.Status) == 0 || o.Summary == "" || o.Rule == "" || o.Roles == 0 {
			t.Errorf("%s is not described", o.ID)
		}
		for _, status := range o.Status {
			if o.Reserved != (status == http.StatusNotImplemented) || !o.Reserved && status >= 300 {
				t.Errorf("%s: %d is no status of success", o.ID, status)
			}
		}
		if o.Raw != (o.Answer == reflect.TypeFor[Raw]() || o.Answer == reflect.TypeFor[Sink]()) {
			t.Errorf("%s: raw %t, answer %s", o.ID, o.Raw, o.Answer)
		}
		if empty := slices.Equal(o.Status, []int{http.StatusNoContent}) || o.Reserved; empty != (o.Answer == reflect.TypeFor[None]()) {
			t.Errorf("%s: statuses %v, answer %s", o.ID, o.Status, o.Answer)
		}
		for role := range o.Only {
			if (o.Roles|Admin)&role == 0 {
				t.Errorf("%s bounds %s, which may not call it", o.ID, role)
			}
		}
	}
}

func TestU23_only_answers_with_a_secret_are_marked_so(t *testing.T) {
	t.Parallel()
	for _, o := range Operations() {
		has := holdsSecret(o.Answer) && o.ID != SendWork.ID // a batch says so when one of its answers has a token
		if has != o.Secret {
			t.Errorf("%s: secret %t, marked %t", o.ID, has, o.Secret)
		}
	}
}

// holdsSecret reports whether an answer has a field that must not be cached.
func holdsSecret(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer:
		return holdsSecret(t.Elem())
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if f.Tag.Get("json") == "-" {
				continue
			}
			deeper := f.Type.Kind() == reflect.Slice || f.Type == reflect.TypeFor[*api.RevealedGrant]()
			if f.Name == "Secret" || f.Name == "Token" || f.Name == "GrantKey" || f.Name == "URL" || deeper && holdsSecret(f.Type) {
				return true
			}
		}
	}
	return false
}

func TestU5_names_are_snake_case_and_every_field_is_described(t *testing.T) {
	t.Parallel()
	snake := regexp.MustCompile(`^[a-z0-9]+(_[a-z0-9]+)*$`)
	eachField(func(owner reflect.Type, f reflect.StructField, in, name string) {
		plain := strings.TrimSuffix(name, ".")
		if in != "header" && !snake.MatchString(plain) {
			t.Errorf("%s.%s is called %s", owner, f.Name, name)
		}
		doc := f.Tag.Get("doc")
		if !strings.HasSuffix(doc, ".") || strings.Contains(doc, "  ") {
			t.Errorf("%s.%s is described as %q: one sentence is needed", owner, f.Name, doc)
		}
	})
}

func TestU6_instants_and_durations_are_known_by_their_names(t *testing.T) {
	t.Parallel()
	instant := regexp.MustCompile(`(^|_)(at|since|until|from|to)$|^as_of$|^server_time$`)
	isTime := func(typ reflect.Type) bool {
		return typ == reflect.TypeFor[Time]() || typ == reflect.TypeFor[*Time]() || typ == reflect.TypeFor[time.Time]() || typ == reflect.TypeFor[*time.Time]()
	}
	eachField(func(owner reflect.Type, f reflect.StructField, _, name string) {
		ends := []reflect.Type{reflect.TypeFor[FlowEdge](), reflect.TypeFor[ListEdgesRequest](), reflect.TypeFor[api.NamedInput](), reflect.TypeFor[ReadStreamRequest](), reflect.TypeFor[ReplayedEvents]()} // U89, U91, U28 call members so, U107 frames, E39 events
		if named := instant.MatchString(name) && name != "resumed_from" && name != "hand_to" && !slices.Contains(ends, owner); isTime(f.Type) != named {                                                     // U28 calls a word so, U50 a worker
			t.Errorf("%s.%s is called %s and is a %s", owner, f.Name, name, f.Type)
		}
		whole := f.Type == reflect.TypeFor[int64]() || f.Type == reflect.TypeFor[*int64]() || f.Type == reflect.TypeFor[api.Retention]() ||
			f.Type == reflect.TypeFor[time.Duration]()
		if strings.HasSuffix(name, "_ms") && !whole {
			t.Errorf("%s.%s is called %s and is a %s", owner, f.Name, name, f.Type)
		}
	})
}

// eachField visits the fields of all requests and answers once, with where they travel and their name there.
func eachField(visit func(owner reflect.Type, f reflect.StructField, in, name string)) {
	seen := map[reflect.Type]bool{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		switch {
		case seen[t] || t == reflect.TypeFor[Time]() || t == reflect.TypeFor[time.Time]() || t == reflect.TypeFor[Raw]() || t == reflect.TypeFor[HeldLease]():
			return
		case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map:
			walk(t.Elem())
			return
		case t.Kind() != reflect.Struct || t == reflect.TypeFor[LeaseRef]():
			return
		}
		seen[t] = true
		for i := range t.NumField() {
			f := t.Field(i)
			walk(f.Type)
			for _, in := range []string{"json", "path", "query", "header"} {
				if name, _, _ := strings.Cut(f.Tag.Get(in), ","); name != "" && name != "-" {
					visit(t, f, in, name)
				}
			}
		}
	}
	for _, o := range Operations() {
		walk(o.Request)
		walk(o.Answer)
	}
}
