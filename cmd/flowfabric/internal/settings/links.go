package settings

import (
	"fmt"
	"regexp"
	"strings"
)

// link matches the names that Kubernetes sets in pods beside a service, such as FF_PORT_7433_TCP_ADDR for one named ff.
var link = regexp.MustCompile(`^(FF(?:_[A-Z0-9_]+?)??)_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$`)

// unknown says what is wrong with a name that is no setting. What is near to a name of Kubernetes was not meant by it.
func unknown(name, text string, known []string) string {
	near := suggest(name, known)
	if found := link.FindStringSubmatch(name); found != nil {
		if name != "FF_PORT" || strings.Contains(text, "://") {
			service := strings.ReplaceAll(strings.ToLower(found[1]), "_", "-")
			return fmt.Sprintf("unknown setting; Kubernetes sets it for a Service named %s, unless the pod has enableServiceLinks: false", service)
		}
		near = "FF_LISTEN"
	}
	if near != "" {
		return "unknown setting; did you mean " + near + "?"
	}
	return "unknown setting"
}
