package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// file is a file to pack.
type file struct {
	name string // with slashes
	data []byte
	mode os.FileMode
}

func byName(a, b file) int { return strings.Compare(a.name, b.name) }

// archive writes the program with its companions: a .zip for Windows, else a .tar.gz.
func (b *builder) archive(p platform, program file, of built) error {
	files := []file{program, b.licence}
	for _, page := range b.man {
		files = append(files, file{"man/" + page.name, page.data, page.mode})
	}
	for _, script := range b.complete {
		files = append(files, file{"completions/" + script.name, script.data, script.mode})
	}
	if p.os == "windows" {
		packed, err := zipOf([]file{program, b.licence}, of.date)
		return errors.Join(err, publish(b.name(p, ".zip"), packed))
	}
	packed, err := tarOf(files, of.date)
	if err == nil {
		packed, err = compress(packed)
	}
	return errors.Join(err, publish(b.name(p, ".tar.gz"), packed))
}

// publish writes a file of the release.
func publish(path string, data []byte) error {
	return os.WriteFile(path, data, 0o644)
}

// tarOf packs files that belong to root, all with the same time.
func tarOf(files []file, at time.Time) ([]byte, error) {
	all := make([]owned, len(files))
	for i, f := range files {
		all[i] = owned{file: f}
	}
	return ownedTar(all, at)
}

// owned is a file with the number of its user and group.
type owned struct {
	file
	owner int
}

func ownedTar(files []owned, at time.Time) ([]byte, error) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, f := range files {
		header := &tar.Header{
			Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(f.data)), Uid: f.owner, Gid: f.owner,
			ModTime: at.UTC(), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		}
		if f.mode.IsDir() {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return packed.Bytes(), err
}

func zipOf(files []file, at time.Time) ([]byte, error) {
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at.UTC()}
		header.SetMode(f.mode)
		entry, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return packed.Bytes(), err
}

// compress packs with gzip, without name and time.
func compress(data []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return packed.Bytes(), err
}

// writeChecksums writes the file that sha256sum --check reads.
func writeChecksums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, entry := range entries {
		if entry.Name() == marker {
			continue
		}
		sum, err := sumOf(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sum, entry.Name())
	}
	return publish(filepath.Join(dir, marker), []byte(lines.String()))
}

func sumOf(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return sum.Sum(nil), err
}

// compareDirectories returns an error that names each file that only one of them has, or that differs.
func compareDirectories(a, b string) error {
	inA, err := sums(a)
	if err != nil {
		return err
	}
	inB, err := sums(b)
	if err != nil {
		return err
	}
	var found []error
	for name, sum := range inA {
		switch other, there := inB[name]; {
		case !there:
			found = append(found, fmt.Errorf("%s is only in %s", name, a))
		case other != sum:
			found = append(found, fmt.Errorf("%s differs: %s and %s", name, sum, other))
		}
	}
	for name := range inB {
		if _, there := inA[name]; !there {
			found = append(found, fmt.Errorf("%s is only in %s", name, b))
		}
	}
	if len(inA) == 0 {
		found = append(found, fmt.Errorf("%s has no files", a))
	}
	return errors.Join(found...)
}

// sums are the checksums of the files of a directory, recomputed.
func sums(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, entry := range entries {
		sum, err := sumOf(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		all[entry.Name()] = fmt.Sprintf("%x", sum)
	}
	return all, nil
}
