package main

import (
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"
)

// stub is a release of a program of two bytes with a manual of one page: everything but the build, in less than a second.
func stub(t *testing.T) *released {
	t.Helper()
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("the test does not know its build")
	}
	b := &builder{source: source, work: t.TempDir(), out: filepath.Join(t.TempDir(), "dist")}
	if err := prepare(b.out); err != nil {
		t.Fatal(err)
	}
	b.built = built{version: "v1.2.3-rc.1", commit: "0123456789abcdef0123456789abcdef01234567", date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), info: info}
	b.licence = file{"LICENSE", []byte("text"), 0o644}
	for _, name := range []string{"flowfabric.1.gz", "flowfabric-serve.1.gz"} {
		b.man = append(b.man, file{name, []byte("page"), 0o644})
	}
	for _, name := range []string{"bash/flowfabric", "fish/flowfabric.fish", "zsh/_flowfabric"} {
		b.complete = append(b.complete, file{name, []byte("script"), 0o644})
	}
	for _, step := range []func(platform, file, built) error{b.archive, b.materials, b.packages, b.image} {
		if err := step(target, file{"flowfabric", []byte("MZ"), 0o755}, b.built); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeChecksums(b.out); err != nil {
		t.Fatal(err)
	}
	return &released{dir: b.out}
}

func TestTheContentOfAReleaseIsThatOfTheProgram(t *testing.T) {
	t.Parallel()
	r := stub(t)
	checksumsHold(t, r)
	packagesAreComplete(t, r)
	if c := unpack(t, r.path(t, ".oci.tar")); c.config.User != "65532:65532" || c.config.Healthcheck == nil {
		t.Errorf("%+v", c.config)
	}
	if err := compareDirectories(r.dir, stub(t).dir); err != nil {
		t.Error(err)
	}
}
