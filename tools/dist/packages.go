package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

// packager writes one kind of package.
type packager struct {
	ending string
	needs  []string
	nfpm.Packager
}

// packages writes the .deb and the .rpm.
func (b *builder) packages(p platform, program file, of built) error {
	staged, err := b.stage(p, program)
	if err != nil {
		return err
	}
	for _, kind := range []packager{{".deb", []string{"passwd"}, deb.Default}, {".rpm", []string{"shadow-utils"}, rpm.DefaultRPM}} {
		info := b.packageInfo(p, of, staged)
		info.Depends = kind.needs
		var packed bytes.Buffer
		if err := nfpm.PrepareForPackager(info, strings.TrimPrefix(kind.ending, ".")); err != nil {
			return fmt.Errorf("%s: %w", kind.ending, err)
		}
		if err := kind.Package(info, &packed); err != nil {
			return fmt.Errorf("%s: %w", kind.ending, err)
		}
		if err := publish(b.name(p, kind.ending), packed.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// stage writes the files that packages take from the build.
func (b *builder) stage(p platform, program file) (string, error) {
	dir := filepath.Join(b.work, p.os+"-"+p.arch, "package")
	staged := []file{program, b.licence}
	for _, page := range b.man {
		staged = append(staged, file{"man/" + page.name, page.data, page.mode})
	}
	for _, script := range b.complete {
		staged = append(staged, file{"completions/" + script.name, script.data, script.mode})
	}
	for _, f := range staged {
		path := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, f.data, f.mode); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// packageInfo describes the package. nfpm adds the names that each distribution has for architectures and sections.
func (b *builder) packageInfo(p platform, of built, staged string) *nfpm.Info {
	ours := filepath.Join(b.source, "deploy", "package")
	from := func(path, to string, mode os.FileMode) *files.Content {
		return &files.Content{Source: path, Destination: to, FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: of.date}}
	}
	zsh := func(kind, searched string) *files.Content { // the distributions search different directories
		completion := from(filepath.Join(staged, "completions", "zsh", "_flowfabric"), "/usr/share/zsh/"+searched+"/_flowfabric", 0o644)
		completion.Packager = kind
		return completion
	}
	config := from(filepath.Join(ours, "flowfabric.env"), "/etc/flowfabric/flowfabric.env", 0o640)
	config.Type = files.TypeConfigNoReplace
	directory := from("", "/etc/flowfabric", 0o750)
	directory.Type = files.TypeDir
	contents := files.Contents{
		from(filepath.Join(staged, "flowfabric"), "/usr/bin/flowfabric", 0o755),
		from(filepath.Join(staged, "LICENSE"), "/usr/share/doc/flowfabric/copyright", 0o644),
		from(filepath.Join(ours, "flowfabric.service"), "/usr/lib/systemd/system/flowfabric.service", 0o644),
		from(filepath.Join(staged, "completions", "bash", "flowfabric"), "/usr/share/bash-completion/completions/flowfabric", 0o644),
		zsh("deb", "vendor-completions"), zsh("rpm", "site-functions"),
		from(filepath.Join(staged, "completions", "fish", "flowfabric.fish"), "/usr/share/fish/vendor_completions.d/flowfabric.fish", 0o644),
		directory, config,
	}
	for _, page := range b.man {
		contents = append(contents, from(filepath.Join(staged, "man", page.name), "/usr/share/man/man1/"+page.name, 0o644))
	}
	script := func(name string) string { return filepath.Join(ours, name) }
	return &nfpm.Info{
		Name: "flowfabric", Arch: p.arch, Platform: p.os, Section: "admin", Priority: "optional",
		Version: packageVersion(of.version), VersionSchema: "none", Release: "1", MTime: of.date,
		Maintainer: "FlowFabric maintainers <flowfabric@users.noreply.github.com>", Homepage: "https://" + of.info.Main.Path, License: "Apache-2.0",
		Description: "durable execution engine\nFlowFabric runs work that survives crashes: steps, retries, approvals, flows and limits.\nThis package has the server, worker and client in one program, and a systemd unit.",
		Overridables: nfpm.Overridables{
			Contents: contents,
			Scripts: nfpm.Scripts{
				PostInstall: script("postinst"), PreRemove: script("prerm"), PostRemove: script("postrm"),
			},
			RPM: nfpm.RPM{BuildHost: "localhost", Summary: "durable execution engine", Compression: "zstd"},
			Deb: nfpm.Deb{Compression: "gzip"},
		},
	}
}

// packageVersion writes a version as packages order it: what comes before a release sorts before it, and no part has a hyphen, which
// would begin the release of the package.
func packageVersion(version string) string {
	version = strings.TrimPrefix(version, "v")
	release, before, pre := strings.Cut(version, "-")
	if !pre {
		return release
	}
	return release + "~" + strings.ReplaceAll(before, "-", ".")
}
