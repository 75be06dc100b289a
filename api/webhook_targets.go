package api

import "net/netip"

// WebhookTargets states which addresses outgoing webhooks may reach. The zero value permits https to public addresses on port 443. Whoever may
// create an endpoint makes the server send requests to every address that is permitted.
type WebhookTargets struct {
	AllowHTTP     bool           // permits http too, and port 80 with it
	AllowLoopback bool           // permits this host too, by http or https on any port; meant for development
	AllowRanges   []netip.Prefix // networks that are permitted although they are private or reserved
	Ports         []int          // permitted besides 443
}
