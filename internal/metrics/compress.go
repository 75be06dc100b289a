package metrics

import (
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
)

// Compressed serves what a registry has, compressed for those who ask for it.
func Compressed(r Registry) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if !takesGzip(req.Header.Values("Accept-Encoding")) {
			r.ServeHTTP(w, req)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		zip := gzip.NewWriter(w)
		r.ServeHTTP(zipped{w, zip}, req)
		// Nobody is left to be told of an answer that does not arrive.
		_ = zip.Close()
	})
}

// zipped is an answer whose body is compressed.
type zipped struct {
	http.ResponseWriter
	zip *gzip.Writer
}

// Write compresses.
func (z zipped) Write(text []byte) (int, error) { return z.zip.Write(text) }

// takesGzip tells whether gzip is among what a caller takes, and not with the weight 0.
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
