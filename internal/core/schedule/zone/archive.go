package zone

import (
	"archive/zip"
	_ "embed" // the archive
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed zoneinfo.zip
var archive string

// table maps the names of the archive to their zones, each of which is read when it is first asked for. It is a constant that costs too much to
// compute in every program.
var table = sync.OnceValue(func() map[string]func() *Zone {
	zones := map[string]func() *Zone{}
	files, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		return zones // a test reads every zone
	}
	for _, file := range files.File {
		if !strings.HasSuffix(file.Name, "/") {
			zones[file.Name] = sync.OnceValue(func() *Zone { return read(file) })
		}
	}
	return zones
})

// read reads a zone; nil if its file is damaged.
func read(file *zip.File) *Zone {
	content, err := file.Open()
	if err != nil {
		return nil
	}
	data, err := io.ReadAll(content)
	if err != nil || content.Close() != nil {
		return nil
	}
	location, err := time.LoadLocationFromTZData(file.Name, data)
	if err != nil {
		return nil
	}
	return of(file.Name, location)
}

// Names returns the names of all zones, sorted.
func Names() []string { return slices.Sorted(maps.Keys(table())) }
