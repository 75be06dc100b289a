package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// container is an unpacked image.
type container struct {
	root   string
	config v1.Config
}

// imageRuns unpacks the image and runs the commands of its configuration: as root in its file system and as its user, else in its
// directory as the user of the test.
func imageRuns(t *testing.T, r *released) {
	c := unpack(t, r.path(t, ".oci.tar"))
	if c.config.User != "65532:65532" || c.config.Healthcheck == nil {
		t.Fatalf("user %q, health check %v", c.config.User, c.config.Healthcheck)
	}
	if _, there := c.config.Volumes["/data"]; !there {
		t.Error("/data is no volume")
	}
	refused, err := c.command(t, append(slices.Clone(c.config.Entrypoint), c.config.Cmd...)).CombinedOutput()
	if err == nil || !bytes.Contains(refused, []byte("without TLS")) {
		t.Errorf("without settings, on all addresses, it says %v:\n%s", err, refused)
	}
	key := strings.TrimSpace(c.output(t, "api-keys", "create", "--store", "sqlite:/tmp/key.db", "--role", "admin", "--name", "first", "--template", "{{.secret}}"))
	if !strings.HasPrefix(key, "ffk_") {
		t.Fatalf("the key is %q", key)
	}
	server := c.command(t, append(slices.Clone(c.config.Entrypoint), c.config.Cmd...), "FF_BOOTSTRAP_ADMIN_KEY="+key, "FF_ALLOW_PLAINTEXT=true", "FF_LISTEN=127.0.0.1:0")
	address, stop := c.start(t, server)
	defer stop()
	check := c.command(t, c.config.Healthcheck.Test[1:], "FF_SERVER="+address)
	if text, err := check.CombinedOutput(); err != nil {
		t.Errorf("the health check says %v:\n%s", err, text)
	}
	submit := c.command(t, []string{"/flowfabric", "submit", "hello", "--text", "world", "--quiet", "--namespace", "default"}, "FF_SERVER="+address, "FF_API_KEY="+key)
	if text, err := submit.CombinedOutput(); err != nil || len(bytes.TrimSpace(text)) != 36 {
		t.Errorf("submit: %v:\n%s", err, text)
	}
	if info, err := os.Stat(filepath.Join(c.root, "data", "flowfabric.db")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the store: %v %v", info, err)
	}
	stop()
	if text, err := c.command(t, c.config.Healthcheck.Test[1:], "FF_SERVER="+address).CombinedOutput(); err == nil {
		t.Errorf("the health check of a server that stopped succeeds:\n%s", text)
	}
}

// unpack checks the tarball as an OCI layout and as what docker load reads, and unpacks its files.
func unpack(t *testing.T, path string) *container {
	t.Helper()
	dir := t.TempDir()
	for name, entry := range untar(t, read(t, path)) {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if entry.FileInfo().IsDir() {
			continue
		}
		if err := os.WriteFile(to, entry.data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(at); err != nil {
		t.Error(err)
	}
	index, err := at.IndexManifest()
	if err != nil || len(index.Manifests) != 1 || index.Manifests[0].Platform.Architecture != target.arch {
		t.Fatalf("%+v %v", index, err)
	}
	img, err := at.Image(index.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	loaded, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	same, err := loaded.ConfigName()
	if want, _ := img.ConfigName(); err != nil || same != want {
		t.Errorf("docker load reads %s, the layout has %s (%v)", same, want, err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := &container{root: filepath.Join(dir, "rootfs"), config: config.Config}
	c.extract(t, img)
	return c
}

// extract writes the files of the image, with their owners if the test runs as root.
func (c *container) extract(t *testing.T, img v1.Image) {
	t.Helper()
	files := mutate.Extract(img)
	defer files.Close()
	packed, err := io.ReadAll(files)
	if err != nil {
		t.Fatal(err)
	}
	all := untar(t, packed)
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"LICENSE", "data", "etc", "etc/ssl", "etc/ssl/certs", "etc/ssl/certs/ca-certificates.crt", "flowfabric", "tmp"}) {
		t.Errorf("the image has the files %q", names)
	}
	for dir := c.root; dir != filepath.Dir(os.TempDir()) && dir != "/"; dir = filepath.Dir(dir) {
		_ = os.MkdirAll(dir, 0o755)
		if os.Geteuid() == 0 && strings.HasPrefix(dir, os.TempDir()+"/") {
			_ = os.Chmod(dir, 0o755)
		}
	}
	for _, name := range names {
		entry, to := all[name], filepath.Join(c.root, filepath.FromSlash(name))
		if entry.FileInfo().IsDir() {
			err = os.MkdirAll(to, entry.FileInfo().Mode().Perm())
		} else {
			err = os.WriteFile(to, entry.data, entry.FileInfo().Mode().Perm())
		}
		if err == nil && os.Geteuid() == 0 {
			err = os.Chown(to, entry.Uid, entry.Gid)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if certificates := all["etc/ssl/certs/ca-certificates.crt"].data; bytes.Count(certificates, []byte("BEGIN CERTIFICATE")) < 50 {
		t.Error("the image has no authorities")
	}
}

// command is a command line in the container, with the environment of the image and further variables.
func (c *container) command(t *testing.T, line []string, variables ...string) *exec.Cmd {
	t.Helper()
	if os.Geteuid() == 0 {
		cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
		cmd.Path, cmd.Err, cmd.Dir, cmd.Env = line[0], nil, c.config.WorkingDir, append(slices.Clone(c.config.Env), variables...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.root, Credential: &syscall.Credential{Uid: nonRoot, Gid: nonRoot}}
		return cmd
	}
	moved := strings.NewReplacer("/data", filepath.Join(c.root, "data"), "/etc", filepath.Join(c.root, "etc"), "/tmp/", filepath.Join(c.root, "tmp")+"/")
	var args []string
	for _, arg := range line[1:] {
		args = append(args, moved.Replace(arg))
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(c.root, line[0]), args...)
	cmd.Dir = filepath.Join(c.root, c.config.WorkingDir)
	for _, v := range slices.Concat(c.config.Env, variables) {
		cmd.Env = append(cmd.Env, moved.Replace(v))
	}
	return cmd
}

// output runs the program with arguments.
func (c *container) output(t *testing.T, args ...string) string {
	t.Helper()
	cmd := c.command(t, append(slices.Clone(c.config.Entrypoint), args...))
	var problems strings.Builder
	cmd.Stderr = &problems
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, problems.String())
	}
	return string(text)
}

// start starts the server and returns its address when it is ready.
func (c *container) start(t *testing.T, server *exec.Cmd) (address string, stop func()) {
	t.Helper()
	log, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		_ = server.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, log)
		if err := server.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	}
	found := regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var line struct{ Msg string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Errorf("the log is not JSON: %s", lines.Text())
		}
		if address := found.FindString(lines.Text()); address != "" {
			return address, stop
		}
	}
	stop()
	t.Fatal("the server ended")
	return "", stop
}
