package flowfabric

import (
	"net/url"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
)

// publicBase checks the base of the addresses and takes a slash off its end; invalid_argument.
func publicBase(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	base, err := url.Parse(text)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" ||
		base.User != nil || base.RawQuery != "" || base.ForceQuery || base.Fragment != "" {
		return "", newError(core.CodeInvalidArgument, "the public URL is not absolute, or has more than scheme, host and path").
			At("PublicURL", "write it like https://flow.example.com")
	}
	return strings.TrimRight(text, "/"), nil
}
