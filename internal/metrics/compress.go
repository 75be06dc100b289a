package metrics

import (
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
)

// Compressed serves what a registry has, compressed for those who ask for it. The handler is a Gatherer, too.
func Compressed(r Registry) http.Handler { return compressed{r} }

type compressed struct{ registry Registry }

// Gather reads the registry.
func (c compressed) Gather() ([]Family, error) { return c.registry.Gather() }

// Collect reads the registry, metrics without readings included.
func (c compressed) Collect() []Family { return c.registry.Collect() }

// ServeHTTP answers with what the registry has.
func (c compressed) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Add("Vary", "Accept-Encoding")
	if !takesGzip(req.Header.Values("Accept-Encoding")) {
		c.registry.ServeHTTP(w, req)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	zip := gzip.NewWriter(w)
	c.registry.ServeHTTP(zipped{w, zip}, req)
	_ = zip.Close() // it fails when the client is gone
}

// zipped is an answer whose body is compressed.
type zipped struct {
	http.ResponseWriter
	zip *gzip.Writer
}

// Write compresses.
func (z zipped) Write(text []byte) (int, error) { return z.zip.Write(text) }

// takesGzip reports whether gzip is among what a caller takes, and not with the weight 0.
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
