package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/sassoftware/go-rpmutils"
)

// packagesAreComplete looks into the .deb and the .rpm.
func packagesAreComplete(t *testing.T, r *released) {
	parts := ar(t, read(t, r.path(t, ".deb")))
	control, data := untar(t, parts["control.tar.gz"]), untar(t, parts["data.tar.gz"])
	modes := map[string]int64{
		"usr/bin/flowfabric": 0o755, "etc/flowfabric": 0o750, "etc/flowfabric/flowfabric.env": 0o640, "usr/lib/systemd/system/flowfabric.service": 0o644,
		"usr/share/man/man1/flowfabric.1.gz": 0o644, "usr/share/man/man1/flowfabric-serve.1.gz": 0o644,
		"usr/share/bash-completion/completions/flowfabric": 0o644, "usr/share/zsh/vendor-completions/_flowfabric": 0o644,
		"usr/share/fish/vendor_completions.d/flowfabric.fish": 0o644, "usr/share/doc/flowfabric/copyright": 0o644,
	}
	for name, mode := range modes {
		if found, there := data[name]; !there || found.Mode&0o7777 != mode || found.Uname != "root" {
			t.Errorf("%s: in the package %v, %+v", name, there, found.Header)
		}
	}
	if text := string(control["conffiles"].data); strings.TrimSpace(text) != "/etc/flowfabric/flowfabric.env" {
		t.Errorf("conffiles: %q", text)
	}
	for _, line := range []string{"Package: flowfabric", "Section: admin", "Depends: passwd", "Architecture: " + target.arch} {
		if !strings.Contains(string(control["control"].data), line+"\n") {
			t.Errorf("the control file has no line %q:\n%s", line, control["control"].data)
		}
	}
	for _, name := range []string{"postinst", "prerm", "postrm"} {
		if control[name].Header == nil || control[name].Mode&0o111 == 0 {
			t.Errorf("no script %s", name)
		}
	}
	delete(modes, "usr/share/zsh/vendor-completions/_flowfabric") // which Red Hat's zsh does not search
	modes["usr/share/zsh/site-functions/_flowfabric"] = 0o644
	rpmIsComplete(t, read(t, r.path(t, ".rpm")), modes)
}

func rpmIsComplete(t *testing.T, packed []byte, modes map[string]int64) {
	t.Helper()
	rpm, err := rpmutils.ReadRpm(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	listed, err := rpm.Header.GetFiles()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for _, f := range listed {
		found[strings.TrimPrefix(f.Name(), "/")] = int64(f.Mode() & 0o7777)
	}
	for name, mode := range modes {
		if got, there := found[name]; !there || got != mode {
			t.Errorf("rpm: %s has the mode %o", name, got)
		}
	}
	for tag, want := range map[int]string{rpmutils.NAME: "flowfabric", rpmutils.LICENSE: "Apache-2.0", rpmutils.BUILDHOST: "localhost"} {
		if got, err := rpm.Header.GetString(tag); err != nil || got != want {
			t.Errorf("rpm: tag %d is %q, want %q (%v)", tag, got, want, err)
		}
	}
	for _, tag := range []int{rpmutils.POSTIN, rpmutils.PREUN, rpmutils.POSTUN} {
		if got, err := rpm.Header.GetString(tag); err != nil || !strings.HasPrefix(got, "#!/bin/sh") {
			t.Errorf("rpm: script %d is %q (%v)", tag, got, err)
		}
	}
}

// ar reads the parts of an ar archive, which a .deb is.
func ar(t *testing.T, packed []byte) map[string][]byte {
	t.Helper()
	rest, ok := bytes.CutPrefix(packed, []byte("!<arch>\n"))
	if !ok {
		t.Fatal("not an ar archive")
	}
	parts := map[string][]byte{}
	for len(rest) >= 60 {
		name := strings.TrimRight(string(rest[:16]), " /")
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[48:58])))
		if err != nil || 60+size > len(rest) {
			t.Fatal(fmt.Errorf("part %s: %d %w", name, size, err))
		}
		parts[name] = rest[60 : 60+size]
		rest = rest[min(len(rest), 60+size+size%2):]
	}
	return parts
}
