package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/flowfabric/flowfabric/api"
)

// TestU25_every_code_that_is_raised_says_what_it_means reads from internal/archtest which codes wait for their feature.
func TestU25_every_code_that_is_raised_says_what_it_means(t *testing.T) {
	t.Parallel()
	waiting := awaitedCodes(t)
	if len(waiting) == 0 {
		t.Fatal("archtest lists no codes that wait for their feature: then this test need not ask it")
	}
	for _, info := range api.Codes() {
		if !waiting[info.Code] && (info.Meaning == "" || info.Advice == "") {
			t.Errorf("%s is raised and has no text in internal/core/base/code_texts.go", info.Code)
		}
	}
}

// awaitedCodes are the texts inside the variable awaited, without the names of the features.
func awaitedCodes(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "internal/archtest/codes_test.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || v.Names[0].Name != "awaited" {
			return true
		}
		ast.Inspect(v, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok {
				name, _ := strconv.Unquote(text.Value)
				all[name] = true
			}
			return true
		})
		return false
	})
	return all
}
