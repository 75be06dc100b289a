package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// debianInstalls installs the package on the Debian that runs the test, on a copy-on-write view of it: nothing of the machine changes.
// That takes root, dpkg and overlayfs. Elsewhere the test says so in its output, which `make dist-test` prints, and only the checks of
// the package's content and of the program run.
func debianInstalls(t *testing.T, r *released) {
	dir, err := os.MkdirTemp("", "flowfabric-debian-") // the name of a test has commas, which end an option of mount
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, name := range []string{"upper", "work", "root"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if why := cannotInstall(dir); why != "" {
		t.Logf("NOT RUN: the package was not installed, because %s", why)
		return
	}
	upper := filepath.Join(dir, "upper")
	for name, from := range map[string]string{"package.deb": r.path(t, ".deb"), "install.sh": "testdata/install.sh"} {
		if err := os.WriteFile(filepath.Join(upper, name), read(t, from), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// The mounts are in a namespace of their own and vanish with it, as do the processes.
	const inside = view + `
mount -t proc proc "$1/root/proc"
mount --bind /dev "$1/root/dev"
exec chroot "$1/root" /bin/sh /install.sh /package.deb`
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", inside, "sh", dir)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive"}
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, line := range []string{
		"root:root 755 /usr/bin/flowfabric", "root:flowfabric 750 /etc/flowfabric", "root:flowfabric 640 /etc/flowfabric/flowfabric.env",
		"flowfabric:flowfabric 700 /var/lib/flowfabric", "flowfabric:flowfabric 600 /var/lib/flowfabric/flowfabric.db", "hello ready", "== done",
	} {
		if !bytes.Contains(text, []byte(line+"\n")) {
			t.Errorf("the script did not print %q:\n%s", line, text)
		}
	}
	for _, path := range left(t, upper) {
		t.Errorf("left after the purge: %s", path)
	}
}

// view mounts a copy-on-write view of the system.
const view = `set -e
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"`

// cannotInstall returns why the package cannot be installed here.
func cannotInstall(dir string) string {
	if os.Geteuid() != 0 {
		return "the test does not run as root"
	}
	if _, err := os.Stat("/etc/debian_version"); err != nil {
		return "this is not Debian"
	}
	for _, tool := range []string{"dpkg", "unshare", "setpriv", "mount"} {
		if _, err := exec.LookPath(tool); err != nil {
			return tool + " is missing"
		}
	}
	if text, err := exec.Command("unshare", "--mount", "--pid", "--fork", "sh", "-c", view, "sh", dir).CombinedOutput(); err != nil {
		return "a view of the system cannot be mounted: " + strings.TrimSpace(string(text))
	}
	return ""
}

// kept are what Debian keeps: the user, logs and databases of the package system, of manuals and of the linker, and the files of the test.
var kept = regexp.MustCompile(`^(package\.deb|install\.sh|etc/(passwd|group|shadow|gshadow|subuid|subgid)-?|etc/\.pwd\.lock|etc/ld\.so\.cache|` +
	`var/lib/dpkg/(status|status-old|lock|lock-frontend|available|triggers/.*|info/.*-new|info/format.*|diversions.*|statoverride.*)|var/log/(dpkg|alternatives|faillog|lastlog|tallylog).*|` +
	`var/cache/(ldconfig|man|debconf)/.*|tmp/.*|run/.*)$`)

// left lists what changed on the system and is not kept.
func left(t *testing.T, upper string) (paths []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(upper), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch whiteout := entry.Type()&fs.ModeCharDevice != 0; {
		case strings.Contains(path, "flowfabric"):
			// A whiteout says that a file of this name was deleted, which the view keeps in mind where a directory was copied.
			if !whiteout {
				paths = append(paths, path)
			}
		case entry.IsDir() || whiteout || kept.MatchString(path):
		default:
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
