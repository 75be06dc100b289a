// Command flowfabric is server, worker and client of FlowFabric in one program.
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

// called is what calls the program: nobody finds by its name what go run has built from a clone.
func called(version string) string {
	path, err := os.Executable()
	if err == nil && version == "dev" && strings.Contains(path, "go-build") {
		return "go run ./cmd/flowfabric"
	}
	return ""
}

// build reads what the compiler wrote into the program.
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
