package measure

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// Build names the program that measured.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// ThisBuild is the running program, as far as the compiler wrote it down.
func ThisBuild() Build {
	b := Build{Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Commit = s.Value
			}
		}
	}
	return b
}

// Host names the machine.
type Host struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	Memory     string `json:"memory"`
	OS         string `json:"os"`
	Kernel     string `json:"kernel"`
	Filesystem string `json:"filesystem"` // of the store, where that is a file
	LoadBefore string `json:"load_before"`
}

// ThisHost reads what Linux tells about the machine; elsewhere those fields stay empty.
func ThisHost() Host {
	return Host{
		Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH,
		CPU:        field("/proc/cpuinfo", "model name"),
		Memory:     field("/proc/meminfo", "MemTotal"),
		Kernel:     firstLine("/proc/sys/kernel/osrelease"),
		LoadBefore: firstLine("/proc/loadavg"),
	}
}

// Filesystem is the type of the file system that holds a path; "" where it is not known.
func Filesystem(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	kind, longest := "", -1
	for line := range strings.Lines(string(mounts)) {
		words := strings.Fields(line)
		if len(words) < 3 || len(words[1]) <= longest {
			continue
		}
		if rest, under := strings.CutPrefix(path, strings.TrimSuffix(words[1], "/")); under && (rest == "" || rest[0] == '/') {
			kind, longest = words[2], len(words[1])
		}
	}
	return kind
}

func firstLine(file string) string {
	text, _ := os.ReadFile(file)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// field finds the value of "name : value".
func field(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
