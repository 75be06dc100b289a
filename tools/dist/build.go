package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// platform is an operating system with an architecture, as the go command names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// program is the file name of a program.
func (p platform) program() string {
	if p.os == "windows" {
		return "flowfabric.exe"
	}
	return "flowfabric"
}

func allPlatforms() []string {
	return []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}
}

func parsePlatforms(text string) ([]platform, error) {
	var all []platform
	for name := range strings.SplitSeq(text, ",") {
		if !slices.Contains(allPlatforms(), name) {
			return nil, fmt.Errorf("unknown platform %q; known are %s", name, strings.Join(allPlatforms(), ", "))
		}
		system, arch, _ := strings.Cut(name, "/")
		all = append(all, platform{system, arch})
	}
	return all, nil
}

// builder writes one release.
type builder struct {
	source, work, out string

	built    built
	man      []file // manual pages, compressed
	complete []file // completions
	licence  file
}

// built is what a program says about its build.
type built struct {
	version string // v1.2.3, or v0.0.0-20060102150405-abcdef123456 between releases
	commit  string
	date    time.Time // of the commit
	info    *buildinfo.BuildInfo
}

// environment makes the outcome independent of the settings of the user who builds.
func environment(p platform) []string {
	return append(os.Environ(),
		"GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off", "GOWORK=off")
}

// compile builds the program for a platform into the file and returns what it says about its build.
func (b *builder) compile(ctx context.Context, p platform, to string) (built, error) {
	to, err := filepath.Abs(to)
	if err != nil {
		return built{}, err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s", "-o", to, "./cmd/flowfabric")
	cmd.Dir, cmd.Env, cmd.Stderr = b.source, environment(p), os.Stderr
	if err := cmd.Run(); err != nil {
		return built{}, fmt.Errorf("go build: %w", err)
	}
	return readBuilt(to)
}

// readBuilt reads the build information of a program.
func readBuilt(path string) (built, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return built{}, err
	}
	of := built{version: info.Main.Version, info: info}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			of.commit = setting.Value
		case "vcs.time":
			if of.date, err = time.Parse(time.RFC3339, setting.Value); err != nil {
				return built{}, err
			}
		}
	}
	if of.commit == "" || of.date.IsZero() {
		return built{}, fmt.Errorf("%s does not record its commit: build from a git checkout", path)
	}
	return of, nil
}

// companions builds the program for this host and lets it write its manual pages and completions.
func (b *builder) companions(ctx context.Context) (err error) {
	host := platform{runtime.GOOS, runtime.GOARCH}
	program := filepath.Join(b.work, host.program())
	if b.built, err = b.compile(ctx, host, program); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(b.source, "LICENSE"))
	if err != nil {
		return err
	}
	b.licence = file{name: "LICENSE", data: text, mode: 0o644}
	dir := filepath.Join(b.work, "man")
	if _, err := b.output(ctx, program, "man", "--dir", dir); err != nil {
		return err
	}
	pages, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(dir, page.Name()))
		if err != nil {
			return err
		}
		packed, err := compress(text)
		if err != nil {
			return err
		}
		b.man = append(b.man, file{name: page.Name() + ".gz", data: packed, mode: 0o644})
	}
	for shell, name := range map[string]string{"bash": "flowfabric", "zsh": "_flowfabric", "fish": "flowfabric.fish"} {
		text, err := b.output(ctx, program, "completion", shell)
		if err != nil {
			return err
		}
		b.complete = append(b.complete, file{name: shell + "/" + name, data: text, mode: 0o644})
	}
	slices.SortFunc(b.complete, byName)
	return nil
}

// output runs the program without the settings of the user.
func (b *builder) output(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Stderr = []string{"HOME=" + b.work}, os.Stderr
	return cmd.Output()
}

// platform writes everything for one platform.
func (b *builder) platform(ctx context.Context, p platform) error {
	program := filepath.Join(b.work, p.os+"-"+p.arch, p.program())
	of, err := b.compile(ctx, p, program)
	if err != nil {
		return err
	}
	if of.version != b.built.version || of.commit != b.built.commit {
		return fmt.Errorf("the checkout changed during the build: %s is not %s", of.version, b.built.version)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	binary := file{name: p.program(), data: data, mode: 0o755}
	steps := []func(platform, file, built) error{b.archive, b.materials}
	if p.os == "linux" {
		steps = append(steps, b.packages, b.image)
	}
	for _, step := range steps {
		if err := step(p, binary, of); err != nil {
			return err
		}
	}
	return nil
}

// name is the name of a file of the release for a platform.
func (b *builder) name(p platform, ending string) string {
	return filepath.Join(b.out, fmt.Sprintf("flowfabric_%s_%s_%s%s", strings.TrimPrefix(b.built.version, "v"), p.os, p.arch, ending))
}
