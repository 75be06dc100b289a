package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// source is the checkout that the tests build.
const source = "../.."

// target is what the tests build: packages and images are for Linux, and the architecture is that of this machine, so that it runs.
var target = platform{"linux", runtime.GOARCH}

// TestARelease builds one platform once and looks at everything that comes out.
func TestARelease(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "dist")
	if err := run(t.Context(), []string{"-source", source, "-out", out, "-platforms", target.String()}); err != nil {
		t.Fatal(err)
	}
	r := &released{dir: out}
	for name, check := range map[string]func(*testing.T, *released){
		"the archive has a static program that knows its version, commit and date":  archiveIsComplete,
		"the checksums are those of the files":                                      checksumsHold,
		"the bill of materials names every module of the program":                   materialsAreComplete,
		"a second build writes the same bytes":                                      buildsAreEqual,
		"the packages have the program, the unit, the settings, manual and scripts": packagesAreComplete,
		"the image runs as it is, without root and with a health check":             imageRuns,
		"the package is installed on Debian, works, and leaves nothing when purged": debianInstalls,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, r)
		})
	}
}

// released is a directory with a release.
type released struct{ dir string }

// path is the file of the release with this ending.
func (r *released) path(t *testing.T, ending string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(r.dir, "flowfabric_*_linux_"+target.arch+ending))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %q %v", ending, found, err)
	}
	return found[0]
}

// untar reads a tar archive, compressed or not.
func untar(t *testing.T, packed []byte) map[string]entry {
	t.Helper()
	var r io.Reader = bytes.NewReader(packed)
	if bytes.HasPrefix(packed, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		r = unzipped
	}
	all := map[string]entry{}
	for reader := tar.NewReader(r); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.Trim(strings.TrimPrefix(header.Name, "."), "/")] = entry{header, data}
	}
}

type entry struct {
	*tar.Header
	data []byte
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// write writes a program where a test can run it.
func write(t *testing.T, program []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "flowfabric")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func archiveIsComplete(t *testing.T, r *released) {
	files := untar(t, read(t, r.path(t, ".tar.gz")))
	for _, name := range []string{"LICENSE", "man/flowfabric.1.gz", "man/flowfabric-serve.1.gz", "completions/bash/flowfabric", "completions/zsh/_flowfabric", "completions/fish/flowfabric.fish"} {
		if len(files[name].data) == 0 {
			t.Errorf("the archive has no %s", name)
		}
	}
	program := files["flowfabric"]
	if program.Mode != 0o755 {
		t.Errorf("the program has the mode %o", program.Mode)
	}
	parsed, err := elf.NewFile(bytes.NewReader(program.data))
	if err != nil {
		t.Fatal(err)
	}
	if needed, err := parsed.ImportedLibraries(); err != nil || len(needed) > 0 || slices.ContainsFunc(parsed.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Errorf("the program needs libraries: %q %v", needed, err)
	}
	text, err := exec.CommandContext(t.Context(), write(t, program.data), "version", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var said struct{ Version, Commit, Date string }
	if err := json.Unmarshal(text, &said); err != nil {
		t.Fatal(err)
	}
	commit := strings.TrimSpace(git(t, "rev-parse", "HEAD"))
	date := strings.TrimSpace(git(t, "-c", "log.showSignature=false", "log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ"))
	if said.Commit != commit || said.Date != date || !strings.HasPrefix(said.Version, "v") {
		t.Errorf("it says %+v, the checkout is %s of %s", said, commit, date)
	}
}

func git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Env = source, append(os.Environ(), "TZ=UTC")
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func checksumsHold(t *testing.T, r *released) {
	found, err := sums(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(read(t, filepath.Join(r.dir, marker)))), "\n")
	if len(lines) != len(found)-1 || len(lines) != 5 {
		t.Errorf("%d lines for %d files", len(lines), len(found))
	}
	for _, line := range lines {
		sum, name, ok := strings.Cut(line, "  ")
		if !ok || found[name] != sum {
			t.Errorf("%q, but the sum is %s", line, found[name])
		}
	}
}

func materialsAreComplete(t *testing.T, r *released) {
	var bill struct {
		Format     string `json:"bomFormat"`
		Version    string `json:"specVersion"`
		Components []struct{ Name, Version, Purl string }
	}
	if err := json.Unmarshal(read(t, r.path(t, ".cdx.json")), &bill); err != nil {
		t.Fatal(err)
	}
	program, err := readBuilt(write(t, untar(t, read(t, r.path(t, ".tar.gz")))["flowfabric"].data))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, c := range bill.Components {
		listed[c.Name] = c.Version
	}
	for _, dep := range program.info.Deps {
		if listed[dep.Path] != dep.Version {
			t.Errorf("%s is %s in the program and %q in the bill", dep.Path, dep.Version, listed[dep.Path])
		}
	}
	if bill.Format != "CycloneDX" || bill.Version != "1.6" || listed["stdlib"] == "" || len(listed) != len(program.info.Deps)+1 {
		t.Errorf("%s %s with %d components for %d modules", bill.Format, bill.Version, len(listed), len(program.info.Deps))
	}
}

// buildsAreEqual builds again under another time zone, language and directory for temporary files. `make dist-reproduce` does the same
// from a second clone and an empty build cache.
func buildsAreEqual(t *testing.T, r *released) {
	again := filepath.Join(t.TempDir(), "again")
	cmd := exec.CommandContext(t.Context(), "go", "run", ".", "-source", source, "-out", again, "-platforms", target.String())
	cmd.Env = append(os.Environ(), "TZ=Asia/Kathmandu", "LANG=C", "TMPDIR="+t.TempDir(), "USER=nobody", "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := compareDirectories(r.dir, again); err != nil {
		t.Error(err)
	}
}

func TestBuildsThatDifferAreFound(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir()}
	put := func(i int, name, text string) {
		if err := os.WriteFile(filepath.Join(dirs[i], name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := compareDirectories(dirs[0], dirs[1]); err == nil {
		t.Error("two empty directories are equal")
	}
	put(0, "same", "1")
	put(1, "same", "1")
	if err := compareDirectories(dirs[0], dirs[1]); err != nil {
		t.Error(err)
	}
	put(0, "other", "1")
	put(1, "other", "2")
	put(0, "first", "")
	put(1, "second", "")
	err := compareDirectories(dirs[0], dirs[1])
	for _, name := range []string{"other", "first", "second"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not reported: %v", name, err)
		}
	}
}

func TestADirectoryThatOthersFilledIsNotEmptied(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "letter")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := release(context.Background(), source, dir, nil); err == nil {
		t.Error("accepted")
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestTheArchiveForWindowsIsAZip(t *testing.T) {
	t.Parallel()
	b := &builder{out: t.TempDir(), built: built{version: "v1.2.3"}, licence: file{"LICENSE", []byte("text"), 0o644}}
	p := platform{"windows", "arm64"}
	if err := b.archive(p, file{p.program(), []byte("MZ"), 0o755}, b.built); err != nil {
		t.Fatal(err)
	}
	r, err := zip.OpenReader(filepath.Join(b.out, "flowfabric_1.2.3_windows_arm64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if len(r.File) != 2 || r.File[0].Name != "flowfabric.exe" {
		t.Errorf("%d files, the first %s", len(r.File), r.File[0].Name)
	}
}

func TestVersionsOfPackagesAreOrderedAsTheReleasesAre(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3", "v1.2.3-rc.1": "1.2.3~rc.1", "v0.0.0-20261119013010-a4e3caf37339+dirty": "0.0.0~20261119013010.a4e3caf37339+dirty",
	} {
		if got := packageVersion(version); got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
	if got := imageTag("v1.0.0+dirty"); got != "1.0.0-dirty" {
		t.Error(got)
	}
}

func TestUnknownPlatformsAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := parsePlatforms("linux/amd64,plan9/386"); err == nil {
		t.Error("accepted")
	}
}
