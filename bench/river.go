package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// river runs the program in bench/peers/river, a module of its own so that importing FlowFabric does not download River. Each line
// that it prints is a Value, or {"failure": "..."}.
func river(ctx context.Context, env Env) (*Sample, error) {
	args := []string{
		"run", "-C", filepath.Join(env.Root, "bench", "peers", "river"), ".",
		"-url", env.Postgres, "-jobs", strconv.Itoa(env.Size(100_000)), "-singles", strconv.Itoa(env.Size(20_000)), "-arrivals", strconv.Itoa(env.Size(1_000)),
	}
	return peer(exec.CommandContext(ctx, "go", args...))
}

// peer runs a program of another module and reads its figures.
func peer(cmd *exec.Cmd) (*Sample, error) {
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	sample := &Sample{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		var line struct {
			Value
			Failure string `json:"failure"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("%s printed %q: %w", cmd.Path, lines.Text(), err)
		}
		if line.Failure != "" {
			sample.Fail("%s", line.Failure)
			continue
		}
		sample.Values = append(sample.Values, line.Value)
	}
	return sample, lines.Err()
}
