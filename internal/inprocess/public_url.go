package inprocess

import (
	"net/url"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// publicBase checks the public URL and removes a trailing slash; invalid_argument.
func publicBase(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	address, err := url.Parse(text)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" ||
		address.User != nil || address.RawQuery != "" || address.ForceQuery || address.Fragment != "" {
		return "", api.Errorf(string(base.CodeInvalidArgument), "the public URL is not absolute, or has more than scheme, host and path").
			At("PublicURL", "write it like https://flow.example.com")
	}
	return strings.TrimRight(text, "/"), nil
}
