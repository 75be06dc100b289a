// Package binary gives tests the program flowfabric. It must not know what the program does.
package binary

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Variable names a program that is already built, which `make test` does once for all packages. It is not for use outside of a run: nothing checks
// that such a program is today's.
const Variable = "FLOWFABRIC_TEST_PROGRAM"

// name is the package of the program.
const name = "github.com/flowfabric/flowfabric/cmd/flowfabric"

// In returns the path of the program flowfabric in a directory, which is created if it does not exist. The file is a link if the program is already
// built.
func In(directory string) (string, error) {
	path := filepath.Join(directory, "flowfabric")
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return "", err
	}
	if ready := os.Getenv(Variable); ready != "" {
		return path, os.Symlink(ready, path)
	}
	//nolint:noctx // it lasts as long as the compiler needs
	if out, err := exec.Command("go", "build", "-o", path, name).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", name, err, out)
	}
	return path, nil
}
