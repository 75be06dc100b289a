package inprocess

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/service"
	"github.com/flowfabric/flowfabric/internal/webhooksend"
)

// webhookAddresses returns which addresses webhooks may reach; invalid_argument.
func webhookAddresses(t api.WebhookTargets) (webhook.Addresses, error) {
	for i, port := range t.Ports {
		if port < 1 || port > 65535 {
			return webhook.Addresses{}, base.Invalid(base.Element("Webhooks.Ports", i), "must be in 1..65535")
		}
	}
	for i, network := range t.AllowRanges {
		if !network.IsValid() || network.Addr().Is4In6() {
			return webhook.Addresses{}, base.Invalid(base.Element("Webhooks.AllowRanges", i), "is not a network such as 10.0.0.0/8 or fd00::/8")
		}
	}
	return webhook.Addresses{AllowHTTP: t.AllowHTTP, AllowLoopback: t.AllowLoopback, Allow: t.AllowRanges, Ports: t.Ports}, nil
}

// webhookSettings are the settings of webhooks as those of a server.
func webhookSettings(t api.WebhookTargets) []api.Setting {
	ports := slices.Sorted(slices.Values(append([]int{443}, t.Ports...)))
	return []api.Setting{
		SettingOf("FF_WEBHOOK_ALLOW_HTTP", t.AllowHTTP, strconv.FormatBool(t.AllowHTTP)),
		SettingOf("FF_WEBHOOK_ALLOW_CIDR", len(t.AllowRanges) > 0, listed(t.AllowRanges, netip.Prefix.String)),
		SettingOf("FF_WEBHOOK_PORTS", len(t.Ports) > 0, listed(slices.Compact(ports), strconv.Itoa)),
	}
}

func listed[T any](all []T, text func(T) string) string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = text(one)
	}
	return strings.Join(texts, ",")
}

// webhookSender returns what sends webhooks to those addresses alone, and what has an engine send through it.
func webhookSender(cfg engine.Config, targets webhook.Addresses) (*webhooksend.Sender, func(*engine.Engine)) {
	sender := webhooksend.New(webhooksend.Config{Addresses: targets, Clock: cfg.Clock})
	return sender, func(e *engine.Engine) {
		e.SetUpWebhooks(engine.WebhookSetup{Addresses: targets, Send: sender.Send, Envelope: service.Envelope})
	}
}
