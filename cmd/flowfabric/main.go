// Command flowfabric is server, worker and client of FlowFabric in one program.
package main

import (
	"os"
	"runtime/debug"

	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/commands"
	"github.com/flowfabric/flowfabric/internal/heap"
)

func main() {
	heap.Roomy()
	version, commit := build()
	app := &commands.App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Version: version, Commit: commit}
	os.Exit(app.Run(os.Args[1:]))
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
