// Package aptget installs programs that tests need and the machine lacks: a test that is skipped proves nothing. It knows neither the
// programs nor the tests.
package aptget

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Need makes sure that these programs are there, each from the package of the same name.
func Need(ctx context.Context, programs ...string) error {
	for _, name := range programs {
		if _, err := exec.LookPath(name); err == nil {
			continue
		}
		if err := Install(ctx, name); err != nil {
			return err
		}
		if _, err := exec.LookPath(name); err != nil {
			return err
		}
	}
	return nil
}

// Install installs a package with apt-get, if we are root, without starting the service that comes with it.
func Install(ctx context.Context, name string) error {
	if os.Getuid() != 0 {
		return fmt.Errorf("package %s is missing and only root can install it", name)
	}
	lock := filepath.Join(os.TempDir(), "flowfabric-apt-get.lock") // other test programs may miss the same at this moment
	for _, arguments := range [][]string{{"update"}, {"install", "-y", "--no-install-recommends", name}} {
		command := exec.CommandContext(ctx, "flock", append([]string{lock, "apt-get"}, arguments...)...)
		// RUNLEVEL=1 keeps invoke-rc.d from starting services.
		command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", arguments[0], err, out)
		}
	}
	return nil
}
