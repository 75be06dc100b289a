// Command flowfabric is the server, worker and client of FlowFabric in one program.
package main

import (
	"os"
	"runtime/debug"
	"strings"

	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/commands"
	"github.com/flowfabric/flowfabric/internal/heap"
)

func main() {
	heap.Roomy()
	heap.FitContainer()
	version, commit := build()
	app := &commands.App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Version: version, Commit: commit, Called: called(version)}
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

// build reads the build information from the binary.
func build() (version, commit string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev", ""
	}
	version = info.Main.Version
	if version == "" || version == "(devel)" {
		version = "dev"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			commit = setting.Value
		}
	}
	return version, commit
}
