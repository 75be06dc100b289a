package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// edit replaces a part of a file.
type edit struct {
	from, to int
	text     string
}

// rewrite collects the edits of all files.
func (s *splitter) rewrite(all []*packages.Package) {
	done := map[string]bool{}
	for _, p := range all {
		for _, f := range p.Syntax {
			if name := s.fileOf(f.Pos()); !done[name] && strings.HasPrefix(name, s.dir+"/") {
				done[name] = true
				s.rewriteFile(p, f, name)
			}
		}
	}
}

func (s *splitter) replace(at token.Pos, old, text string) {
	p := s.fset.Position(at)
	if old != text {
		s.edits[p.Filename] = append(s.edits[p.Filename], edit{p.Offset, p.Offset + len(old), text})
	}
}

func (s *splitter) rewriteFile(p *packages.Package, f *ast.File, name string) {
	r := s.roomOf[name] // nil: of another package, or a test
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			s.qualified(p, name, n)
		case *ast.CallExpr:
			s.asCall(p, r, name, n)
		case *ast.FuncDecl:
			s.renameDoc(p, n.Doc, n.Name)
			if m, ok := s.foreign[s.place(n.Name.Pos())]; ok {
				s.asFunction(p, m)
				s.skip[n.Recv] = true
			}
		case *ast.FieldList:
			if s.skip[n] {
				return false
			}
		case *ast.GenDecl:
			if len(n.Specs) == 1 && n.Lparen == token.NoPos {
				s.renameDoc(p, n.Doc, namesOf(n.Specs[0])...)
			}
		case *ast.TypeSpec:
			s.renameDoc(p, n.Doc, n.Name)
		case *ast.ValueSpec:
			s.renameDoc(p, n.Doc, n.Names...)
		case *ast.Field:
			s.renameDoc(p, n.Doc, n.Names...)
		case *ast.Ident:
			s.renameIdent(p, r, name, n)
		}
		return true
	})
}

// qualified handles what another package, or a test outside the package, uses of the source.
func (s *splitter) qualified(p *packages.Package, file string, n *ast.SelectorExpr) {
	of, ok := n.X.(*ast.Ident)
	if !ok {
		return
	}
	imported, ok := p.TypesInfo.Uses[of].(*types.PkgName)
	if !ok || imported.Imported().Path() != s.module+"/"+s.source {
		return
	}
	obj := origin(p.TypesInfo.Uses[n.Sel])
	if s.stays() {
		if home := s.home[s.place(obj.Pos())]; home != nil && home != s.kernel() {
			s.replace(of.Pos(), of.Name, home.name)
			s.needs[file] = append(s.needs[file], home)
		}
		return
	}
	switch home := s.home[s.place(obj.Pos())]; {
	case home == nil: // of a test inside the package
		s.replace(of.Pos(), of.Name, s.kernel().name)
		s.needs[file] = append(s.needs[file], s.kernel())
	case obj.Name() != s.special && !strings.HasSuffix(s.fileOf(obj.Pos()), "/"+s.keep):
		s.facade[home.name+"."+obj.Name()] = obj
	}
}

func (s *splitter) renameIdent(p *packages.Package, r *room, file string, id *ast.Ident) {
	used := p.TypesInfo.Uses[id]
	obj := used
	if obj == nil {
		obj = p.TypesInfo.Defs[id]
	}
	if obj == nil || obj.Pkg() == nil || obj.Pkg().Path() != s.module+"/"+s.source {
		return
	}
	obj = origin(obj)
	at := s.place(obj.Pos())
	if _, ok := s.foreign[at]; ok && used != nil {
		if !s.handled[id] {
			s.fault(id.Pos(), "the method %s becomes a function, and is no call here", id.Name)
		}
		return
	}
	to, renamed := s.rename[at]
	field := false
	if v, ok := obj.(*types.Var); ok && v.IsField() {
		field = true
		if v.Embedded() {
			if used == nil {
				return // the type that names it is edited as such
			}
			to, renamed = s.inner[at]
		}
	}
	if !renamed {
		to = id.Name
	}
	if home := s.home[at]; r != nil && home != nil && home != r && used != nil && !field {
		if obj.Name() == s.special && r != s.kernel() && !s.stays() {
			to = r.typ
		} else {
			to = home.name + "." + to
			s.needs[file] = append(s.needs[file], home)
		}
	}
	s.replace(id.Pos(), id.Name, to)
}

func namesOf(spec ast.Spec) []*ast.Ident {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return []*ast.Ident{spec.Name}
	case *ast.ValueSpec:
		return spec.Names
	}
	return nil
}

// renameDoc changes the name at the start of a comment.
func (s *splitter) renameDoc(p *packages.Package, doc *ast.CommentGroup, ids ...*ast.Ident) {
	for _, id := range ids {
		obj := p.TypesInfo.Defs[id]
		if doc == nil || obj == nil || s.rename[s.place(obj.Pos())] == "" {
			continue
		}
		if strings.HasPrefix(doc.List[0].Text, "// "+id.Name+" ") || strings.HasPrefix(doc.List[0].Text, "// "+id.Name+",") {
			s.replace(doc.List[0].Pos()+3, id.Name, s.rename[s.place(obj.Pos())])
		}
	}
}

// write applies the edits and moves the files of the package.
func (s *splitter) write() error {
	source := filepath.Join(s.dir, s.source)
	files := maps.Clone(s.edits)
	entries, err := os.ReadDir(source)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name := filepath.Join(source, entry.Name()); strings.HasSuffix(name, ".go") {
			files[name] = s.edits[name]
		}
	}
	delete(files, filepath.Join(source, s.keep))
	for name, edits := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		out, target := apply(text, edits), name
		if filepath.Dir(name) == source {
			r := s.roomOf[name]
			if r == nil {
				r = s.kernel()
			}
			for _, suffix := range []string{"", "_test"} {
				old := "package " + path.Base(s.source) + suffix + "\n"
				if i := strings.Index("\n"+out, "\n"+old); i >= 0 {
					out = out[:i] + "package " + r.name + suffix + "\n" + out[i+len(old):]
				}
			}
			target = filepath.Join(s.dir, r.path, filepath.Base(name))
			if name != target && s.stays() {
				s.moved = append(s.moved, target)
			}
		}
		if err := s.put(name, target, s.withImports(name, out)); err != nil {
			return err
		}
	}
	return nil
}

// put writes a file, and removes it from where it was.
func (s *splitter) put(name, target, text string) error {
	formatted, err := format.Source([]byte(text))
	if err != nil {
		fmt.Fprintf(s.out, "%s: %v\n", target, err)
		formatted = []byte(text)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	if target != name {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return os.WriteFile(target, formatted, 0o600)
}

func apply(text []byte, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	edits = slices.Compact(edits)
	var out strings.Builder
	at := 0
	for _, e := range edits {
		out.Write(text[at:e.from])
		out.WriteString(e.text)
		at = e.to
	}
	out.Write(text[at:])
	return out.String()
}

// withImports adds imports to the last group of a file's. Imports that are not used any more are left to goimports.
func (s *splitter) withImports(name, text string) string {
	for _, r := range s.needs[name] {
		line := "\t\"" + s.module + "/" + r.path + "\"\n"
		if strings.Contains(text, line) {
			continue
		}
		if i := strings.Index(text, "\nimport (\n"); i >= 0 {
			end := i + strings.Index(text[i:], "\n)\n") + 1
			text = text[:end] + line + text[end:]
			continue
		}
		clause := strings.Index("\n"+text, "\npackage ")
		end := clause + strings.Index(text[clause:], "\n") + 1
		text = text[:end] + "\nimport (\n" + line + ")\n" + text[end:]
	}
	return text
}

// writeFacade writes what others use of the package, for the package that puts the rooms together.
func (s *splitter) writeFacade() error {
	kinds := map[string][]string{}
	var imports strings.Builder
	for _, r := range s.rooms {
		fmt.Fprintf(&imports, "\t%q\n", s.module+"/"+r.path)
	}
	for name, obj := range s.facade {
		kind := "var" // functions: to be written as such by hand
		switch obj.(type) {
		case *types.TypeName:
			kind = "type"
		case *types.Const:
			kind = "const"
		}
		kinds[kind] = append(kinds[kind], "\t"+obj.Name()+" = "+name+"\n")
	}
	text := "package " + path.Base(s.source) + "\n\nimport (\n" + imports.String() + ")\n"
	for _, kind := range []string{"type", "const", "var"} {
		if len(kinds[kind]) > 0 {
			slices.Sort(kinds[kind])
			text += "\n" + kind + " (\n" + strings.Join(kinds[kind], "") + ")\n"
		}
	}
	target := filepath.Join(s.dir, s.source, "facade.go")
	return s.put(target, target, text)
}
