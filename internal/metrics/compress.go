package metrics

import (
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
)

// Compressed serves a registry, compressed if the client accepts it. The handler is also a Gatherer.
func Compressed(r Registry) http.Handler { return compressed{r} }

type compressed struct{ registry Registry }

// Gather reads the registry.
func (c compressed) Gather() ([]Family, error) { return c.registry.Gather() }

// Collect reads the registry, including metrics without readings.
func (c compressed) Collect() []Family { return c.registry.Collect() }

// ServeHTTP serves the readings.
func (c compressed) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Add("Vary", "Accept-Encoding")
	if !takesGzip(req.Header.Values("Accept-Encoding")) {
		c.registry.ServeHTTP(w, req)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	zip := gzip.NewWriter(w)
	c.registry.ServeHTTP(zipped{w, zip}, req)
	_ = zip.Close() // it fails if the client is gone
}

// zipped is a response with a compressed body.
type zipped struct {
	http.ResponseWriter
	zip *gzip.Writer
}

// Write compresses.
func (z zipped) Write(text []byte) (int, error) { return z.zip.Write(text) }

// takesGzip reports whether gzip is accepted with a weight other than 0.
func takesGzip(accepted []string) bool {
	for offer := range strings.SplitSeq(strings.Join(accepted, ","), ",") {
		name, parameter, _ := strings.Cut(offer, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		text, weighted := strings.CutPrefix(strings.ToLower(strings.TrimSpace(parameter)), "q=")
		weight, err := strconv.ParseFloat(text, 64)
		return !weighted || err == nil && weight > 0
	}
	return false
}
