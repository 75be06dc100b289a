package archtest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
)

// What is built belongs into bin, and what a random test wrote down when it failed becomes a seed or a story: neither is readable.
func TestTheTreeHoldsNoBuiltProgramAndNoSavedFailure(t *testing.T) {
	t.Parallel()
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	found, err := builtIn(os.DirFS(root))
	if err != nil || len(found) > 0 {
		t.Errorf("built, not written: %v, %v", found, err)
	}
}

func TestBuiltProgramsAndSavedFailuresAreFound(t *testing.T) {
	t.Parallel()
	found, err := builtIn(fstest.MapFS{
		"a/elf": {Data: []byte("\x7fELF\x02")}, "a/exe": {Data: []byte("MZ\x90\x00")}, "a/mach": {Data: []byte("\xcf\xfa\xed\xfe")},
		"a/testdata/rapid/TestX/TestX-1.fail": {Data: []byte("1#2")}, "bin/elf": {Data: []byte("\x7fELF\x02")},
		"short": {Data: []byte("M")}, "text.md": {Data: []byte("MZ is how they begin")}, "picture.png": {Data: []byte("\x89PNG")},
	})
	if want := []string{"a/elf", "a/exe", "a/mach", "a/testdata/rapid/TestX/TestX-1.fail"}; err != nil || !slices.Equal(found, want) {
		t.Errorf("found %v, %v; want %v", found, err, want)
	}
}

// programs are the first bytes of what compilers make for Linux, Windows and macOS.
var programs = []string{"\x7fELF", "MZ\x90\x00", "\xcf\xfa\xed\xfe"}

func builtIn(tree fs.FS) (found []string, err error) {
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "node_modules"}, d.Name()):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		case filepath.Ext(name) == ".fail":
			found = append(found, name)
			return nil
		}
		file, err := tree.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		head := make([]byte, 4)
		n, err := io.ReadFull(file, head)
		if slices.ContainsFunc(programs, func(begin string) bool { return bytes.HasPrefix(head[:n], []byte(begin)) }) {
			found = append(found, name)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		return err
	})
	return found, err
}
