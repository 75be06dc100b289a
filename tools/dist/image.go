package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nonRoot is the user and group of the image. It has no name: the image has no /etc/passwd.
const nonRoot = 65532

// image writes a container image made from nothing: the program, the certificates of public authorities, and directories that the user
// of the image may write to. The tarball is an OCI layout with the manifest.json that `docker load` of older versions reads.
func (b *builder) image(p platform, program file, of built) (err error) {
	content, err := imageFiles(program, b.licence, of.date)
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if img, err = mutate.ConfigFile(img, imageConfig(p, of)); err != nil {
		return err
	}
	if img, err = mutate.Append(img, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: of.date}, CreatedBy: "make dist", Comment: of.version},
	}); err != nil {
		return err
	}
	dir := filepath.Join(b.work, p.os+"-"+p.arch, "image")
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	name := "flowfabric:" + imageTag(of.version)
	if err := at.AppendImage(img, layout.WithPlatform(v1.Platform{OS: p.os, Architecture: p.arch}), layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": imageTag(of.version), "io.containerd.image.name": name,
	})); err != nil {
		return err
	}
	if err := dockerManifest(dir, name, img); err != nil {
		return err
	}
	files, err := filesBelow(dir)
	if err != nil {
		return err
	}
	packed, err := tarOf(files, of.date)
	return errors.Join(err, publish(b.name(p, ".oci.tar"), packed))
}

func imageConfig(p platform, of built) *v1.ConfigFile {
	return &v1.ConfigFile{
		OS: p.os, Architecture: p.arch, Created: v1.Time{Time: of.date}, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: []string{"/flowfabric"}, Cmd: []string{"serve"}, User: "65532:65532", WorkingDir: "/data", StopSignal: "SIGTERM",
			Env:          []string{"FF_STORE=sqlite:/data/flowfabric.db", "FF_LISTEN=0.0.0.0:7433", "HOME=/data", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
			ExposedPorts: map[string]struct{}{"7433/tcp": {}}, Volumes: map[string]struct{}{"/data": {}},
			// The image has no shell and no curl: the program asks its own server.
			Healthcheck: &v1.HealthConfig{
				Test: []string{"CMD", "/flowfabric", "api", "GET", "/readyz", "--quiet"}, Interval: 10 * time.Second, Timeout: 5 * time.Second,
				StartPeriod: 30 * time.Second, Retries: 3,
			},
			Labels: map[string]string{
				"org.opencontainers.image.title": "flowfabric", "org.opencontainers.image.version": of.version, "org.opencontainers.image.revision": of.commit,
				"org.opencontainers.image.created": of.date.UTC().Format(time.RFC3339), "org.opencontainers.image.licenses": "Apache-2.0",
				"org.opencontainers.image.source": "https://" + of.info.Main.Path,
			},
		},
	}
}

// imageTag is a version as a tag: a tag has no plus sign.
func imageTag(version string) string {
	return strings.ReplaceAll(strings.TrimPrefix(version, "v"), "+", "-")
}

// imageFiles packs the files of the image.
func imageFiles(program, licence file, at time.Time) ([]byte, error) {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil { // a file of certificates cannot express the constraint
			continue
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return ownedTar([]owned{
		{file{"flowfabric", program.data, 0o755}, 0},
		{file{"LICENSE", licence.data, 0o644}, 0},
		{file{"etc/", nil, 0o755 | fs.ModeDir}, 0},
		{file{"etc/ssl/", nil, 0o755 | fs.ModeDir}, 0},
		{file{"etc/ssl/certs/", nil, 0o755 | fs.ModeDir}, 0},
		{file{"etc/ssl/certs/ca-certificates.crt", roots.Bytes(), 0o644}, 0},
		{file{"data/", nil, 0o700 | fs.ModeDir}, nonRoot},
		{file{"tmp/", nil, 0o700 | fs.ModeDir}, nonRoot},
	}, at)
}

// dockerManifest writes manifest.json, which names the blobs of the layout as `docker save` does.
func dockerManifest(dir, name string, img v1.Image) error {
	config, err := img.ConfigName()
	if err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	blob := func(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
	entry := tarball.Descriptor{Config: blob(config), RepoTags: []string{name}}
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return err
		}
		entry.Layers = append(entry.Layers, blob(digest))
	}
	text, err := json.Marshal(tarball.Manifest{entry})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "manifest.json"), text, 0o600)
}

// filesBelow reads a directory, in the order of names.
func filesBelow(dir string) (all []file, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		if entry.IsDir() {
			all = append(all, file{path + "/", nil, 0o755 | fs.ModeDir})
			return nil
		}
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
		all = append(all, file{path, data, 0o644})
		return err
	})
	return all, err
}
