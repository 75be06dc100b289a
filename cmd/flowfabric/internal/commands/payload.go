package commands

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

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
