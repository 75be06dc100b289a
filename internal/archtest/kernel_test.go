package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// kernel is the package of transactions, which knows no feature.
const kernel = "internal/engine/txn"

// maxFeatureWords bounds the lines of the kernel with words of features. Those that are left are types of core and names of packages.
const maxFeatureWords = 16

// maxShared bounds the types that three or more layers declare under one name.
const maxShared = 12

// maxEngineMethods bounds the methods of the engine itself: all others belong to its rooms.
const maxEngineMethods = 25

func TestTheKernelKnowsNoFeature(t *testing.T) {
	t.Parallel()
	holds(t, checkKernel(maxFeatureWords), "a feature is a room: it registers phases, timers, events and counters with the kernel, which has no word for it")
}

func TestWordsOfFeaturesInTheKernelAreFound(t *testing.T) {
	t.Parallel()
	finds(t, checkKernel(1), []example{
		{name: "as many as may be", files: map[string]string{
			"internal/engine/txn/a.go": "package txn\n\nimport _ \"github.com/flowfabric/flowfabric/api\"\n\n// a budget and a quota\n", "internal/engine/txn/a_test.go": "package txn\n\n// flow\n// grant\n",
			"internal/engine/flows/a.go": "package flows\n\n// flow\n// signal\n",
		}},
		{name: "one more", files: map[string]string{"internal/engine/txn/a.go": "package txn\n\n// Flows are here.\nvar useBudget, waitpointOf int\n"}, want: []string{"2 lines"}},
	})
}

// checkKernel finds more than so many lines with words of features in the kernel.
func checkKernel(most int) checker {
	words := regexp.MustCompile(`(?i)budget|quota|flow|waitpoint|signal|grant|picker`)
	return func(all []source) []string {
		var found []string
		for _, s := range all {
			if !s.isGo() || s.isTest() || s.dir() != kernel {
				continue
			}
			for i, line := range strings.Split(s.text, "\n") {
				if words.MatchString(strings.ReplaceAll(line, "flowfabric", "")) {
					found = append(found, fmt.Sprintf("%s:%d", s.path, i+1))
				}
			}
		}
		if len(found) <= most {
			return nil
		}
		return []string{fmt.Sprintf("%d lines of the kernel have words of features, at most %d: %s", len(found), most, strings.Join(found, ", "))}
	}
}

func TestTheEngineItselfHasFewMethods(t *testing.T) {
	t.Parallel()
	holds(t, checkEngineMethods, "the engine puts its rooms together: what it does is a method of a room")
}

func checkEngineMethods(all []source) []string {
	n := 0
	for _, s := range all {
		if !s.isGo() || s.isTest() || s.dir() != "internal/engine" {
			continue
		}
		for _, decl := range s.file.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Recv != nil {
				n++
			}
		}
	}
	if n > maxEngineMethods {
		return []string{fmt.Sprintf("internal/engine declares %d methods, at most %d", n, maxEngineMethods)}
	}
	return nil
}

func TestAValueIsDeclaredOnce(t *testing.T) {
	t.Parallel()
	holds(t, checkShared(maxShared), "a value that travels is declared once, in api; an alias is no declaration")
}

func TestTypesOfManyLayersAreFound(t *testing.T) {
	t.Parallel()
	finds(t, checkShared(0), []example{
		{name: "in two layers, and as an alias", files: map[string]string{
			"api/a.go": "package api\ntype Lease int\ntype lease int\n", "internal/core/a.go": "package core\ntype Lease int\n",
			"a.go": "package p\ntype Lease = int\n", "internal/core/base/a.go": "package base\ntype Lease int\n", "internal/store/a.go": "package store\ntype Lease int\n",
		}},
		{name: "in three layers", files: map[string]string{
			"ops/a.go": "package ops\ntype Lease int\n", "internal/engine/work/a.go": "package work\ntype Lease int\n", "internal/wire/a.go": "package wire\ntype Lease int\n",
		}, want: []string{"1 types"}},
	})
}

// checkShared finds more than so many types that three or more layers declare under one name.
func checkShared(most int) checker {
	return func(all []source) []string {
		layers := map[string]map[string]bool{}
		for _, s := range all {
			if layer := layerOf(s); layer != "" {
				for _, name := range typesOf(s) {
					if layers[name] == nil {
						layers[name] = map[string]bool{}
					}
					layers[name][layer] = true
				}
			}
		}
		var shared []string
		for _, name := range slices.Sorted(maps.Keys(layers)) {
			if len(layers[name]) >= 3 {
				shared = append(shared, name)
			}
		}
		if len(shared) <= most {
			return nil
		}
		return []string{fmt.Sprintf("%d types are declared in three or more layers, at most %d: %s", len(shared), most, strings.Join(shared, ", "))}
	}
}

// layerOf returns the layer of a file among those through which a value travels; "": it belongs to none.
func layerOf(s source) string {
	if !s.isGo() || s.isTest() {
		return ""
	}
	dir := s.dir()
	switch {
	case dir == ".":
		return "root"
	case dir == "api", dir == "ops", dir == "workapi":
		return "api"
	case dir == "internal/wire", dir == "internal/service":
		return dir
	case under(dir, "internal/engine"):
		return "engine"
	case under(dir, "internal/core"):
		return "core"
	}
	return ""
}

// typesOf returns the exported types that a file declares, aliases aside.
func typesOf(s source) (names []string) {
	for _, decl := range s.file.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok || d.Tok != token.TYPE {
			continue
		}
		for _, spec := range d.Specs {
			if t, ok := spec.(*ast.TypeSpec); ok && t.Assign == token.NoPos && t.Name.IsExported() {
				names = append(names, t.Name.Name)
			}
		}
	}
	return names
}

func TestNoOperationIsWrittenTwiceInTheRoot(t *testing.T) {
	t.Parallel()
	holds(t, checkTwins, "there is one client over two transports: an operation that knows its transport belongs to internal/transport")
	finds(t, checkTwins, []example{{
		name:  "a file for one transport",
		files: map[string]string{"remote_flows.go": "package p\n", "wire_flows.go": "package p\n", "embedded_flows.go": "package p\n", "remote_test.go": "package p\n", "connected_test.go": "package p\n", "internal/wire/wire_a.go": "package wire\n"},
		want:  []string{"embedded_flows.go", "remote_flows.go", "remote_test.go", "wire_flows.go"},
	}})
}

// checkTwins finds files of the root that are about one transport.
func checkTwins(all []source) (found []string) {
	for _, s := range all {
		if !s.isGo() || s.dir() != "." {
			continue
		}
		for _, prefix := range []string{"embedded_", "remote_", "wire_"} {
			if strings.HasPrefix(s.path, prefix) {
				found = append(found, s.path+" is about one transport")
			}
		}
	}
	return found
}
