// Command flowfabric is the server, worker and client of FlowFabric in one program.
package main

import (
	"os"
	"runtime/debug"
	"strings"

	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/commands"
	"github.com/flowfabric/flowfabric/internal/gctune"
)

func main() {
	gctune.Roomy()
	gctune.FitContainer()
	build := readBuild()
	app := &commands.App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Build: build, Called: called(build.Version)}
	os.Exit(app.Run(os.Args[1:]))
}

// called is the command to suggest in hints: for go run, the built program's own path would be useless.
func called(version string) string {
	path, err := os.Executable()
	if err == nil && version == "dev" && strings.Contains(path, "go-build") {
		return "go run ./cmd/flowfabric"
	}
	return ""
}

// readBuild reads the build information that the go command records in the binary.
func readBuild() commands.Build {
	build := commands.Build{Version: "dev"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return build
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		build.Version = v
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			build.Commit = setting.Value
		case "vcs.time":
			build.Date = setting.Value
		}
	}
	return build
}
