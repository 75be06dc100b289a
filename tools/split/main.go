// Command split moves files of one package into packages below it, its rooms.
//
//	split DIR PLAN
//
// DIR is the root of the module. PLAN is a text file:
//
//	module  github.com/flowfabric/flowfabric
//	source  internal/engine            the package to split
//	type    Engine                     its central type
//	keep    wiring                     a file that is left alone: it is to be written anew by hand
//	name    unit Tx                    the exported name of an identifier; .x for fields of that name
//	room    internal/engine/txn   txn   Engine     the kernel: it gets the files that no other room names, and all tests
//	room    internal/engine/bulk  bulk  Jobs bulk* the type that has the methods of the central type in these files, and patterns of files
//
// Every identifier that another room uses is exported, and references are qualified. Methods of the central type that are declared in a room become
// methods of the room's type, which is to embed the kernel's. Methods of an interface change their names together. What others use of the package is
// written to facade.go, as aliases. References from the kernel to a room, and names that exist already, are reported, and nothing is changed then.
//
// Where the kernel's directory is that of the source, rooms are taken out of a kernel that stays where it is: no central type is replaced, no facade is
// written, and what other packages use of a room they find there. Methods in a room whose receivers are of the kernel become functions.
//
// The result may need a few changes by hand: the types of the rooms, the package that puts them together, and commands of a room that pass the
// room's value where the kernel's is wanted. Look for methods that are still unexported in types which embed a command: they override nothing.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: split DIR PLAN")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "split:", err)
		os.Exit(1)
	}
}

// room is a package to be.
type room struct {
	path, name, typ string
	patterns        []string
}

// splitter is one run.
type splitter struct {
	dir, module, source, special string
	keep                         string
	names                        map[string]string
	rooms                        []*room
	out                          io.Writer

	fset   *token.FileSet
	roomOf map[string]*room        // by file of the package, tests aside
	home   map[string]*room        // of what is declared in the package, by place
	rename map[string]string       // by place
	inner  map[string]string       // embedded fields, by place
	edits  map[string][]edit       // by file
	needs  map[string][]*room      // imports to add, by file
	facade map[string]types.Object // what others use, by qualified name
	faults int

	foreign map[string]foreign      // by place
	skip    map[*ast.FieldList]bool // receivers that are parameters now
	moved   []string
	handled map[*ast.Ident]bool // names of methods whose calls were rewritten
}

func run(dir, plan string, out io.Writer) error {
	s := &splitter{
		out: out, names: map[string]string{}, fset: token.NewFileSet(), roomOf: map[string]*room{}, home: map[string]*room{},
		rename: map[string]string{}, inner: map[string]string{}, edits: map[string][]edit{}, needs: map[string][]*room{}, facade: map[string]types.Object{},
		foreign: map[string]foreign{}, handled: map[*ast.Ident]bool{}, skip: map[*ast.FieldList]bool{},
	}
	var err error
	if s.dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err := s.readPlan(plan); err != nil {
		return err
	}
	all, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps,
		Dir:  s.dir, Fset: s.fset, Tests: true,
	}, "./...")
	if err != nil {
		return err
	}
	if packages.PrintErrors(all) > 0 {
		return errors.New("the module does not compile")
	}
	var source *packages.Package
	for _, p := range all {
		if p.ID == s.module+"/"+s.source {
			source = p
		}
	}
	if source == nil {
		return fmt.Errorf("no package %s", s.source)
	}
	s.plan(source)
	if s.faults > 0 {
		return fmt.Errorf("%d faults; nothing was changed", s.faults)
	}
	s.rewrite(all)
	if s.faults > 0 {
		return fmt.Errorf("%d faults; nothing was changed", s.faults)
	}
	if err := s.write(); err != nil || s.stays() {
		return err
	}
	return s.writeFacade()
}

func (s *splitter) readPlan(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case len(words) == 2 && words[0] == "module":
			s.module = words[1]
		case len(words) == 2 && words[0] == "source":
			s.source = words[1]
		case len(words) == 2 && words[0] == "type":
			s.special = words[1]
		case len(words) == 2 && words[0] == "keep":
			s.keep = words[1] + ".go"
		case len(words) == 3 && words[0] == "name":
			s.names[words[1]] = words[2]
		case len(words) >= 4 && words[0] == "room":
			s.rooms = append(s.rooms, &room{words[1], words[2], words[3], words[4:]})
		default:
			return fmt.Errorf("cannot read the line %q", lines.Text())
		}
	}
	if len(s.rooms) < 2 {
		return errors.New("a plan has a kernel and at least one more room")
	}
	return lines.Err()
}

func (s *splitter) kernel() *room { return s.rooms[0] }

// stays reports whether the kernel stays where it is: rooms are taken out of it.
func (s *splitter) stays() bool { return s.kernel().path == s.source }

// assign returns the room of a file.
func (s *splitter) assign(file string) *room {
	base := strings.TrimSuffix(filepath.Base(file), ".go")
	for _, r := range s.rooms[1:] {
		for _, pattern := range r.patterns {
			if ok, _ := path.Match(pattern, base); ok {
				return r
			}
		}
	}
	return s.kernel()
}

func (s *splitter) fault(at token.Pos, format string, args ...any) {
	s.faults++
	fmt.Fprintf(s.out, "%s: %s\n", s.fset.Position(at), fmt.Sprintf(format, args...))
}

func (s *splitter) fileOf(at token.Pos) string { return s.fset.Position(at).Filename }

// place identifies a declaration: a package with tests is loaded more than once, with objects of its own.
func (s *splitter) place(at token.Pos) string {
	p := s.fset.Position(at)
	return fmt.Sprintf("%s:%d", p.Filename, p.Offset)
}
