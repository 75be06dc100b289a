package commands

import (
	"encoding/json"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

// content reads a value from the argument itself, from a file (@file) or from standard input (-).
func (s *session) content(flag, text string) ([]byte, error) {
	path, isFile := strings.CutPrefix(text, "@")
	switch {
	case text == "-":
		return io.ReadAll(s.In)
	case isFile:
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, show.Invalid(flag, "", "%s", err)
		}
		return data, nil
	default:
		return []byte(text), nil
	}
}

// ids checks the ids of the command line before anything is sent.
func ids(args []string) ([]flowfabric.ID, error) {
	all := make([]flowfabric.ID, len(args))
	for i, text := range args {
		id, err := flowfabric.ParseID(text)
		if err != nil {
			return nil, err
		}
		all[i] = id
	}
	return all, nil
}

// bareID returns the UUID of an id, also of one in its full form.
func bareID(id flowfabric.ID) string {
	return string(id[strings.LastIndexByte(string(id), ':')+1:])
}

// moment parses RFC 3339, a date, or a duration relative to now.
func moment(flag, text string, way direction) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		if way == ago {
			d = -d
		}
		return time.Now().Add(d), nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, show.Invalid(flag, "write 2026-05-01T12:00:00Z, 2026-05-01 or a duration such as 2h", "%q is not a time", text)
}

// direction is the sign of a duration relative to now.
type direction bool

const (
	ahead direction = true
	ago   direction = false
)

// pairs parses k=v texts.
func pairs(flag string, texts []string) (map[string]string, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	all := make(map[string]string, len(texts))
	for _, text := range texts {
		key, value, found := strings.Cut(text, "=")
		if !found {
			return nil, show.Invalid(flag, "write "+flag+" key=value", "%q has no value", text)
		}
		all[key] = value
	}
	return all, nil
}

func number(name, text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, show.Invalid(name, "", "%q is not a whole number", text)
	}
	return n, nil
}

// payloadSource is a flag that can provide a payload.
type payloadSource struct {
	flag, text  string // text "": not given
	contentType string // default of the source
}

// Content types of sources.
const (
	jsonType  = "application/json"
	textType  = "text/plain; charset=utf-8"
	bytesType = "application/octet-stream"
)

// payload reads the one source that is given; it returns the zero Payload if there is none. contentType overrides that of the
// source.
func (s *session) payload(contentType string, sources ...payloadSource) (flowfabric.Payload, error) {
	var given, known []string
	var from payloadSource
	for _, source := range sources {
		known = append(known, source.flag)
		if source.text != "" {
			from, given = source, append(given, source.flag)
		}
	}
	switch {
	case len(given) == 0:
		return flowfabric.Payload{}, nil
	case len(given) > 1:
		return flowfabric.Payload{}, show.Invalid(given[0], "give one of "+strings.Join(known, ", "), "%s cannot be combined", strings.Join(given, " and "))
	}
	data, err := s.content(from.flag, from.text)
	if err != nil {
		return flowfabric.Payload{}, err
	}
	if from.contentType == jsonType && !json.Valid(data) {
		hint := "quote it for the shell: " + from.flag + " '{\"a\": 1}'"
		if slices.Contains(known, "--text") {
			hint += "; use --text for plain text"
		}
		return flowfabric.Payload{}, show.Invalid(from.flag, hint, "not valid JSON")
	}
	if contentType == "" {
		contentType = from.contentType
	}
	return flowfabric.Bytes(data, contentType), nil
}
