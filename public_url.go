package flowfabric

import (
	"net/url"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core"
)

// The addresses that are given to people and to services outside. Each holds a token and is as secret as that. Without a base they
// are paths, which begin with a slash: whoever knows the base puts it before them.
const (
	callbackPath = "/v1/callbacks/" // W64
	linkPath     = "/approve/"      // W69
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

// callbackURL is where a service that can only be given an address sends its signal; "" without a token.
func (e *embedded) callbackURL(waitpointID string, t core.Token) string {
	return e.addressed(callbackPath, waitpointID, t)
}

// linkURL is where somebody decides; "" without a token.
func (e *embedded) linkURL(linkID string, t core.Token) string {
	return e.addressed(linkPath, linkID, t)
}

func (e *embedded) addressed(path, id string, t core.Token) string {
	text := t.Reveal()
	if text == "" {
		return ""
	}
	return e.cfg.PublicURL + path + id + "/" + url.PathEscape(text)
}
